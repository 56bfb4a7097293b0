"""A steady stream: rows that come in every slot, and which of them live after an update."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.oracle import Oracle
from tests.workspace import EVERY, START, Row, row

LAST = 8
"""Rows arrive up to this slot."""


def rows_of_every_slot() -> Iterator[Row]:
    """Two rows for each slot, one that lives for a slot and a half and one for five."""
    for slot in range(-1, LAST + 1):
        yield row(10 * slot, slot, slot + 1.5)
        yield row(10 * slot + 1, slot - 0.5, slot + 4.5)


def expected(slot: int) -> list[int]:
    """The ids of the rows that live at the end of the slot."""
    oracle = Oracle(START, EVERY, 6 * EVERY)
    oracle.add(rows_of_every_slot())
    return sorted(one["id"] for one in oracle.live_at_slot(slot))
