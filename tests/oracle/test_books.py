"""The comparison finds what a count cannot: it would be worth nothing otherwise. No JVM."""

from __future__ import annotations

import pytest

from tests.cli.handmade import make_table
from tests.oracle.books import Books
from tests.workspace import Workspace, row

ROWS = [row(1, -0.5, 2.5), row(2, -1, 4)]


def followed(workspace: Workspace, shown: list[object]) -> Books:
    """What follows a table that holds ROWS, with a source that shows something else."""
    books = Books(make_table(workspace, ROWS))
    books.show(shown)  # type: ignore[arg-type]
    assert books.follow() == ["0: load None -> 0"]
    return books


def test_equal_rows_are_right(workspace: Workspace) -> None:
    followed(workspace, [*ROWS, row(3, 0.5, 3), row(4, -1, -0.5)]).check(workspace, settled=False)


@pytest.mark.parametrize(
    "other",
    [
        row(3, -1, 4),
        row(2, -1, 4.5),
        row(2, -1.5, 4),
        row(2, -1, 4, key="another"),
    ],
    ids=["another row", "another expiration", "another arrival", "another key"],
)
def test_another_row_in_its_place_is_found(workspace: Workspace, other: object) -> None:
    books = followed(workspace, [ROWS[0], other])
    with pytest.raises(AssertionError, match="rows at slot 0: lacks 1"):
        books.check(workspace, settled=False)


def test_a_row_that_is_there_twice_is_found(workspace: Workspace) -> None:
    books = followed(workspace, [ROWS[0], ROWS[0], ROWS[1]])
    with pytest.raises(AssertionError, match="rows at slot 0: lacks 1"):
        books.check(workspace, settled=False)


def test_a_bad_row_that_is_not_in_quarantine_is_found(workspace: Workspace) -> None:
    books = followed(workspace, [*ROWS, row(5, -0.5, 2, key="")])
    with pytest.raises(AssertionError, match="quarantine at slot 0: lacks 1"):
        books.check(workspace, settled=False)


def test_a_commit_without_a_row_in_the_table_of_updates_is_found(workspace: Workspace) -> None:
    with pytest.raises(AssertionError, match="table of updates"):
        followed(workspace, list(ROWS)).check(workspace)
