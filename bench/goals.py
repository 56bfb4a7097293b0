"""The goals for the default scheme, as ratios between systems of one workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

from bench.measured import Measured
from bench.systems.catalog import DEFAULT
from bench.workload import Workload
from tidetable.core.schemes import Sweep
from tidetable.core.simulate import simulate

GROUPS = 8
TARGET_FILE_BYTES = 64 * 1024**2
PIECES_MIN = 2
"""A cell is cut by key range where cores would be idle otherwise: into two parts on two cores."""


@dataclass(frozen=True)
class Outcome:
    """A goal, the limit it sets and what was reached; `reached` is None if it was not measured."""

    goal: str
    limit: float
    reached: float | None
    at_least: bool = False

    @property
    def is_met(self) -> bool | None:
        if self.reached is None:
            return None
        return self.reached >= self.limit if self.at_least else self.reached <= self.limit

    @property
    def told(self) -> str:
        return {True: "met", False: "**not met**", None: "not measured"}[self.is_met]


def outcomes(workload: Workload, found: Mapping[str, Measured]) -> list[Outcome]:
    """The goals on one workload, held against the systems that were measured on it."""
    ours = found.get(DEFAULT)
    if ours is None:
        return []

    def ratio(peer: str, figure: Callable[[Measured], float | None]) -> float | None:
        """Ours to the peer's; only within one run, since machines are noisy."""
        other = found.get(peer)
        if other is None or other.run != ours.run:
            return None
        mine, theirs = figure(ours), figure(other)
        return None if mine is None or not theirs else mine / theirs

    def probe(measured: Measured) -> float | None:
        return measured.probe_ms_delta_rs

    faster = ratio("append_delete_dv", probe)
    listed = [
        Outcome(
            "update (median), of Rebuild 4x4's", 0.5, ratio("rebuild", lambda m: m.update_s_median)
        ),
        Outcome(
            "update (median), of append + DELETE + OPTIMIZE ZORDER's",
            0.25,
            ratio("zorder", lambda m: m.update_s_median),
        ),
        Outcome(
            "probe through delta-rs, times faster than append + DELETE with deletion vectors",
            3.0,
            1 / faster if faster else None,
            at_least=True,
        ),
        Outcome(
            "probe through delta-rs, of a freshly ZORDERed table's", 1.0, ratio("zorder", probe)
        ),
        Outcome("bytes stored per live byte", 1.1, ours.stored_per_live),
        Outcome("files, of the scheme's bound", 1.0, ours.files_max / files_bound(workload)),
    ]
    if not workload.swings:
        largest = Outcome(
            "largest update, of the median", 1.5, ours.update_s_max / ours.update_s_median
        )
        listed.insert(2, largest)
    return listed


def files_bound(workload: Workload) -> int:
    """Files that the default scheme may have: its bound, each base cell cut by key range."""
    scheme = Sweep(workload.period, GROUPS, 1, False)
    cell = workload.live_bytes / GROUPS
    pieces = max(PIECES_MIN, ceil(cell / TARGET_FILE_BYTES))
    return simulate(scheme).files_max + GROUPS * (pieces - 1) + pieces
