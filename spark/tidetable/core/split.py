"""Where to cut rows into parts of about equal size by key, knowing only bounds of some ranges.

The ranges are row groups of stored files. A file sorted by key has narrow ones, and they tell how
the keys are spread. A small file has one that reaches over nearly all keys, and where its rows
lie in it nobody knows: they are taken to be spread as the rows of all ranges together are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

SPLIT_BYTES_MIN = 4 * 1024**2
"""A cell is not split into parts smaller than this; from this size on every core gets one."""

ROUNDS = 20
"""So often the guess is made better. What is wrong with it shrinks each time by the share of the
rows in wide ranges."""


@dataclass(frozen=True)
class KeyRange:
    """So many rows lie between these two keys, both included."""

    first: Any
    last: Any
    rows: int


def split_points(ranges: Sequence[KeyRange], parts: int) -> list[Any]:
    """At most parts - 1 keys that cut the rows of the ranges into about equal parts.

    A point belongs to the part below it. No part is empty.
    """
    known = [found for found in ranges if found.rows > 0]
    if parts <= 1 or not known:
        return []
    bounds = sorted({bound for found in known for bound in (found.first, found.last)})
    reached = list(accumulate(_rows_by_bound(known, bounds)))
    points: list[Any] = []
    lowest = 0
    for part in range(1, parts):
        at = _nearest(reached, reached[-1] * part / parts)
        # The largest key of all would leave an empty part behind it.
        if lowest <= at < len(bounds) - 1:
            points.append(bounds[at])
            lowest = at + 1
    return points


def _rows_by_bound(ranges: Sequence[KeyRange], bounds: Sequence[Any]) -> list[float]:
    """For each bound, the rows with that key or with one between the bound before and it.

    This is Turnbull's estimate for observations of which only an interval is known (1976): the
    rows of a range are laid on its bounds as all rows were laid in the round before. Only the
    order of keys is used, so a key may be of any type that has one.
    """
    place = {bound: number for number, bound in enumerate(bounds)}
    spans = [(place[found.first], place[found.last] + 1, found.rows) for found in ranges]
    rows = [1.0] * len(bounds)
    for _ in range(ROUNDS):
        below = [0.0, *accumulate(rows)]
        steps = [0.0] * (len(bounds) + 1)
        for begin, end, number in spans:
            share = number / (below[end] - below[begin])
            steps[begin] += share
            steps[end] -= share
        rows = [old * share for old, share in zip(rows, accumulate(steps), strict=False)]
    return rows


def _nearest(reached: Sequence[float], goal: float) -> int:
    """The place at which the rows so far are nearest to the goal."""
    at = bisect_left(reached, goal)
    if at == len(reached):
        return at - 1
    return at - 1 if at and goal - reached[at - 1] < reached[at] - goal else at
