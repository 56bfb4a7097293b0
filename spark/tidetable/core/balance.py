"""How evenly a layout spreads its rows (Theorem 1 of ICDE and TR-05, 4.1 of THESIS)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isqrt

from tidetable.core.cell import LOG, Cell
from tidetable.core.errors import UserError


def imbalance(sizes: Iterable[float]) -> float:
    """The largest cell as a multiple of the mean: 1 is even; 1 also if there is no row at all."""
    sizes = list(sizes)
    total = sum(sizes)
    return max(sizes) * len(sizes) / total if total else 1.0


def alike(sizes: Mapping[Cell, int]) -> dict[Cell, int]:
    """The sizes that a layout means to be alike, by cell.

    A log is a queue, as long as it has to be. The levels of a group under Tiers are far apart by
    design, so they are taken together, as level 0.
    """
    base = {cell: rows for cell, rows in sizes.items() if not cell.is_log}
    if LOG not in sizes:
        return base
    groups = {Cell(0, cell.e): 0 for cell in base}
    for cell, rows in base.items():
        groups[Cell(0, cell.e)] += rows
    return groups


def variance(sizes: Iterable[float]) -> float:
    """Theorem 1's "variance": the SUM of the squared deviations from the mean."""
    sizes = list(sizes)
    mean = sum(sizes) / len(sizes)
    return sum((size - mean) ** 2 for size in sizes)


def round_robin_variance(n: int, period: int) -> float:
    """Theorem 1 for n cells, round-robin, in units of one (insertion, expiration) slot pair."""
    _side_and_width(n, period)
    return period**2 / 4 * (1 - 1 / n)


def chronological_variance(n: int, period: int) -> float:
    """Theorem 1 for n cells, chronological, averaged over the cycle of states.

    The papers' closed form lets all cells off the diagonal change and so holds for n = 4 only;
    this is the sum that simulation confirms (docs/papers.md).
    """
    s, q = _side_and_width(n, period)
    mean = period * (period + 1) / (2 * n)
    diagonal = s * (q * (q + 1) / 2 - mean) ** 2
    changing = sum((i * q - mean) ** 2 + (q**2 - i * q - mean) ** 2 for i in range(q)) / q
    resting = mean**2 + (q**2 - mean) ** 2
    return diagonal + (s - 1) * changing + (s - 1) * (s - 2) / 2 * resting


def _side_and_width(n: int, period: int) -> tuple[int, int]:
    s = isqrt(n) if n > 0 else 0
    if s == 0 or s * s != n or period % s or period < 2 * s:
        raise UserError(
            f"Theorem 1 was asked for {n} cells and {period} slots.",
            "It needs a square number of cells whose root divides the slots at least twice.",
            "Choose such a pair, or simulate.",
        )
    return s, period // s
