"""What a table must hold, from timestamps alone.

Nothing here comes from tidetable: it is the definition of a hard window, checked row by row, that
the planner and the Delta executor are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Counts(NamedTuple):
    """What one update, or several, did to the rows."""

    inserted: int
    dead_on_arrival: int
    expired: int
    quarantined: int = 0


class Oracle:
    """All rows that ever arrived; says which are live after update j and what update j did.

    A row is a mapping with at least `key`, `arrived_at`, `inserted_at` and `expires_at`.
    """

    def __init__(self, start: datetime, every: timedelta, longest: timedelta) -> None:
        self.start = start
        self.every = every
        self.longest = longest
        self.rows: list[Row] = []
        self.bad: list[Row] = []
        self._taken: dict[int, datetime] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """Adds rows, in any order and at any time; bad input is refused, not counted."""
        for row in rows:
            if row["expires_at"] > row["arrived_at"] + self.longest:
                raise ValueError(f"outlives the window of {self.longest}: {dict(row)}")
            if not row["inserted_at"] <= min(row["arrived_at"], row["expires_at"]):
                raise ValueError(f"inserted after it arrived or expired: {dict(row)}")
            self.rows.append(row)

    def add_bad(self, rows: Iterable[Row]) -> None:
        """Adds rows that must not be taken, but counted in the slot in which they arrived."""
        self.bad.extend(rows)

    def take_late(self, rows: Iterable[Row], slot: int, *, bad: bool = False) -> None:
        """Adds rows of slots that were done already; they count as if they arrived in `slot`."""
        for row in rows:
            # Its own copy: an equal row, or even the same object, may have come on time.
            late = dict(row)
            self._taken[id(late)] = self.edge(slot)
            if bad:
                self.add_bad([late])
            else:
                self.add([late])

    def arrival(self, row: Row) -> datetime:
        """When the row arrived, or the end of the slot by which it was found."""
        return self._taken.get(id(row), row["arrived_at"])

    def slots(self, row: Row) -> tuple[int, int]:
        """The insertion and the expiration slot of a row."""
        return self.slot_of(self.arrival(row)), self.slot_of(row["expires_at"])

    def slot_of(self, time: datetime) -> int:
        """The slot whose edges have the time between them, the later edge included."""
        return -((self.start - time) // self.every)

    def edge(self, slot: int) -> datetime:
        """The last moment of the slot."""
        return self.start + slot * self.every

    def arrived_in(self, first: int, last: int | None = None) -> list[Row]:
        """The rows that arrived in slot first, or in slots first..last."""
        begin, end = self.edge(first - 1), self.edge(first if last is None else last)
        return [row for row in self.rows if begin < self.arrival(row) <= end]

    def live_at_slot(self, slot: int) -> list[Row]:
        """The rows that arrived by the end of the slot and expire after it."""
        edge = self.edge(slot)
        return [row for row in self.rows if self.arrival(row) <= edge < row["expires_at"]]

    def loaded(self, period: int) -> Counts:
        """What the initial load did with the rows of slots 1 - period to 0."""
        live = len(self.live_at_slot(0))
        return Counts(live, len(self.arrived_in(1 - period, 0)) - live, 0, self._bad(1 - period, 0))

    def counts(self, first: int, last: int | None = None) -> Counts:
        """What update first did; with `last`, the sums of updates first..last, folded or not."""
        each = [self._counts(slot) for slot in range(first, (first if last is None else last) + 1)]
        return Counts(*(sum(count) for count in zip(*each, strict=True)))

    def _counts(self, slot: int) -> Counts:
        begin, end = self.edge(slot - 1), self.edge(slot)
        arrived = self.arrived_in(slot)
        dead = sum(row["expires_at"] <= end for row in arrived)
        expired = sum(self.arrival(row) <= begin < row["expires_at"] <= end for row in self.rows)
        return Counts(len(arrived) - dead, dead, expired, self._bad(slot, slot))

    def _bad(self, first: int, last: int) -> int:
        return sum(self.edge(first - 1) < self.arrival(row) <= self.edge(last) for row in self.bad)
