"""The cost model: what a scheme does to a workload, simulated, times what that costs here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from math import ceil
from typing import Any

from tidetable.advisor.calibration import Calibration
from tidetable.advisor.workload import UNITS, Workload
from tidetable.config.scheme import SchemeConfig
from tidetable.core.schemes import Scheme
from tidetable.core.simulate import Simulation, Update, simulate
from tidetable.core.split import SPLIT_BYTES_MIN

PROBED_BYTES = 16 * 1024**2
"""A probe reads of a sorted file the row group that holds the key, which has this size at most."""

UPDATES_MAX = 72
"""So many updates tell enough of a source that is even; of another, a whole window."""


@dataclass(frozen=True)
class Prediction:
    """What a table under one scheme will cost, in a steady state."""

    label: str
    update_parts: Mapping[str, float]
    """Seconds of an average update by what they are spent on."""

    update_s_max: float
    probe_s: float
    scan_s: float
    written_per_inserted: float
    rows_written: float
    """By an average update."""

    runs: float
    """Sorted runs after an average update: a probe has to open a file of each."""

    files: float
    files_max: int
    dead: float
    """The share of stored rows that have expired or been superseded."""

    purge_within: timedelta
    """No byte of an expired row is in storage for longer than this."""

    @property
    def update_s(self) -> float:
        return sum(self.update_parts.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "update_s": round(self.update_s, 3),
            "update_s_max": round(self.update_s_max, 3),
            "probe_ms": round(1000 * self.probe_s, 1),
            "scan_s": round(self.scan_s, 3),
            "written_per_inserted": round(self.written_per_inserted, 3),
            "rows_written": round(self.rows_written, 1),
            "files": round(self.files, 1),
            "files_max": self.files_max,
            "dead": round(self.dead, 4),
            "purge_within_s": int(self.purge_within.total_seconds()),
        }


class Simulated:
    """A workload made ready for the simulator, to be used for many schemes."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.coarse, self.factor = workload.coarse()

    @property
    def slots(self) -> int:
        """How many slots the simulated window has."""
        return self.coarse.period

    @cached_property
    def _window(self) -> Mapping[tuple[int, int], int]:
        return self.coarse.window()

    def run(self, scheme: Scheme) -> Simulation:
        """Enough updates to tell, after a warm-up that starts from a full table."""
        warmup = min(self.slots, scheme.turn)
        even = len(set(self.coarse.rates)) == 1
        updates = min(self.slots, UPDATES_MAX) if even else self.slots
        return simulate(
            scheme, self.coarse.arrivals(), updates=updates, warmup=warmup, prune=True,
            loaded=self._window,
        )  # fmt: skip


def predict(
    setting: SchemeConfig, workload: Workload | Simulated, calibration: Calibration
) -> Prediction:
    """What the setting will cost."""
    simulated = workload if isinstance(workload, Simulated) else Simulated(workload)
    scheme = setting.build(simulated.slots)
    label = setting.build(simulated.workload.period).label
    return _Costs(simulated, calibration, scheme).of(simulated.run(scheme), label)


class _Costs:
    """Turns the figures of a simulation into rows, bytes and seconds."""

    def __init__(self, simulated: Simulated, calibration: Calibration, scheme: Scheme) -> None:
        self.workload = simulated.workload
        self.factor = simulated.factor
        self.prices = calibration
        self.vectors = scheme.uses_deletion_vectors
        # A coarse slot has `factor` times the rows of a real one, in the same number of units.
        self.rows_per_unit = simulated.coarse.rows_per_slot / UNITS

    def of(self, found: Simulation, label: str) -> Prediction:
        updates = found.updates
        parts = [self._update_parts(update) for update in updates]
        number = len(updates)
        mean = {name: sum(part[name] for part in parts) / number for name in parts[0]}
        rows_written = sum(self._rows(update)[1] for update in updates) / number
        inserted = sum(self._rows(update)[0] for update in updates) / number
        files = [self._files(update) for update in updates]
        stored = sum(update.stored for update in updates) / number * self.rows_per_unit
        marked = sum(update.files_marked for update in updates) / number
        dead_for = max(update.dead_for for update in updates)
        purge_slots = (dead_for + 1) * self.factor if dead_for or marked else 0
        workload = self.workload
        return Prediction(
            label=label,
            update_parts=mean,
            update_s_max=max(sum(part.values()) for part in parts),
            probe_s=self._probe_s(found.files_avg, stored, marked),
            scan_s=self._scan_s(sum(files) / number, stored),
            written_per_inserted=rows_written / inserted if inserted else 0.0,
            rows_written=rows_written,
            runs=found.files_avg,
            files=sum(files) / number,
            files_max=max(files),
            dead=found.dead_avg,
            purge_within=purge_slots * workload.update_every + workload.keep_versions_for,
        )

    def _rows(self, update: Update) -> tuple[float, float]:
        """Rows that a real update inserts, and that it writes in all."""
        inserted = update.inserted * self.rows_per_unit / self.factor
        # A coarse update writes what a real one writes: the same cells, as full. Only that its
        # cells wait for half a coarse slot of arrivals more, on average, than real ones do.
        more = (self.factor - 1) / 2 * inserted
        return inserted, max(inserted, update.written * self.rows_per_unit - more)

    def _update_parts(self, update: Update) -> dict[str, float]:
        prices, size = self.prices, self.workload.bytes_per_row
        inserted, written = self._rows(update)
        new = prices.insert_s_per_row + prices.insert_s_per_byte * size
        again = prices.rewrite_s_per_row + prices.rewrite_s_per_byte * size
        return {
            "commit": prices.commit_s,
            "deletion vectors": prices.vectors_s if self.vectors else 0.0,
            "new rows": inserted * new,
            "rewriting": (written - inserted) * again,
            "files": update.files_written * prices.file_s,
        }

    def _files(self, update: Update) -> int:
        """Files in storage: a large cell is split by key range, which a probe does not feel."""
        written = self._rows(update)[1] * self.workload.bytes_per_row
        share = max(SPLIT_BYTES_MIN, written / self.prices.machine.cores)
        more = 0
        for units in update.sizes.values():
            size = units * self.rows_per_unit * self.workload.bytes_per_row
            more += max(ceil(size / self.workload.target_file_bytes), ceil(size / share), 1) - 1
        return update.files + more

    def _probe_s(self, runs: float, rows: float, marked: float) -> float:
        prices = self.prices
        opening = prices.probe_s + max(0.0, runs - 1) * prices.probe_s_per_file
        if marked:
            # With a deletion vector in any file, delta-rs skips nothing inside of any of them.
            return opening + marked * prices.probe_s_per_marked_file + rows * self._scan_s_per_row
        size = min(rows * self.workload.bytes_per_row, runs * PROBED_BYTES)
        return opening + size * prices.probe_s_per_byte

    def _scan_s(self, files: float, stored_rows: float) -> float:
        prices = self.prices
        opening = max(0.0, files - 1) * prices.scan_s_per_file
        return prices.scan_s + opening + stored_rows * self._scan_s_per_row

    @property
    def _scan_s_per_row(self) -> float:
        return (
            self.prices.scan_s_per_row + self.prices.scan_s_per_byte * self.workload.bytes_per_row
        )
