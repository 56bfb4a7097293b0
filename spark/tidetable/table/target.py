"""To which slot an update goes."""

from __future__ import annotations

from datetime import datetime

from tidetable.config import Index, format_time
from tidetable.core.errors import UserError


def wanted_slot(
    index: Index, at: int | None, until: datetime | None, slots: int | None, now: datetime
) -> int:
    """The slot that is asked for, from a table at slot `at`; below 0 if none has ended by `now`.

    By number, by time, or every slot whose end, plus the source's grace, is past.
    """
    if until is not None and slots is not None:
        raise UserError("Both a time and a number of slots are given; give one of the two.")
    if slots is not None:
        return (at or 0) + slots
    if until is None:
        return index.timeline.ended_by(now - index.source.grace)
    slot = index.timeline.ended_by(until)
    if slot < 0:
        starts = format_time(index.timeline.end_of(0))
        raise UserError(
            f"{format_time(until)} lies before {index.name} starts, {starts}. "
            "Give that time or a later one."
        )
    return slot


def within_end(index: Index, slot: int) -> int:
    """The slot, or the last one of an index that ends before it."""
    return slot if index.end is None else min(slot, index.timeline.ended_by(index.end))
