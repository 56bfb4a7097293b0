"""Where another system beats our default, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.measured import Measured
from bench.systems.catalog import DEFAULT, SYSTEMS

NOISE = 0.05
"""A lead smaller than this is none."""

_MEASURES: Mapping[str, Callable[[Measured], float | None]] = {
    "update, median": lambda m: m.update_s_median,
    "update, mean": lambda m: m.update_s_mean,
    "largest update": lambda m: m.update_s_max,
    "bytes written": lambda m: m.written_per_inserted,
    "files": lambda m: float(m.files),
    "bytes stored": lambda m: m.stored_per_live,
    "probe without Spark": lambda m: m.probe_ms_delta_rs,
    "probe through Spark": lambda m: m.probe_ms_spark,
    "scan through Spark": lambda m: m.scan_s,
}
_COUNTED = frozenset({"bytes written", "files", "bytes stored"})
"""The same on every machine and at every time; the others are compared within one run only."""


@dataclass(frozen=True)
class Win:
    """A system, and in what it is ahead of the default: measure -> ours divided by its figure."""

    system: str
    by: Mapping[str, float]

    @property
    def told(self) -> str:
        leads = ", ".join(
            f"{measure} {'∞' if times == float('inf') else f'{times:.1f}'}x"
            for measure, times in self.by.items()
        )
        return f"`{self.system}`: {leads}. Why: {SYSTEMS[self.system].wins_because}."


def wins(found: Sequence[Measured]) -> list[Win]:
    """Every other system of one workload that is ahead of the default in something."""
    ours = next((one for one in found if one.system == DEFAULT), None)
    if ours is None:
        return []
    listed = []
    for other in found:
        if SYSTEMS[other.system].is_limit:  # nobody could use it instead
            continue
        by = {}
        for measure, figure in _MEASURES.items():
            mine, theirs = figure(ours), figure(other)
            if mine is None or theirs is None or other is ours:
                continue
            if other.run != ours.run and measure not in _COUNTED:
                continue
            if theirs * (1 + NOISE) < mine:
                by[measure] = mine / theirs if theirs else float("inf")
        if by:
            listed.append(Win(other.system, by))
    return listed
