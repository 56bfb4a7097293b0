"""Tables that version 0.1.0 made open, say where they stand, and go on.

`tables-0.1.0.tar.gz` has two indexes with their sources, one plain (Sweep with 3 groups) and one
with deletion vectors (NoRebuild 2x2): loaded, brought to slot 2, folded to slot 4, replayed from
slot 4, rebuilt, and brought to slot 6. Their sources go on to slot 12, with a bad row in slots 2
and 5.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.oracle.oracle import Oracle
from tests.workspace import EVERY, START, Workspace
from tidetable.config import Index
from tidetable.engine.rebuild import rebuild
from tidetable.engine.replay import replay
from tidetable.engine.updater import Updater
from tidetable.quality import validate
from tidetable.table.history import Updates
from tidetable.table.state import IndexTable
from tidetable.table.status import status
from tidetable.table.upkeep import maintain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = Path(__file__).with_name("tables-0.1.0.tar.gz")
SCHEMES: dict[str, dict[str, Any]] = {
    "plain": {"name": "sweep", "groups": 3},
    "vectors": {"name": "no_rebuild", "insertion": 2, "expiration": 2},
}
AT_SLOT = 6


@pytest.fixture(params=sorted(SCHEMES))
def old(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Workspace, Index]:
    with tarfile.open(TABLES) as archive:
        archive.extractall(tmp_path, filter="data")
    workspace = Workspace(tmp_path / request.param)
    return workspace, workspace.index(scheme=SCHEMES[request.param])


def live_at(workspace: Workspace, slot: int) -> list[int]:
    """By the timestamps of the source alone."""
    oracle = Oracle(START, EVERY, timedelta(minutes=60))
    rows = [
        row
        for file in sorted(workspace.source.iterdir())
        for row in pq.read_table(file).to_pylist()
    ]
    oracle.add(row for row in rows if row["key"] is not None)
    return sorted(row["id"] for row in oracle.live_at_slot(slot))


def test_it_says_where_it_stands(old: tuple[Workspace, Index]) -> None:
    workspace, index = old
    state = IndexTable(index).required_state()
    assert state.slot == AT_SLOT
    assert workspace.ids() == live_at(workspace, AT_SLOT)
    assert status(index).live == state.note.live == len(workspace.ids())
    assert [row.slot for row in Updates(index).last(100)] == [0, 1, 2, 4, 3, 4, 4, 5, 6]
    assert Counter(workspace.reasons(index)) == {(2, "no key"): 1, (5, "no key"): 1}
    log, note = IndexTable(index).log_at(3)
    assert (note.slot, log.rows) == (3, len(live_at(workspace, 3)))


def test_it_goes_on(spark: SparkSession, old: tuple[Workspace, Index], tmp_path: Path) -> None:
    workspace, index = old
    assert [one.slot for one in Updater(spark, index).catch_up(8)] == [7, 8]
    assert workspace.ids() == live_at(workspace, 8)
    assert [one.slot for one in Updater(spark, index).catch_up(11, fold=True)] == [11]
    assert workspace.ids() == live_at(workspace, 11)
    assert validate(index, due_slot=11, reports=tmp_path / "reports").success
    rebuild(Updater(spark, index))
    maintain(index, force=True)
    assert workspace.ids() == live_at(workspace, 11)
    assert [one.slot for one in Updater(spark, index).catch_up(12)] == [12]
    assert workspace.ids() == live_at(workspace, 12)


@pytest.mark.parametrize("first", [2, 5], ids=["from the source", "from an old version"])
def test_its_updates_can_be_replayed(
    spark: SparkSession, old: tuple[Workspace, Index], first: int
) -> None:
    workspace, index = old
    assert [one.slot for one in replay(Updater(spark, index), first)][-1] == AT_SLOT
    assert workspace.ids() == live_at(workspace, AT_SLOT)
    assert Counter(workspace.reasons(index)) == {(2, "no key"): 1, (5, "no key"): 1}
