"""What a user wants of a table: how it is read, and what must not be exceeded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tidetable.advisor.model import Prediction

PROBES_PER_UPDATE = 10.0
SCANS_PER_UPDATE = 1.0


@dataclass(frozen=True)
class Wishes:
    """How often the table is read between two updates, and the limits; None for no limit."""

    probes_per_update: float = PROBES_PER_UPDATE
    scans_per_update: float = SCANS_PER_UPDATE
    update_seconds_max: float | None = None
    files_max: int | None = None
    purge_within: timedelta | None = None

    def total_s(self, found: Prediction) -> float:
        """Seconds of work in an update interval: what is to be as little as possible."""
        return sum(self.parts(found).values())

    def parts(self, found: Prediction) -> dict[str, float]:
        """The same by what they are spent on."""
        return {
            **found.update_parts,
            "probes": self.probes_per_update * found.probe_s,
            "scans": self.scans_per_update * found.scan_s,
        }

    def limits(self, found: Prediction) -> Iterator[tuple[str, float, float]]:
        """(option, what is predicted, what is allowed) for each limit, in one unit."""
        if self.update_seconds_max is not None:
            yield "--update-seconds-max", found.update_s_max, self.update_seconds_max
        if self.files_max is not None:
            yield "--files-max", found.files_max, self.files_max
        if self.purge_within is not None:
            allowed = self.purge_within.total_seconds()
            yield "--purge-within", found.purge_within.total_seconds(), allowed

    def as_json(self) -> dict[str, Any]:
        purge = None if self.purge_within is None else int(self.purge_within.total_seconds())
        return {
            "probes_per_update": self.probes_per_update,
            "scans_per_update": self.scans_per_update,
            "update_seconds_max": self.update_seconds_max,
            "files_max": self.files_max,
            "purge_within_s": purge,
        }
