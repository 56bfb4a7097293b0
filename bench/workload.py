"""Workloads: which rows arrive in which slot, with which key, and how long they live.

All of it follows from a row's number by hashing, so every run and every system sees the same rows.
A slot is an hour and a lifetime is a whole number of slots; so a row that arrived in slot j and
lives L slots expires in slot j + L.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import accumulate
from typing import Literal

START = datetime(2024, 1, 1, tzinfo=UTC)
SLOT = timedelta(hours=1)
ROW_BYTES = 1000
PAYLOAD_BYTES = ROW_BYTES - 28
"""The rest of a row is an integer and three timestamps."""

SWING_SLOTS = 12
"""A swinging rate goes up and down once in so many slots."""

ZIPF_STEPS = 4096
"""So fine is the table that turns an even number into a key by Zipf's law."""

Lifetimes = Literal["uniform", "bimodal", "equal", "heavy"]
Keys = Literal["uniform", "zipf"]


@dataclass(frozen=True)
class Workload:
    """One stream of rows, large enough that `live_bytes` of them are alive at any time."""

    name: str
    period: int
    lifetimes: Lifetimes = "uniform"
    keys: Keys = "uniform"
    distinct: int = 100
    swings: bool = False
    live_bytes: int = 100_000_000
    updates: int = 12

    @property
    def told(self) -> str:
        """What it is, for people."""
        lives = {
            "uniform": f"lifetimes uniform over 1 to {self.period} slots",
            "bimodal": f"half of the rows live 1 slot, half {self.period}",
            "equal": f"all rows live {self.period} slots",
            "heavy": f"lifetimes heavy-tailed (one in x lives x slots), at most {self.period}",
        }[self.lifetimes]
        keys = f"{self.distinct:,} keys, {'Zipf 1' if self.keys == 'zipf' else 'uniform'}"
        rate = "rate swinging by 4x" if self.swings else "constant rate"
        return f"p = {self.period}; {lives}; {keys}; {rate}"

    @property
    def digest(self) -> str:
        """Changes when the rows change."""
        text = json.dumps({**asdict(self), "row": ROW_BYTES}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    # -- lifetimes -------------------------------------------------------------------------------

    def share_living(self, slots: int) -> float:
        """Which share of the rows lives longer than so many slots."""
        if slots >= self.period:
            return 0.0
        if slots < 1:
            return 1.0
        return {
            "uniform": 1 - slots / self.period,
            "bimodal": 0.5,
            "equal": 1.0,
            "heavy": 1 / (slots + 1),
        }[self.lifetimes]

    @cached_property
    def mean_lifetime(self) -> float:
        return sum(self.share_living(slots) for slots in range(self.period))

    def lifetime_sql(self, even: str) -> str:
        """Slots that a row lives, from an expression that is even in [0, 1)."""
        return {
            "uniform": f"1 + int({even} * {self.period})",
            "bimodal": f"CASE WHEN {even} < 0.5 THEN 1 ELSE {self.period} END",
            "equal": f"{self.period}",
            "heavy": f"int(least({self.period}D, floor(1 / (1 - {even}))))",
        }[self.lifetimes]

    # -- arrivals --------------------------------------------------------------------------------

    @property
    def slots(self) -> range:
        """From the oldest slot that can hold a live row at the start to the last update's."""
        return range(1 - self.period, self.updates + 1)

    def arrivals(self, slot: int) -> int:
        """Rows that arrive in a slot. Of the slots up to 0 only those alive after 0 are made."""
        per_slot = self.live_bytes / ROW_BYTES / self.mean_lifetime
        if self.swings:
            per_slot *= 1 + 0.6 * math.sin(2 * math.pi * slot / SWING_SLOTS)
        return max(1, round(per_slot))

    # -- keys ------------------------------------------------------------------------------------

    def key_sql(self, even: str) -> str:
        """The key of a row, from 1 on, from an expression that is even in [0, 1)."""
        if self.keys == "uniform":
            return f"1 + int({even} * {self.distinct})"
        table = json.dumps([self.key_at(step / ZIPF_STEPS) for step in range(ZIPF_STEPS)])
        return f"element_at(from_json('{table}', 'array<int>'), 1 + int({even} * {ZIPF_STEPS}))"

    def key_at(self, even: float) -> int:
        """The same in Python: key 1 is the most frequent one by Zipf's law."""
        if self.keys == "uniform":
            return 1 + int(even * self.distinct)
        wanted = even * self._zipf_sums[-1]
        return 1 + next(i for i, total in enumerate(self._zipf_sums) if total > wanted)

    @cached_property
    def _zipf_sums(self) -> Sequence[float]:
        return list(accumulate(1 / key for key in range(1, self.distinct + 1)))

    def probed_keys(self, number: int) -> list[int]:
        """Keys to probe, as often frequent ones as rows have them."""
        return [self.key_at((n + 0.5) / number) for n in range(number)]


def end_of(slot: int) -> datetime:
    """The time as of which update `slot` leaves a table."""
    return START + slot * SLOT


def sql_time(moment: datetime) -> str:
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}'"
