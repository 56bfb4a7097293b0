"""What a scheme promises of its cells when rows come evenly: sizes and files.

The model is that of Theorem 1: a constant rate, and lifetimes uniform over 1 to p slots. Under it
the steady state can be counted without running the simulator; the tests compare the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil, log, sqrt

from tidetable.core.balance import alike, imbalance
from tidetable.core.cell import Cell
from tidetable.core.schemes import Scheme
from tidetable.core.split import SPLIT_BYTES_MIN

STEPS_MAX = 300_000
"""A layout that takes more steps to count is not predicted: a validation must stay quick."""

ROWS_PER_CELL_MIN = 5
"""With fewer rows than this in a cell, on average, one row more or less is a large part of it."""

ROWS_PER_CELL_ENOUGH = 1000
"""With so many rows in a cell nobody calls its size an accident, however tight the limit is."""

ROW_BYTES = 200
"""What a writer takes a row for that has not seen any."""


def steady_sizes(scheme: Scheme, slot: int, first: int | None = None) -> Mapping[Cell, int] | None:
    """Rows of each cell after update `slot` of an even stream, one for each pair of slots.

    The stream began with slot `first`; p slots before, or longer, if not told. None if the layout
    is too large to count.
    """
    period = scheme.period
    oldest = slot - period + 1
    first = oldest if first is None else min(max(first, oldest), slot)
    parts = {cell.e for cell in scheme.cells()}
    if period * len(parts) > STEPS_MAX:
        return None
    plan = scheme.fold(1, slot) if slot >= 1 else None
    sizes: Counter[Cell] = Counter()
    # Rows that came in with slot i expire in slot + 1 to i + p: one slot more for each i. Where a
    # row lies depends on i and on the part of its expiration slot: each part is looked at once.
    alive: dict[int, tuple[int, int]] = {}  # part -> (one of its slots, how many)
    for insertion in range(oldest, slot + 1):
        expiration = insertion + period
        part = scheme.initial_cell(insertion, expiration).e
        one, number = alive.get(part, (expiration, 0))
        alive[part] = (one, number + 1)
        if insertion < first:
            continue
        for one, number in alive.values():
            # Before slot 1 nothing was ever swept: those rows came with a load.
            if plan is None or insertion < 1:
                cell = scheme.initial_cell(insertion, one)
            else:
                cell = scheme.cell_of(insertion, one, plan)
            sizes[cell] += number
    return {cell: sizes[cell] for cell in scheme.cells()}


def predicted_imbalance(scheme: Scheme, slot: int, first: int | None = None) -> float | None:
    """Largest / mean cell after update `slot` of an even stream that began with slot `first`."""
    sizes = steady_sizes(scheme, slot, first)
    return None if sizes is None else imbalance(alike(sizes).values())


def chance(cells: int, rows: int) -> float:
    """By how much of the mean the largest of so many cells exceeds it by accident alone.

    The largest of n counts of mean m lies at about m + sqrt(2 m ln n), if rows come independently.
    """
    return sqrt(2 * log(cells) * cells / rows) if rows and cells > 1 else 0.0


def rows_to_judge(cells: int, limit: float) -> int:
    """So many rows make the limit on imbalance meaningful: with fewer, accident may break it."""
    mean = ROWS_PER_CELL_ENOUGH
    if limit > 1:
        mean = min(mean, ceil(2 * log(cells) / (limit - 1) ** 2))
    return cells * max(ROWS_PER_CELL_MIN, mean)


def files_allowed(scheme: Scheme, cell: Cell, rows: int, size: int) -> int:
    """How many files a cell with so many rows and bytes may have, split into parts or not.

    Writers guess the size of what they are going to write: twice the real one at worst, hence the
    factor. One more for a cell that a load has cut in two.
    """
    return scheme.files_in(cell) + 1 + 2 * max(size, rows * ROW_BYTES) // SPLIT_BYTES_MIN
