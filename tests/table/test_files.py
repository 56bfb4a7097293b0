"""The files of a version as columns: they say what the files one by one would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.handmade import make_table, make_update
from tests.workspace import Workspace, log_of, row
from tidetable.core.cell import Cell, CellState
from tidetable.engine.commit import publish
from tidetable.table.files import DataFile, Files
from tidetable.table.log import open_log
from tidetable.table.state import IndexTable

HERE, THERE = Cell(0, 1), Cell(-1, -1)
A = DataFile("a", HERE, 3, 30, (1, 2), (4, 6), ("k", "m"), False)
B = DataFile("b", HERE, 2, 50, (0, 1), (5, 5), ("a", "l"), True)
C = DataFile("c", THERE, 0, 10, None, (7, 9), None, False)


def test_they_are_the_files_that_went_in() -> None:
    assert list(Files.listed([A, B, C])) == [A, B, C]
    assert list(Files.listed([])) == []
    assert not Files.listed([])


def test_together() -> None:
    files = Files.listed([A, B, C])
    assert (len(files), files.rows, files.bytes) == (3, 5, 90)
    there, here = files.by_cell
    assert (there.cell, there.insertion, there.expiration, there.key) == (THERE, None, (7, 9), None)
    assert (here.insertion, here.expiration, here.key) == ((0, 2), (4, 6), ("a", "m"))
    assert files.cells == {THERE: CellState(0, 1, 10, 7, 9), HERE: CellState(5, 2, 80, 4, 6)}
    assert files.rows_by("min_insertion") == {1: 3, 0: 2, None: 0}


def test_of_a_cell_nothing_is_known_if_one_file_does_not_tell() -> None:
    untold = DataFile("d", HERE, 1, 1, None, None, None, False)
    (cell,) = Files.listed([A, untold]).by_cell
    assert (cell.rows, cell.insertion, cell.expiration, cell.key) == (4, None, None, None)


def test_of_none_there_is_nothing_to_say() -> None:
    none = Files.listed([])
    assert (len(none), none.rows, none.bytes, none.by_cell) == (0, 0, 0, [])
    assert none.cells == none.rows_by("min_expiration") == {}


def test_some_of_them() -> None:
    files = Files.listed([A, B, C])
    assert list(files.of([THERE])) == [C]
    assert list(files.of([])) == []
    assert list(files.without(Files.listed([A, C]))) == [B]
    assert list(files.largest(2)) == [B, A]


def test_what_a_commit_makes_of_them() -> None:
    files = Files.listed([A, B])
    assert list(files.changed(["a"], [C])) == [B, C]
    marked = DataFile("b", HERE, 1, 50, (0, 1), (5, 5), ("a", "l"), True)
    assert list(files.changed(["b"], [marked])) == [A, marked]
    assert list(files.changed([], [marked])) == [A, marked]
    with pytest.raises(KeyError):
        files.changed(["c"], [])


def test_bounds_of_another_kind_than_the_key_are_not_known() -> None:
    odd = DataFile("d", HERE, 1, 1, (1, 1), (2, 2), (1, 2), False)
    *_, found = Files.listed([A]).changed([], [odd])
    assert (found.key, found.insertion) == (None, (1, 1))


# -- what comes after a version, by the commits alone ----------------------------------------------


@pytest.fixture
def table(workspace: Workspace) -> IndexTable:
    return IndexTable(make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 5), row(3, -1, 4.5)]))


def test_a_log_follows_our_commits_without_being_opened(
    workspace: Workspace, table: IndexTable
) -> None:
    before = table.required_state()
    make_update(workspace, table.index, [row(4, 0.5, 3.5)], 1)
    publish(log_of(table.index), [], before.note.as_rebuilt("run"), "things@1#1")
    followed = before.log.followed()
    assert followed is not None
    opened = log_of(table.index)
    assert followed.version == opened.version == 2
    assert sorted(followed.files, key=lambda file: file.path) == sorted(
        opened.files, key=lambda file: file.path
    )
    assert followed.cells == opened.cells
    assert followed.is_used_up("things@1#1")
    assert not before.log.is_used_up("things@1#1")
    assert followed.table.version() == 2
    assert before.log.table.version() == 0
    assert followed.followed() is None  # there is nothing newer


def test_a_stranger_s_commit_between_is_noticed(workspace: Workspace, table: IndexTable) -> None:
    before = table.required_state().log
    before.table.delete("id = 2")
    followed = before.followed()
    newest = open_log(table.path)
    assert followed is None or newest is not None
    assert followed is None or followed.rows == newest.rows  # type: ignore[union-attr]
    with pytest.raises(Exception, match="was not made by Tidetable"):
        table.state(before=before)


@pytest.mark.parametrize("kind", ["metaData", "protocol"])
def test_a_commit_that_changes_more_than_files_takes_an_opening(
    table: IndexTable, kind: str
) -> None:
    before = table.required_state().log
    said = next(one for one in before.actions(0) if kind in one)
    path = Path(table.path, "_delta_log", f"{1:020d}.json")
    path.write_text(json.dumps(said) + "\n")
    assert before.followed() is None


def test_a_file_without_statistics_takes_an_opening(table: IndexTable) -> None:
    before = table.required_state().log
    added = next(one["add"] for one in before.actions(0) if "add" in one)
    del added["stats"]
    path = Path(table.path, "_delta_log", f"{1:020d}.json")
    path.write_text(json.dumps({"add": added | {"path": "other.parquet"}}) + "\n")
    assert before.followed() is None
