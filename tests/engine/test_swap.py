"""Spark writes the files, of plain tables as such and of others by its Delta; we commit them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.steady import expected, rows_of_every_slot
from tests.workspace import Row, Workspace, at, log_of, row
from tidetable.config import Index
from tidetable.core.errors import TransientError
from tidetable.engine import swap
from tidetable.engine import updater as update
from tidetable.engine.commit import Change, LostRace, Removal, workbench, write_commit
from tidetable.engine.create import create_table
from tidetable.engine.rebuild import rebuild
from tidetable.engine.replay import replay
from tidetable.engine.source import Source
from tidetable.engine.updater import Updater
from tidetable.table.log import Log, open_log
from tidetable.table.place import INCOMING, quarantine_path, updates_path
from tidetable.table.state import IndexTable
from tidetable.table.steps import Step, Watcher, watched
from tidetable.table.stored import stored_files
from tidetable.table.upkeep import purge

pytestmark = pytest.mark.spark


def engine(index: Index) -> str:
    """Who made the newest commit."""
    log = log_of(index)
    (info,) = [one["commitInfo"] for one in log.actions(log.version) if "commitInfo" in one]
    return str(info["engineInfo"]).split("/", maxsplit=1)[0]


def updated(spark: SparkSession, workspace: Workspace, slot: int, **changes: Any) -> Index:
    workspace.add(rows_of_every_slot())
    index = workspace.index(**changes)
    list(Updater(spark, index).catch_up(slot))
    return index


@pytest.mark.parametrize("vectors", [False, True], ids=["plain", "deletion vectors"])
def test_every_commit_is_ours(spark: SparkSession, workspace: Workspace, vectors: bool) -> None:
    """The first one, updates, a rebuild, the way back, and another retention."""
    scheme = {"name": "sweep", "groups": 3, "deletion_vectors": vectors}
    workspace.add([row(900 + slot, slot - 0.5, slot + 2, key="") for slot in (1, 3, 4)])
    index = updated(spark, workspace, 3, scheme=scheme)
    rebuild(Updater(spark, index))
    list(replay(Updater(spark, index), 3))
    index = workspace.index(scheme=scheme, keep_versions_for="72h")
    list(Updater(spark, index).catch_up(4))
    log = log_of(index)
    operations = []
    for version in range(log.version + 1):
        (info,) = [one["commitInfo"] for one in log.actions(version) if "commitInfo" in one]
        assert info["engineInfo"].startswith("Tidetable/")
        operations.append(info["operation"])
    assert operations == ["CREATE TABLE", *["WRITE"] * 5, "RESTORE", "WRITE", "WRITE",
                          "SET TBLPROPERTIES"]  # fmt: skip
    assert workspace.ids() == expected(4)
    assert workspace.reasons(index) == [(1, "no key"), (3, "no key"), (4, "no key")]
    assert committers(quarantine_path(index)) == [
        # delta-rs makes the table; slot 3 is written again by the replay.
        ("CREATE TABLE", "delta-rs"), *[("WRITE", "Tidetable")] * 4
    ]  # fmt: skip
    assert {who for _, who in committers(updates_path(index))} == {"delta-rs"}
    for table in (index.table, quarantine_path(index)):
        incoming = Path(table) / INCOMING
        assert not incoming.exists() or not any(incoming.iterdir())


def committers(path: str) -> list[tuple[str, str]]:
    """(operation, engine) of all commits of a table, oldest first."""
    log = open_log(path)
    assert log is not None
    infos = [
        action["commitInfo"]
        for version in range(log.version + 1)
        for action in log.actions(version)
        if "commitInfo" in action
    ]
    # delta-rs says what it is under another name.
    engines = [str(one.get("engineInfo") or one["clientVersion"]) for one in infos]
    engines = [re.split("[/:.]", engine)[0] for engine in engines]
    return [(one["operation"], who) for one, who in zip(infos, engines, strict=True)]


def test_what_somebody_asks_of_writers_spark_s_delta_obeys(
    spark: SparkSession, workspace: Workspace
) -> None:
    index = updated(spark, workspace, 1)
    spark.sql(f"ALTER TABLE delta.`{index.table}` ADD CONSTRAINT small CHECK (id < 1000)")
    list(Updater(spark, index).catch_up(2))
    assert engine(index) == "Tidetable"
    assert workspace.ids() == expected(2)
    workspace.add([row(5000, 2.5, 5)])
    with pytest.raises(Exception, match="CHECK constraint small"):
        list(Updater(spark, index).catch_up(3))
    assert workspace.ids() == expected(2)


def test_its_statistics_are_those_that_spark_finds_in_the_same_rows(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Spark cuts off what is below a millisecond, and allows for it when it reads."""
    workspace.add([row(1, 0.12345, 3.98765, key="ä"), row(2, 0.5, 5.5, key="it's"), row(3, 1, 6)])
    index = workspace.index()
    list(Updater(spark, index).catch_up(1))
    log = log_of(index)
    twin = workspace.index(table=str(workspace.folder / "twin"))
    create_table(spark, twin, StructType(swap.schema_of(log)[:-2]))
    for file in log.files:
        swap.rows_of(spark, log, [file]).write.format("delta").mode("append").save(twin.table)
    assert engine(twin) == "Apache-Spark"
    ours, theirs = ([*statistics(one)] for one in (log, log_of(twin)))
    assert len(ours) > 1
    assert sorted(ours) == sorted(theirs)


def statistics(log: Log) -> Iterator[str]:
    """What the log says of its files."""
    for version in range(log.version + 1):
        for action in log.actions(version):
            if "add" in action:
                told = json.loads(action["add"]["stats"])
                for bounds in (told["minValues"], told["maxValues"]):
                    for name in ("inserted_at", "expires_at"):
                        bounds[name] = bounds[name][:23]
                told.pop("tightBounds", None)
                yield json.dumps(told, sort_keys=True)


def test_spark_skips_files_by_them(spark: SparkSession, workspace: Workspace) -> None:
    index = updated(spark, workspace, 3)
    frame = spark.read.format("delta").load(index.table)
    for one in workspace.stored():
        by_key = frame.where(frame.key == one["key"]).where(frame.id == one["id"])
        assert by_key.count() == 1
    until = at(4.5)
    alive = [one["id"] for one in workspace.stored() if one["expires_at"] >= until]
    found = frame.where(frame.expires_at >= until).select("id").collect()
    assert sorted(line["id"] for line in found) == sorted(alive)
    assert alive


def test_an_update_without_rows_writes_no_file(spark: SparkSession, workspace: Workspace) -> None:
    workspace.add([row(1, -0.5, 5.5)])
    index = workspace.index(scheme={"name": "sweep", "groups": 3})
    list(Updater(spark, index).catch_up(0))
    before = list(log_of(index).files)
    (report,) = Updater(spark, index).catch_up(1)
    assert (report.slot, report.written_bytes) == (1, 0)
    assert list(log_of(index).files) == before
    assert workspace.ids() == [1]


def test_one_that_comes_late_leaves_nothing_behind(
    spark: SparkSession, workspace: Workspace
) -> None:
    index = updated(spark, workspace, 0)
    state = IndexTable(index).required_state()
    list(Updater(spark, index).catch_up(1))
    stored = {file.path for file in stored_files(state.log)}
    rows = swap.rows_of(spark, state.log, state.log.files)
    for fence in (state.fence, "another"):  # that one is used up, this one is not
        with workbench(state.log, None) as bench:
            change = Change(state.log, rows, Removal(everything=True), bench)
            with pytest.raises(LostRace):
                write_commit(spark, change, state.note.as_rebuilt("run"), fence)
    assert {file.path for file in stored_files(state.log)} == stored
    assert workspace.ids() == expected(1)


def test_a_source_that_changes_while_it_is_read_is_refused(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = updated(spark, workspace, 0)
    slot_1 = workspace.add([row(500, 0.5, 4), row(501, 0.5, 4)])
    stored = {file.path for file in stored_files(log_of(index))}

    def change_and_write(*arguments: Any) -> None:
        fewer = workspace.add([row(500, 0.5, 4)])
        fewer.replace(slot_1)
        write_commit(*arguments)

    monkeypatch.setattr(update, "write_commit", change_and_write)
    with pytest.raises(TransientError, match="the source was changed while it was read"):
        list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == expected(0)
    assert {file.path for file in stored_files(log_of(index))} == stored

    monkeypatch.undo()
    list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == sorted([*expected(1), 500])


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (row(500, 0.5, 3.5), "expire by slot|newly written to cell"),  # another group
        (row(500, 0.5, 5.5), "expire by slot"),  # the same group
    ],
    ids=["another cell", "another slot"],
)
def test_as_many_other_rows_are_refused(
    spark: SparkSession,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    written: Row,
    why: str,
) -> None:
    """Where nobody can tell that a file was replaced, as in an object store."""
    index, replaces = about_to_be_replaced(spark, workspace, monkeypatch, written, vectors=True)
    stored = {file.path for file in stored_files(log_of(index))}
    with watched(replaces), pytest.raises(TransientError, match=why):
        list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == [0, 1]
    assert {file.path for file in stored_files(log_of(index))} == stored
    list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == [0, 1, 500]


@pytest.mark.parametrize("expires", [4.5, 5.5])
def test_what_is_counted_is_what_is_written(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, expires: float
) -> None:
    """In one job there is one look at the source: whatever is there then is taken, and noted."""
    workspace.add([row(0, -0.5, 5.5), row(1, 0.5, 4.5)])
    index = workspace.index(scheme={"name": "sweep", "groups": 3})
    list(Updater(spark, index).catch_up(1))
    slot_2 = workspace.add([row(500, 1.5, 2.5)])

    def replaces(step: Step) -> None:
        if step is Step.PLAN_MADE:
            workspace.add([row(500, 1.5, expires)]).replace(slot_2)

    monkeypatch.setattr(Source, "replaced", lambda _: [])
    with watched(replaces):
        list(Updater(spark, index).catch_up(2))
    (stored,) = [one for one in workspace.stored() if one["id"] == 500]
    assert stored["expires_at"] == at(expires)
    note = IndexTable(index).required_state().note
    assert sum(note.live_by_expiration.values()) == note.live == 3
    assert list(Updater(spark, index).catch_up(3))  # which finds all as the note says


def about_to_be_replaced(
    spark: SparkSession,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    written: Row,
    *,
    vectors: bool,
) -> tuple[Index, Watcher]:
    """An index at slot 0, and who puts this row into the place of slot 1's once that is planned."""
    scheme = {"name": "sweep", "groups": 3, "deletion_vectors": vectors}
    workspace.add([row(0, -0.5, 5.5), row(1, -0.5, 4.5)])
    index = workspace.index(scheme=scheme)
    list(Updater(spark, index).catch_up(0))
    slot_1 = workspace.add([row(500, 0.5, 2.5)])

    def replaces(step: Step) -> None:
        if step is Step.PLAN_MADE:
            workspace.add([written]).replace(slot_1)

    monkeypatch.setattr(Source, "replaced", lambda _: [])
    return index, replaces


def test_what_a_writer_left_on_its_way_is_cleaned_up(
    spark: SparkSession, workspace: Workspace
) -> None:
    index = updated(spark, workspace, 1, keep_versions_for="0h")
    left = workspace.table / INCOMING / "run" / "_temporary" / "0" / "part-0.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half a file")
    purge(index)
    assert left.exists()  # its writer may still be at work
    purge(index, at(0).replace(year=2100))
    assert not left.exists()
    assert workspace.ids() == expected(1)
