"""The goals for the default scheme, as ratios between systems of one workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.measured import Measured
from bench.noise import slowness
from bench.systems.catalog import DEFAULT
from bench.workload import Workload

LAST_UPDATES = 4
"""In so many updates at the end nothing may grow beyond what was before."""


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
        Outcome(
            "the same with 8 files at once, as `tidetable probe` reads",
            1.0,
            ratio("zorder", lambda m: m.probe_ms_at_once),
        ),
        Outcome(
            "the same of a table ZORDERed into files of Delta's default size",
            1.0,
            ratio("zorder_1gb", probe),
        ),
        Outcome("bytes stored per live byte", 1.1, ours.stored_per_live),
        Outcome("files in the last four updates, of the most before", 1.0, _growth(ours)),
    ]
    if not workload.swings:
        quiet = [
            seconds / factor
            for seconds, factor in zip(
                ours.seconds, slowness(list(found.values()), DEFAULT), strict=True
            )
        ]
        typical = ours.update_s_median
        listed[2:2] = [
            Outcome("largest update, of the median", 1.5, ours.update_s_max / typical),
            Outcome("the same, without what slowed all systems alike", 1.5, max(quiet) / typical),
        ]
    return listed


def _growth(measured: Measured) -> float | None:
    """The most files at the end against the most before: above 1 they still grow."""
    files = [update.files for update in measured.updates]
    if len(files) <= LAST_UPDATES:
        return None
    return max(files[-LAST_UPDATES:]) / max(files[:-LAST_UPDATES])
