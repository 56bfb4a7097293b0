"""Whether a file's rows are where they belong, when rows move from cell to cell."""

from __future__ import annotations

import pytest

from tidetable.core.cell import LOG, MERGED_LOG, Cell
from tidetable.core.places import Places
from tidetable.core.schemes import Scheme, Sweep, Tiers
from tidetable.quality.files import File

SLOT = 21
TIERS = Tiers(40, 2, 3)
SWEEP = Sweep(40, 3, 2, deletion_vectors=True, merge_log=4)


def places(scheme: Scheme) -> Places:
    return Places(scheme, scheme.fold(1, SLOT))


def file(
    cell: Cell, insertion: tuple[int, int], expiration: tuple[int, int], *, hides: bool = False
) -> File:
    return File(
        path="a.parquet", cell=cell, bytes=1, rows=2, has_deletions=hides, insertion=insertion,
        expiration=expiration, expires_at=None, no_key=0, no_time=0, no_slot=0, has_statistics=True,
    )  # fmt: skip


@pytest.mark.parametrize("scheme", [TIERS, SWEEP], ids=["tiers", "merged log"])
def test_a_row_is_right_where_the_updates_have_left_it_and_nowhere_else(scheme: Scheme) -> None:
    found = places(scheme)
    plan = scheme.fold(1, SLOT)
    for insertion in range(1, SLOT + 1):
        for expiration in range(SLOT + 1, insertion + 41):
            slots = ((insertion, insertion), (expiration, expiration))
            right = {
                scheme.cell_of(insertion, expiration, plan),
                scheme.initial_cell(insertion, expiration),
            }
            for cell in scheme.cells():
                assert found.is_wrong(file(cell, *slots)) is (cell not in right)
                assert found.is_right(file(cell, *slots)) is (cell in right)


def test_a_run_of_tiers_is_right_as_a_whole() -> None:
    """Group 0 has been swept 11 times up to slot 21: 1 to 9 are a run of level 2, 10 and 11 not."""
    found = places(TIERS)
    for hides in (False, True):
        run = file(Cell(2, 0), (1, 17), (23, 41), hides=hides)
        assert not found.is_wrong(run)
    assert found.is_wrong(file(Cell(2, 0), (1, 18), (23, 41)))
    assert found.is_wrong(file(Cell(0, 0), (17, 21), (23, 41)))
    assert not found.is_wrong(file(Cell(0, 0), (18, 21), (23, 41)))


def test_a_load_may_have_put_any_row_into_the_top_level() -> None:
    found = places(TIERS)
    assert not found.is_wrong(file(Cell(TIERS.top, 0), (-5, 20), (23, 41)))
    assert found.is_wrong(file(Cell(TIERS.top, 1), (-5, 20), (23, 41)))
    assert found.is_wrong(file(Cell(0, 0), (-5, 0), (23, 23)))


@pytest.mark.parametrize("log", [LOG, MERGED_LOG])
def test_of_a_log_from_which_rows_have_left_nothing_is_certain(log: Cell) -> None:
    found = places(SWEEP)
    hidden = file(log, (2, 2), (23, 30), hides=True)
    assert (found.is_wrong(hidden), found.is_right(hidden)) == (False, False)
