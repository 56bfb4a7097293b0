"""How much of a cell an update will write again: by that a large cell is split into files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tidetable.core.cell import Cell, CellState
from tidetable.engine.commit import kept_bytes


def log_of(**cells: CellState) -> Any:
    return SimpleNamespace(cells={Cell(0, int(name[1:])): state for name, state in cells.items()})


def test_expired_rows_are_taken_off_where_they_lie() -> None:
    """A cell that is swept holds them until then; counted in, it would get a file too many."""
    log = log_of(
        e0=CellState(rows=100, bytes=10_000, first_expiration=5, last_expiration=20),
        e1=CellState(rows=100, bytes=10_000, first_expiration=6, last_expiration=21),
    )
    assert kept_bytes(log, 5, 25) == {Cell(0, 0): 7_500, Cell(0, 1): 10_000}


def test_expired_rows_of_several_cells_are_shared_out_by_rows() -> None:
    log = log_of(
        e0=CellState(rows=300, bytes=3_000, first_expiration=5),
        e1=CellState(rows=100, bytes=1_000),  # nobody knows: some may expire
        e2=CellState(rows=100, bytes=1_000, first_expiration=9),
    )
    assert kept_bytes(log, 5, 200) == {Cell(0, 0): 1_500, Cell(0, 1): 500, Cell(0, 2): 1_000}


def test_without_expired_rows_all_is_kept() -> None:
    log = log_of(e0=CellState(rows=10, bytes=1_000, first_expiration=9))
    assert kept_bytes(log, 5, 0) == {Cell(0, 0): 1_000}
    assert kept_bytes(log_of(), 5, 0) == {}
