"""All cells written again: the same rows at the same slot, in as few files as can be."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.faults.test_races import before_the_first_commit
from tests.steady import expected, rows_of_every_slot
from tests.workspace import Workspace, row
from tidetable.core.cell import LOG
from tidetable.core.columns import EXPIRATION_SLOT
from tidetable.core.errors import UserError
from tidetable.engine.late import expected_arrivals
from tidetable.engine.rebuild import rebuild
from tidetable.engine.replay import replay
from tidetable.engine.updater import Updater
from tidetable.table.history import Updates
from tidetable.table.state import IndexTable


@pytest.mark.parametrize(
    "scheme",
    [
        {"name": "sweep", "groups": 3, "deletion_vectors": True},
        {"name": "no_rebuild", "insertion": 2, "expiration": 3},
        {"name": "tiers", "groups": 3, "fan_in": 2},
    ],
    ids=["sweep_log", "no_rebuild", "tiers"],
)
def test_the_same_rows_in_fewer_files(
    spark: SparkSession, workspace: Workspace, scheme: dict[str, Any]
) -> None:
    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme=scheme)
    updater = Updater(spark, index)
    list(updater.catch_up(4))
    before = IndexTable(index).required_state()
    stored = {one["id"]: one for one in workspace.stored()}

    report = rebuild(updater)

    after = IndexTable(index).required_state()
    assert (after.slot, after.version) == (4, before.version + 1)
    assert workspace.ids() == expected(4)
    for one in workspace.stored():
        assert {**one, "_g": 0, "_e": 0} == {**stored[one["id"]], "_g": 0, "_e": 0}
    assert all(cell.files == 1 for cell in after.log.cells.values())
    assert LOG not in after.log.cells
    assert not any(file.has_deletions for file in after.log.files)
    assert {file.path for file in after.log.files}.isdisjoint(f.path for f in before.log.files)
    for file in after.log.files:
        rows = pq.read_table(workspace.table / file.path, columns=["key", EXPIRATION_SLOT])
        found = list(zip(*rows.to_pydict().values(), strict=True))
        assert found == sorted(found)

    assert (report.slot, report.version) == (4, after.version)
    assert (report.inserted, report.expired, report.live) == (0, 0, len(expected(4)))
    assert report.rewritten_rows == report.live
    assert report.written_bytes == sum(file.bytes for file in after.log.files)
    assert report.checks is not None
    assert set(report.checks.values()) == {0, report.live}
    row_of_it = Updates(index).last(1)[0]
    assert (row_of_it.kind, row_of_it.slot, row_of_it.version) == ("rebuild", 4, after.version)
    assert row_of_it.touched == report.touched

    list(updater.catch_up(6, fold=True))
    assert workspace.ids() == expected(6)


def test_the_chain_of_notes_goes_on_through_a_rebuild(
    spark: SparkSession, workspace: Workspace
) -> None:
    """For replays, for time travel and for the recount of what arrived."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    updater = Updater(spark, index)
    list(updater.catch_up(2))
    rebuild(updater)
    rebuilt = rebuild(updater).version
    state = IndexTable(index).required_state()
    assert [note.slot for _, note in state.log.notes()] == [2, 2, 2, 1, 0]
    assert state.log.version_of(2) == rebuilt
    assert expected_arrivals(state, range(1, 3)) == {1: 2, 2: 2}
    assert expected_arrivals(state, range(2, 3)) == {2: 2}
    list(updater.catch_up(3))
    assert [report.slot for report in replay(updater, 2)] == [2, 3]
    assert workspace.ids() == expected(3)


def test_an_update_that_comes_first_is_rebuilt_too(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    updater = Updater(spark, index)
    list(updater.catch_up(2))
    other = Updater(spark, index)
    before_the_first_commit(monkeypatch, lambda: list(other.catch_up(3)))
    assert rebuild(updater).slot == 3
    assert workspace.ids() == expected(3)
    assert [one.kind for one in Updates(index).last(2)] == ["update", "rebuild"]


def test_a_rebuild_that_comes_first_loses_no_row_of_an_update(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    updater = Updater(spark, index)
    list(updater.catch_up(2))
    other = Updater(spark, index)
    before_the_first_commit(monkeypatch, lambda: rebuild(other))
    assert [report.slot for report in updater.catch_up(3)] == [3]
    assert workspace.ids() == expected(3)


def test_a_table_without_a_row(spark: SparkSession, workspace: Workspace) -> None:
    workspace.add([row(1, 1.5, 4)])
    updater = Updater(spark, workspace.index())
    list(updater.catch_up(0))
    report = rebuild(updater)
    assert (report.slot, report.live, report.cells) == (0, 0, 0)
    list(updater.catch_up(2))
    assert workspace.ids() == [1]


def test_without_a_table_there_is_nothing_to_rebuild(
    spark: SparkSession, workspace: Workspace
) -> None:
    workspace.add([row(1, 1.5, 4)])
    with pytest.raises(UserError, match="has no table yet"):
        rebuild(Updater(spark, workspace.index()))
