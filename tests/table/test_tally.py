"""What the files of a version say of its rows, next to what its note says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.handmade import make_table
from tests.workspace import Workspace, log_of, row
from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.engine.commit import publish
from tidetable.table.damage import DamagedTable
from tidetable.table.files import DataFile, Files
from tidetable.table.note import Note
from tidetable.table.state import IndexTable, State
from tidetable.table.tally import disagreement, with_digests

Change = Callable[[dict[str, Any]], None]


HERE = Cell(0, 0)


def file(rows: int, first: int, last: int, *, cell: Cell = HERE) -> DataFile:
    return DataFile("a.parquet", cell, rows, 1, (1, 1), (first, last), ("k", "k"), False)


def noted(**by_slot: int) -> Note:
    expiring = {int(slot[1:]): rows for slot, rows in by_slot.items()}
    live = sum(expiring.values())
    return Note("things", 1, 0, "run", live=live, live_by_expiration=expiring)


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ([file(2, 3, 4)], None),
        ([file(1, 3, 3), file(1, 4, 4)], None),
        ([file(1, 2, 4), file(1, 3, 5)], None),  # bounds may be too wide
        ([file(3, 3, 4)], "3 rows by its file statistics; the note of slot 1 says 2"),
        ([file(2, 4, 4)], "at most 0 rows that expire by slot 3, not 1"),
        ([file(2, 3, 3)], "at least 2 rows that expire by slot 3, not 1"),
        ([file(1, 3, 3), file(1, 5, 5)], "at most 1 rows that expire by slot 4, not 2"),
        ([file(1, 1, 1), file(1, 4, 4)], "at least 1 rows that expire by slot 1, not 0"),
    ],
)
def test_as_many_rows_in_other_slots(files: list[DataFile], wrong: str | None) -> None:
    found = disagreement(Files.listed(files), noted(s3=1, s4=1))
    assert found is None if wrong is None else found is not None and wrong in found


@pytest.mark.parametrize(
    ("change", "its_own", "later"),
    [
        ({}, None, None),
        ({"cell": Cell(0, 1)}, "not in the cells", "not in the cells"),
        ({"key": ("j", "k")}, "other slots or keys", None),
        ({"insertion": (0, 1)}, "other slots or keys", None),
    ],
)
def test_as_many_rows_in_the_same_slots(
    change: dict[str, Any], its_own: str | None, later: str | None
) -> None:
    """Of a later version only the cells can be told: somebody may have merged its files."""
    files = [file(1, 3, 3), file(1, 4, 4)]
    note = with_digests(noted(s3=1, s4=1), Files.listed(files))
    changed = [files[0], replace(files[1], **change)]
    for are_its_own, wrong in ((True, its_own), (False, later)):
        found = disagreement(Files.listed(changed), note, are_its_own=are_its_own)
        assert found is None if wrong is None else found is not None and wrong in found
    without_digests = noted(s3=1, s4=1)
    assert disagreement(Files.listed(changed), without_digests) is None


def test_bounds_that_a_reader_does_not_tell_are_no_other_bounds() -> None:
    files = [file(1, 3, 3), file(1, 4, 4)]
    note = with_digests(noted(s3=1, s4=1), Files.listed(files))
    untold = [replace(one, insertion=None, expiration=None) for one in files]
    assert disagreement(Files.listed(untold), note) is None
    found = disagreement(Files.listed(replace(one, key=("j", "k")) for one in untold), note)
    assert found is not None
    assert "other slots or keys" in found


def test_a_note_stays_small() -> None:
    note = noted(**{f"s{slot}": 1 for slot in range(2, 10)})
    files = [file(1, slot, slot, cell=Cell(slot, slot)) for slot in range(2, 10)]
    digests = len(with_digests(note, Files.listed(files)).dumps()) - len(note.dumps())
    many = [file(1, slot, slot, cell=Cell(slot, slot)) for slot in range(2, 1000)]
    assert len(with_digests(note, Files.listed(many)).dumps()) - len(note.dumps()) == digests < 90


# -- on a table ------------------------------------------------------------------------------------


@pytest.fixture
def index(workspace: Workspace) -> Index:
    """Two versions: a load, and one of ours that changes nothing and says what is there."""
    index = make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 5), row(3, -1, 4.5)])
    log = log_of(index)
    note = next(note for _, note in log.notes())
    assert (note.cells, note.bounds) == (None, None)
    publish(log, [], note.as_rebuilt("run"), State(log, 0, note).fence)
    assert IndexTable(index).required_state().note.bounds is not None
    return index


def tamper(index: Index, change: Change) -> None:
    """What a commit of ours says of its first file is replaced, as by a writer that renames."""
    path = Path(index.table, "_delta_log", f"{0:020d}.json")
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    added = next(action["add"] for action in actions if "add" in action)
    said = json.loads(added["stats"])
    change(added | {"stats": said})
    added["stats"] = json.dumps(said)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def other_key(added: dict[str, Any]) -> None:
    added["stats"]["minValues"]["key"] = "a"


def other_slot(added: dict[str, Any]) -> None:
    for bounds in ("minValues", "maxValues"):
        added["stats"][bounds]["_expiration_slot"] += 3


def other_cell(added: dict[str, Any]) -> None:
    values = added["partitionValues"]
    values["_e"] = str((int(values["_e"]) + 1) % 3)


@pytest.mark.parametrize("change", [other_key, other_slot, other_cell])
def test_a_version_with_as_many_other_rows_is_damage(index: Index, change: Change) -> None:
    tamper(index, change)
    with pytest.raises(DamagedTable, match="the note of slot 0 says"):
        IndexTable(index).required_state()


def test_files_that_somebody_has_merged_are_none(index: Index) -> None:
    log_of(index).table.optimize.compact()
    log_of(index).table.optimize.z_order(["id"])
    state = IndexTable(index).required_state()
    assert state.log.version > state.version


def test_a_commit_without_a_transaction_of_ours_is_somebody_else_s(index: Index) -> None:
    """Whatever note it carries."""
    path = Path(index.table, "_delta_log", f"{1:020d}.json")
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for fence in (None, "things2@0#0", "thing@0#0"):
        own = [action for action in actions if "txn" not in action]
        if fence is not None:
            own.append({"txn": {"appId": fence, "version": 1}})
        path.write_text("".join(json.dumps(action) + "\n" for action in own))
        assert IndexTable(index).required_state().version == 0
