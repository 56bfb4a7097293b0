"""Where a table stands, who changed it, and how it is put right."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

from tests.cli.runner import tidetable
from tests.steady import expected, rows_of_every_slot
from tests.workspace import SCHEMA, Workspace, log_of, row
from tidetable.config import Index
from tidetable.core.errors import UserError
from tidetable.engine.against_source import compare_now
from tidetable.engine.rebuild import rebuild
from tidetable.engine.replay import replay
from tidetable.engine.updater import Updater
from tidetable.table.garbage import missing_files
from tidetable.table.log import Log, open_log
from tidetable.table.state import DamagedTable, IndexTable
from tidetable.table.upkeep import purge

pytestmark = pytest.mark.spark

REPLAY = r"Replay things, from slot {}"


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# -- commits of others -----------------------------------------------------------------------------


def test_commits_that_change_no_row_do_not_hide_the_state(
    spark: SparkSession, workspace: Workspace
) -> None:
    """OPTIMIZE and ALTER TABLE carry no note; the update after them goes on."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    list(Updater(spark, index).catch_up(2))
    table = f"delta.`{workspace.table}`"
    spark.sql(f"OPTIMIZE {table}")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('purpose' = 'none')")
    state = IndexTable(index).state()
    assert state is not None
    assert state.slot == 2
    assert state.version < state.log.version
    assert workspace.ids() == expected(2)
    assert [report.slot for report in Updater(spark, index).catch_up(4)] == [3, 4]
    assert workspace.ids() == expected(4)


@pytest.mark.parametrize(
    "scheme",
    [
        {"name": "sweep", "groups": 3, "deletion_vectors": True},
        {"name": "rebuild", "insertion": 2, "expiration": 3},
    ],
    ids=["sweep_with_log", "rebuild"],
)
def test_a_change_by_others_is_found_and_a_replay_mends_it(
    spark: SparkSession, workspace: Workspace, scheme: dict[str, Any]
) -> None:
    """DELETE and INSERT by hand. After the replay the schedule goes on as if nothing had been."""
    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme=scheme)
    list(Updater(spark, index).catch_up(3, fold=True))
    list(Updater(spark, index).catch_up(4))
    table = f"delta.`{workspace.table}`"
    spark.sql(f"DELETE FROM {table} WHERE id = 41")
    with pytest.raises(DamagedTable, match=r"\(DELETE\) changed rows.*" + REPLAY.format(4)):
        list(Updater(spark, index).catch_up(5))
    spark.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 40")
    with pytest.raises(DamagedTable, match=REPLAY.format(4)):
        list(Updater(spark, index).catch_up(5))

    reports = list(replay(Updater(spark, index), 4))
    assert [(report.slot, report.inserted, report.expired) for report in reports] == [(4, 2, 2)]
    assert workspace.ids() == expected(4)
    assert [report.slot for report in Updater(spark, index).catch_up(5)] == [5]
    assert workspace.ids() == expected(5)


def test_a_replay_takes_the_rows_that_the_source_has_now(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Restored from the table's own old version, then from the source; twice in a row."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    list(Updater(spark, index).catch_up(2))
    more = workspace.add([row(500, 1.5, 5)])
    assert [report.slot for report in replay(Updater(spark, index), 2)] == [2]
    assert workspace.ids() == sorted([*expected(2), 500])
    more.unlink()
    assert [report.slot for report in replay(Updater(spark, index), 2)] == [2]
    assert workspace.ids() == expected(2)
    log = open_log(index.table)
    assert log is not None
    notes = [note for _, note in log.notes()]
    assert [note.slot for note in notes if note.kind == "update"] == [2, 1]
    assert [note.inserted for note in notes if note.kind == "update"] == [2, 2]
    assert notes[-1].kind == "load"


def test_after_a_vacuum_a_replay_loads_the_old_state_from_the_source(
    spark: SparkSession, workspace: Workspace
) -> None:
    """The files of the old version are gone; slots, cells and rows are the same nevertheless."""
    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme={"name": "rebuild", "insertion": 2, "expiration": 3})
    list(Updater(spark, index).catch_up(2, fold=True))
    list(Updater(spark, index).catch_up(3))
    before = sorted(workspace.stored(), key=lambda one: one["id"])
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # Else VACUUM lists the folder with thousands of tasks.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        spark.sql(f"VACUUM delta.`{workspace.table}` RETAIN 0 HOURS")
    finally:
        for name in settings:
            spark.conf.unset(name)
    reports = list(replay(Updater(spark, index), 3))
    assert [report.slot for report in reports] == [2, 3]
    assert reports[0].live == len(expected(2))
    assert sorted(workspace.stored(), key=lambda one: one["id"]) == before
    assert [report.slot for report in Updater(spark, index).catch_up(4)] == [4]
    assert workspace.ids() == expected(4)
    for first in (0, 5, -1):
        with pytest.raises(UserError, match="It can start from slot 1 to 4"):
            list(replay(Updater(spark, index), first))


def test_a_replay_from_inside_a_fold_loads_the_state_from_the_source(
    spark: SparkSession, workspace: Workspace
) -> None:
    """No version of the table stands for that slot; with deletion vectors, so that they go too."""
    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme={"name": "sweep", "groups": 3, "deletion_vectors": True})
    list(Updater(spark, index).catch_up(4, fold=True))
    reports = list(replay(Updater(spark, index), 4))
    assert [(report.slot, report.live) for report in reports] == [
        (slot, len(expected(slot))) for slot in (3, 4)
    ]
    assert workspace.ids() == expected(4)


def test_a_replay_without_a_table_is_refused(spark: SparkSession, workspace: Workspace) -> None:
    workspace.add(rows_of_every_slot())
    with pytest.raises(UserError, match=r"no table yet .* Update things"):
        list(replay(Updater(spark, workspace.index()), 1))


def test_a_replay_brings_back_a_table_whose_notes_are_gone(
    spark: SparkSession, workspace: Workspace
) -> None:
    """The log was cleaned while nobody updated: the state before the slot comes from the source."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    list(Updater(spark, index).catch_up(2, fold=True))
    spark.sql(f"ALTER TABLE delta.`{workspace.table}` SET TBLPROPERTIES ('purpose' = 'none')")
    log = open_log(index.table)
    assert log is not None
    log.table.create_checkpoint()
    for version in range(log.version):
        workspace.table.joinpath("_delta_log", f"{version:020d}.json").unlink()
    with pytest.raises(DamagedTable, match="no longer says at which slot"):
        list(Updater(spark, index).catch_up(3))
    would = tidetable("replay", workspace.yaml, "--from", 3, "--dry-run")
    assert (would.status, would.out) == (0, "")
    assert "Would load things as of slot 2 from the source" in would.sentence
    found = tidetable("replay", workspace.yaml, "--from", 3, "--json")
    assert [report["slot"] for report in found.objects] == [2]
    assert workspace.ids() == expected(2)
    assert [report.slot for report in Updater(spark, index).catch_up(3)] == [3]
    assert workspace.ids() == expected(3)


def test_a_first_load_that_somebody_has_changed_is_put_back(
    spark: SparkSession, workspace: Workspace
) -> None:
    """There is no update to replay, but the advice is the same as ever, and can be followed."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    list(Updater(spark, index).catch_up(0))
    spark.sql(f"DELETE FROM delta.`{workspace.table}` WHERE id % 2 = 0")
    with pytest.raises(DamagedTable, match=REPLAY.format(1)):
        list(Updater(spark, index).catch_up(1))
    assert list(replay(Updater(spark, index), 1)) == []
    assert workspace.ids() == expected(0)
    list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == expected(1)


# -- after a purge ---------------------------------------------------------------------------------

NO_REBUILD = {"name": "no_rebuild", "insertion": 2, "expiration": 3}
IN_60_DAYS = timedelta(days=60)


def updated(spark: SparkSession, workspace: Workspace, slot: int) -> Index:
    """An index with deletion vectors at this slot, one update after the other, and a purge."""
    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme=NO_REBUILD)
    list(Updater(spark, index).catch_up(slot))
    assert purge(index, datetime.now(UTC) + IN_60_DAYS).files > 0
    return index


def test_replays_after_a_purge_take_what_is_gone_from_the_source(
    spark: SparkSession, workspace: Workspace
) -> None:
    """The data files of the 4th step back are all there, their deletion vectors are not."""
    index = updated(spark, workspace, 5)
    for first in (2, 5, 4):
        reports = list(replay(Updater(spark, index), first))
        assert reports[-1].slot == 5
        assert workspace.ids() == expected(5)
        assert missing_files(log_of(index)) == []
    assert [report.slot for report in Updater(spark, index).catch_up(6)] == [6]
    assert workspace.ids() == expected(6)


def test_a_stranger_goes_back_to_a_version_whose_vectors_are_gone(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Spark's RESTORE looks for data files only, so it makes a version that nobody can read."""
    lifetimes = range(1, 6)
    workspace.add(
        [row(10 * slot + k, slot - 0.5, slot + k + 0.2) for slot in range(7) for k in lifetimes]
    )
    # Three slots expire in a cell: its file gets a vector, then another one, and then it goes.
    index = workspace.index(scheme={"name": "no_rebuild", "insertion": 2, "expiration": 2})
    list(Updater(spark, index).catch_up(4))
    before = workspace.ids()
    assert purge(index, datetime.now(UTC) + IN_60_DAYS).files > 0
    then = next(log for log in versions(index) if missing_files(log))
    assert {Path(name).suffix for name in missing_files(then)} == {".bin"}
    spark.sql(f"RESTORE TABLE delta.`{workspace.table}` TO VERSION AS OF {then.version}")

    for command in ("update", "status", "probe"):
        ended = tidetable(command, workspace.yaml, *(["1"] if command == "probe" else []))
        assert ended.status != 0, command
        assert "RESTORE" in ended.sentence, (command, ended.sentence)
        assert "--from 4" in ended.sentence, (command, ended.sentence)
    assert list(replay(Updater(spark, index), 4))[-1].slot == 4
    assert workspace.ids() == before
    assert missing_files(log_of(index)) == []
    assert [report.slot for report in Updater(spark, index).catch_up(5)] == [5]


def versions(index: Index) -> Iterator[Log]:
    """The index after each update, the newest first."""
    for version, _ in log_of(index).notes():
        log = open_log(index.table, version)
        assert log is not None
        yield log


# -- columns that others add -----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [NO_REBUILD, {"name": "sweep", "groups": 3}],
                         ids=["no_rebuild", "sweep"])  # fmt: skip
def test_a_column_that_somebody_adds_stays_empty_and_stops_nothing(
    spark: SparkSession, workspace: Workspace, scheme: dict[str, Any]
) -> None:
    """Updates, a rebuild and both kinds of replay go on; the source is not asked for it."""
    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme=scheme, source={"recount_every": 2})
    list(Updater(spark, index).catch_up(2))
    added = Schema([Field("theirs", PrimitiveType("long")), Field("Über", PrimitiveType("date"))])
    log_of(index).table.alter.add_columns(added.fields)
    assert "warning" not in tidetable("check", workspace.yaml).err
    list(Updater(spark, index).catch_up(3))
    workspace.add([row(500, 4, 8, theirs=1)], schema=SCHEMA.append(pa.field("theirs", pa.int64())))
    assert "left out (source.new_columns): theirs" in tidetable("check", workspace.yaml).out
    list(Updater(spark, index).catch_up(5, fold=True))
    rebuild(Updater(spark, index))
    assert workspace.ids() == sorted([*expected(5), 500])
    assert {(one["theirs"], one["Über"]) for one in workspace.stored()} == {(None, None)}
    assert not compare_now(spark, index).differences

    list(replay(Updater(spark, index), 2))  # before there was such a column
    assert workspace.ids() == sorted([*expected(5), 500])
    assert "theirs" not in workspace.stored()[0]


# -- whose table is it -----------------------------------------------------------------------------


def test_a_layout_that_has_changed_is_refused_and_the_table_left_alone(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Every field by which rows lie where they lie, and the name."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    list(Updater(spark, index).catch_up(0))
    before = listing(workspace.table)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"key": "id"}, r'key was "key" and is now "id"'),
        ({"update_every": "5m"}, "update_every was"),
        ({"start": "2024-03-01T00:10:00Z"}, "start was"),
        ({"longest_lifetime": "50m"}, "longest_lifetime was"),
        ({"scheme": {"name": "sweep", "groups": 2}}, "scheme was"),
        ({"source": {"arrived_at": "inserted_at"}}, "arrived_at was"),
        ({"inserted_at": "arrived_at"}, "inserted_at was"),
        ({"expires_at": None, "lifetime": "interval 20 minutes"}, "lifetime was null"),
        ({"name": "others"}, "belongs to the index 'things', not to 'others'"),
    ]
    for change, message in changes:
        with pytest.raises(UserError, match=message):
            list(Updater(spark, workspace.index(**change)).catch_up(1))
    assert listing(workspace.table) == before


def test_a_place_that_is_not_ours_is_refused_and_left_alone(
    spark: SparkSession, workspace: Workspace
) -> None:
    """A folder with files, a Delta table, a file, and a folder below a file."""
    workspace.add(rows_of_every_slot())

    def refused(message: str, **changes: Any) -> None:
        with pytest.raises(UserError, match=message):
            list(Updater(spark, workspace.index(**changes)).catch_up(0))

    workspace.table.mkdir()
    kept = workspace.table / "thesis.txt"
    kept.write_text("years of work")
    refused("not empty and holds no table of Tidetable")
    assert listing(workspace.table) == ["thesis.txt"]
    shutil.rmtree(workspace.table)

    write_deltalake(str(workspace.table), pa.table({"id": [1, 2]}))
    before = listing(workspace.table)
    refused("a Delta table that Tidetable did not make")
    assert listing(workspace.table) == before
    shutil.rmtree(workspace.table)

    workspace.table.write_text("a file")
    refused("is a file, not a folder")
    refused("cannot be written", table=str(workspace.table / "below"))
    assert workspace.table.read_text() == "a file"
