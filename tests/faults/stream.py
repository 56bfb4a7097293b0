"""The stream of the stories and the kills: a constant rate, so that no count tells rows apart.

Every slot brings one row for each number of slots that a row may live: after the first window as
many rows come as go, at every update. What is wrong is then seen by the rows themselves or not at
all. Slots that are told to be rough bring more: bad rows, equal rows, rows that come late.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random

from tests.workspace import EVERY, START, Row

PERIOD = 5
LONGEST = timedelta(minutes=47)
KEYS = ("A", "a", "b", "b ", "ä", "日本", "it's")
_MICROSECOND = timedelta(microseconds=1)


class Stream:
    """Rows of slots, each drawn once, by one seed."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self._next = 0

    def steady(self, slot: int) -> list[Row]:
        """One row for each number of slots that it lives on after its own."""
        return [self.row(slot, lives) for lives in range(PERIOD + 1)]

    def rough(self, slot: int) -> list[Row]:
        """Some more: equal rows and bad ones."""
        rows = [
            self.row(slot, self.draw.randint(0, PERIOD)) for _ in range(self.draw.randint(1, 3))
        ]
        rows.append(rows[0])
        return [*rows, self.bad(slot)]

    def row(self, slot: int, lives: int) -> Row:
        """A row that arrives in `slot` and expires in the slot that is `lives` later."""
        # Before the end of its slot: on the edges, beside them, anywhere.
        choices = (timedelta(0), EVERY - _MICROSECOND, _MICROSECOND, self._part())
        before = self.draw.choice(choices)
        arrived = START + slot * EVERY - before
        gone = START + (slot + lives) * EVERY - self.draw.choice(choices)
        gone = min(gone, arrived + LONGEST)
        arrived = min(arrived, gone)
        if lives == PERIOD:  # as long as may be: it comes early enough to end that late
            arrived = START + slot * EVERY - timedelta(minutes=self.draw.choice((0, 1, 6)))
            gone = arrived + LONGEST
        came = arrived - self.draw.choice((timedelta(0), self._part()))
        return {
            "id": self._number(),
            "key": self.draw.choice(KEYS),
            "arrived_at": arrived,
            "inserted_at": came,
            "expires_at": gone,
        }

    def bad(self, slot: int) -> Row:
        """A row that must not be taken, for one of the reasons."""
        row = dict(self.row(slot, self.draw.randint(0, PERIOD - 1)))
        arrived = row["arrived_at"]
        match self.draw.randint(0, 4):
            case 0:
                row["key"] = self.draw.choice((None, ""))
            case 1:
                row["expires_at"] = row["inserted_at"] - _MICROSECOND
            case 2:
                row["expires_at"] = arrived + LONGEST + _MICROSECOND
            case 3:
                row |= {"inserted_at": arrived + _MICROSECOND, "expires_at": arrived + EVERY}
            case 4:
                row["arrived_at"] = None
        return row

    def _part(self) -> timedelta:
        return timedelta(microseconds=self.draw.randint(0, EVERY // _MICROSECOND - 1))

    def _number(self) -> int:
        self._next += 1
        return self._next
