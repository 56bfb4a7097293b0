"""The goals for the default scheme, as ratios between systems of one workload in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bench.floor import floor_s
from bench.measured import Measured
from bench.noise import slowness
from bench.systems.catalog import DEFAULT
from bench.workload import Workload

GB = 1_000_000_000
MB = 1_000_000

OF_LIMIT = ((GB, 2.0), (MB, 6.0))
"""(live bytes, update / limit): with few rows a commit and a job are most of an update."""

PROBED_AGAINST_ZORDER = ("uniform_36", "zipf_36", "many_keys_36")

LAST_UPDATES = 4
"""In so many updates at the end nothing may grow beyond what was before."""


@dataclass(frozen=True)
class Outcome:
    """A goal, the limit it sets and what came of it; `value` is None if it was not measured."""

    goal: str
    limit: float
    value: float | None
    at_least: bool = False

    @property
    def is_reached(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def told(self) -> str:
        return {True: "reached", False: "**not reached**", None: "not measured"}[self.is_reached]


def outcomes(workload: Workload, found: Mapping[str, Measured]) -> list[Outcome]:
    """The goals on one workload, held against the systems that were measured on it."""
    ours = found.get(DEFAULT)
    if ours is None:
        return []
    return [*_of_updates(workload, ours, found), *_of_probes(workload, ours, found), *_kept(ours)]


def _of_updates(
    workload: Workload, ours: Measured, found: Mapping[str, Measured]
) -> Iterator[Outcome]:
    floor = floor_s(found.values(), ours.run)
    for live, most in OF_LIMIT:
        if workload.live_bytes == live:
            yield Outcome(
                f"update / limit, {live // MB:,} MB live", most,
                None if floor is None else ours.update_s_median / floor,
            )  # fmt: skip
    if not workload.swings:
        typical = ours.update_s_median
        quiet = [
            seconds / factor
            for seconds, factor in zip(
                ours.seconds, slowness(list(found.values()), DEFAULT), strict=True
            )
        ]
        yield Outcome("largest update / median", 1.5, ours.update_s_max / typical)
        yield Outcome("the same, without what slowed all systems alike", 1.5, max(quiet) / typical)
    yield Outcome(
        "update / that of append + DELETE with deletion vectors", 0.35,
        _ratio(ours, found.get("append_delete_dv"), _update),
    )  # fmt: skip
    yield Outcome(
        "update / that of ClickHouse with DROP PARTITION", 1.5,
        _ratio(ours, found.get("clickhouse_drop"), _update),
    )  # fmt: skip


def _of_probes(
    workload: Workload, ours: Measured, found: Mapping[str, Measured]
) -> Iterator[Outcome]:
    if workload.name in PROBED_AGAINST_ZORDER:
        fresh = found.get("zorder_no_dv")
        named = "that of a freshly ZORDERed table without deletion vectors"
        yield Outcome(f"probe / {named}", 1.1, _ratio(ours, fresh, _probe))
        yield Outcome(
            "the same with 8 files at once, as `tidetable probe` reads", 1.1,
            _ratio(ours, fresh, lambda one: one.probe_ms_at_once),
        )  # fmt: skip
    other = _ratio(ours, found.get("clickhouse_drop"), _probe)
    yield Outcome(
        "probe, times faster than ClickHouse with DROP PARTITION", 3.0,
        1 / other if other else None, at_least=True,
    )  # fmt: skip


def _kept(ours: Measured) -> Iterator[Outcome]:
    yield Outcome("bytes stored per live byte", 1.1, ours.stored_per_live)
    yield Outcome("files in the last four updates, of the most before", 1.0, _growth(ours))


def _ratio(
    ours: Measured, other: Measured | None, figure: Callable[[Measured], float | None]
) -> float | None:
    """Ours to the other's; only within one run, since machines are noisy."""
    if other is None or other.run != ours.run:
        return None
    mine, theirs = figure(ours), figure(other)
    return None if mine is None or not theirs else mine / theirs


def _update(one: Measured) -> float:
    return one.update_s_median


def _probe(one: Measured) -> float | None:
    return one.probe_ms_delta_rs


def _growth(measured: Measured) -> float | None:
    """The most files at the end against the most before: above 1 they still grow."""
    files = [update.files for update in measured.updates]
    if len(files) <= LAST_UPDATES:
        return None
    return max(files[-LAST_UPDATES:]) / max(files[:-LAST_UPDATES])
