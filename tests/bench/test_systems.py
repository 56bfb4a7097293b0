"""Every system shows exactly the live rows after an update, and tells what it has stored."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.data import Rows
from bench.extra import ICEBERG
from bench.systems.base import Found, System
from bench.systems.catalog import SYSTEMS, Entry
from bench.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = Workload("tiny", 36, live_bytes=300_000, updates=1)
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".cache" / "bench" / "packages"
KEY = 7
ONE_OF_EACH_SORT = (
    "sweep", "no_rebuild", "append_delete", "append_delete_dv", "zorder", "liquid", "by_expiration",
    "by_insertion", "clickhouse", "iceberg",
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


def is_there(entry: Entry) -> bool:
    if entry.kind == "clickhouse":
        sys.path.append(str(PACKAGES))
        return importlib.util.find_spec("chdb") is not None
    if entry.kind == "iceberg":
        return (ROOT / ICEBERG / "made-of.txt").is_file()
    return True


@pytest.mark.parametrize("name", ONE_OF_EACH_SORT)
def test_a_system_shows_the_live_rows(
    name: str, spark: SparkSession, rows: Rows, tmp_path: Path
) -> None:
    entry = SYSTEMS[name]
    if not is_there(entry):
        pytest.skip(f"what {name} needs is not installed; make bench installs it")
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
