"""Every system shows exactly the live rows after an update, and tells what it has stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.data import Rows
from bench.extra import is_there
from bench.systems.base import Found, System
from bench.systems.catalog import DEFAULT, LIMITS, SYSTEMS, Entry
from bench.systems.limit import BOUNDED
from bench.workload import Workload
from tidetable.table.log import arrow, open_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = Workload("tiny", 36, live_bytes=300_000, updates=1)
ROOT = Path(__file__).resolve().parents[2]
KEY = 7
ONE_OF_EACH_SORT = (
    "sweep", "sweep_by_expiration", "no_rebuild", "append_delete", "append_delete_dv", "zorder",
    "zorder_no_dv", "liquid", "by_expiration", "by_insertion", "clickhouse", "clickhouse_drop",
    "iceberg", *LIMITS,
)  # fmt: skip
"""The others differ in numbers only, and every run of the benchmark checks all of them so."""


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    made = Rows(TINY, tmp_path_factory.mktemp("bench"))
    made.make(spark)
    return made


def updated(entry: Entry, spark: SparkSession, rows: Rows, folder: Path) -> System:
    system = entry.make(spark, rows, folder)
    system.load()
    system.wait(1)
    system.update(1)
    return system


def needed(name: str) -> Entry:
    entry = SYSTEMS[name]
    if entry.needs is not None and not is_there(ROOT, entry.needs):
        pytest.skip(f"what {name} needs is not installed; make bench installs it")
    return entry


@pytest.mark.parametrize("name", ONE_OF_EACH_SORT)
def test_a_system_shows_the_live_rows(
    name: str, spark: SparkSession, rows: Rows, tmp_path: Path
) -> None:
    entry = needed(name)
    system = updated(entry, spark, rows, tmp_path)
    try:
        found = system.found(1)
        expected = rows.expected
        assert (found.live_rows, found.live_key_sum) == (expected.rows, expected.key_sum)
        if name != "clickhouse":  # which lets rows go later
            assert found == Found(expected.rows, expected.rows, expected.key_sum)
        standing = system.standing()
        assert standing.files > 0
        assert standing.written >= standing.bytes > 0
        assert 0 < system.probe(KEY) < 20
        assert system.scan() == expected.rows * 972
        system.tidy()
        assert system.probe(KEY) > 0
    finally:
        system.close()


def files(table: Path) -> set[tuple[object, ...]]:
    """What the log says of the files: cell, rows, and the bounds of ours."""
    log = open_log(str(table))
    assert log is not None
    actions = arrow(log.table.get_add_actions(flatten=True)).read_all()
    named = [f"{bound}.{name}" for name in BOUNDED for bound in ("min", "max")]
    columns = [
        actions.column(name).to_pylist()
        for name in ("partition._g", "partition._e", "num_records", *named)
    ]
    assert all(value is not None for column in columns for value in column)
    return set(zip(*columns, strict=True))


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_writes_the_files_of_the_default(
    name: str, spark: SparkSession, rows: Rows, tmp_path: Path
) -> None:
    """The same rows in the same cells, in as many files: else it would be no floor under it."""
    folders = {which: tmp_path / which for which in (DEFAULT, name)}
    systems = {}
    for which, folder in folders.items():
        folder.mkdir()
        systems[which] = updated(needed(which), spark, rows, folder)
    assert files(folders[name] / "table") == files(folders[DEFAULT] / "table")
    sizes = [system.standing().bytes for system in systems.values()]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)
