"""Slots: the update intervals into which a timeline is cut."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidetable.core.errors import UserError


@dataclass(frozen=True)
class Timeline:
    """Slot j covers (start + (j-1) every, start + j every]; update j runs at its end.

    `start` must carry a time zone and is kept in UTC. Slots before the start are 0, -1, -2, ...
    """

    start: datetime
    every: timedelta

    def __post_init__(self) -> None:
        if self.every <= timedelta(0):
            raise UserError(
                f"The update interval is {self.every}.",
                "It must be longer than nothing.",
                "Set one such as 10 minutes.",
            )
        # Two datetimes that share a zone with summer time are subtracted by the wall clock, an
        # hour wrong twice a year; in UTC the subtraction is the time that has really passed.
        object.__setattr__(self, "start", _utc(self.start))

    def slot_of(self, t: datetime) -> int:
        """The slot in which `t` lies; a time exactly on an edge belongs to the slot it ends."""
        # timedelta // timedelta is floor division of whole microseconds: exact, no floats. The
        # two minus signs turn floor into ceiling, which puts an edge into the slot it ends.
        return -((self.start - _utc(t)) // self.every)

    def end_of(self, slot: int) -> datetime:
        """The last moment of the slot, at which its update runs."""
        return self.start + slot * self.every

    def ended_by(self, t: datetime) -> int:
        """The last slot whose end is not after `t`."""
        slot = self.slot_of(t)
        return slot if self.end_of(slot) <= t else slot - 1

    def begin_of(self, slot: int) -> datetime:
        """The moment after which the slot begins: the end of the slot before, not part of it."""
        return self.end_of(slot - 1)


def period(longest: timedelta, every: timedelta) -> int:
    """p: how many slots the longest lifetime spans, rounded up."""
    if every <= timedelta(0) or longest <= timedelta(0):
        raise UserError(
            f"The longest lifetime is {longest} and the update interval {every}.",
            "Both must be longer than nothing.",
            "Correct the one that is not.",
        )
    return -(-longest // every)


def _utc(t: datetime) -> datetime:
    if t.tzinfo is None:
        raise UserError(
            f"The time {t.isoformat()} has no time zone, so its slot is unknown.",
            remedy="Write it with one, such as 2024-03-01T00:00:00Z.",
        )
    return t.astimezone(UTC)
