"""What a source asks of its table: how many rows come, how long they live, how large they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil
from typing import Any

from tidetable.core.errors import UserError
from tidetable.core.simulate import Arrivals

SLOTS_MAX = 360
"""A longer window is simulated with so many slots at most, each of several real ones."""

UNITS = 100_000
"""An average slot has so many units in the simulation, whatever the number of its rows."""


@dataclass(frozen=True)
class Workload:
    """An average slot of the source, and what of the index's own settings bears on the cost."""

    lifetimes: tuple[float, ...]
    """Rows of an average slot by lifetime: of 1 slot, of 2 slots, ... of p slots."""

    bytes_per_row: float
    """As stored in the table."""

    update_every: timedelta
    keep_versions_for: timedelta = timedelta(0)
    target_file_bytes: int = 64 * 1024**2
    rates: tuple[float, ...] = (1.0,)
    """Rows of successive slots relative to the average one, over and over."""

    def __post_init__(self) -> None:
        if not self.lifetimes or min(self.lifetimes) < 0 or sum(self.lifetimes) <= 0:
            raise UserError(
                "A workload needs rows: the source holds none that live for a slot or longer. "
                "Wait until some have arrived, or name a scheme in the YAML."
            )

    @property
    def period(self) -> int:
        """p: the number of slots in the window."""
        return len(self.lifetimes)

    @property
    def rows_per_slot(self) -> float:
        return sum(self.lifetimes)

    @property
    def live_rows(self) -> float:
        """Rows in the table: each stays for as many updates as it lives slots."""
        return sum(slots * rows for slots, rows in enumerate(self.lifetimes, start=1))

    @property
    def live_bytes(self) -> float:
        return self.live_rows * self.bytes_per_row

    @property
    def mean_lifetime(self) -> float:
        """In slots."""
        return self.live_rows / self.rows_per_slot

    # -- for the simulator -----------------------------------------------------------------------

    def coarse(self, slots_max: int = SLOTS_MAX) -> tuple[Workload, int]:
        """The same window in at most so many slots, and how many real ones each stands for."""
        factor = ceil(self.period / slots_max)
        if factor == 1:
            return self, 1
        lifetimes = [0.0] * ceil(self.period / factor)
        for lifetime, rows in enumerate(self.lifetimes, start=1):
            lifetimes[ceil(lifetime / factor) - 1] += factor * rows
        parts = [self.rates[i : i + factor] for i in range(0, len(self.rates), factor)]
        rates = tuple(sum(part) / len(part) for part in parts)
        return replace(self, lifetimes=tuple(lifetimes), rates=rates), factor

    def arrivals(self) -> Arrivals:
        """For the simulator, in units."""
        shares = self._units()

        def of(slot: int) -> Mapping[int, int]:
            rate = self.rates[slot % len(self.rates)]
            return {
                slot + lifetime: max(1, round(units * rate))
                for lifetime, units in shares.items()
                if rate > 0
            }

        return of

    def window(self) -> dict[tuple[int, int], int]:
        """The units alive at slot 0 by (insertion slot, expiration slot): what a load finds."""
        arrivals = self.arrivals()
        return {
            (slot, expiration): units
            for slot in range(1 - self.period, 1)
            for expiration, units in arrivals(slot).items()
            if expiration > 0
        }

    def _units(self) -> dict[int, float]:
        scale = UNITS / self.rows_per_slot
        return {
            lifetime: rows * scale
            for lifetime, rows in enumerate(self.lifetimes, start=1)
            if rows > 0
        }

    # -- as JSON ---------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """What people and drift need of it; not the histogram, which may be long."""
        return {
            "rows_per_slot": round(self.rows_per_slot, 3),
            "mean_lifetime_slots": round(self.mean_lifetime, 3),
            "bytes_per_row": round(self.bytes_per_row, 1),
            "live_rows": round(self.live_rows),
            "live_bytes": round(self.live_bytes),
            "period": self.period,
        }


def uniform(rows_per_slot: float, period: int, **more: Any) -> Workload:
    """Lifetimes uniform over 1..period slots, as in the papers' Theorem 1."""
    return Workload(lifetimes=(rows_per_slot / period,) * period, **more)
