"""How large each size is, and which systems meet which workload in it.

Every system meets ICDE's workload, except those that are made for long windows. The other workloads
meet those for which they are interesting, so that a size stays within its time: half an hour
for small and two hours for medium, on two cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.systems.catalog import FOR_LONG_WINDOWS, LIMITS, SYSTEMS
from bench.workload import Workload
from tidetable.core.errors import UserError

MB = 1_000_000

_UNIFORM = Workload("uniform_36", 36)
_WORKLOADS = {
    workload.name: workload
    for workload in (
        _UNIFORM,
        Workload("zipf_36", 36, keys="zipf"),
        Workload("uniform_144", 144),
        Workload("bimodal_36", 36, lifetimes="bimodal"),
        Workload("equal_36", 36, lifetimes="equal"),
        Workload("heavy_36", 36, lifetimes="heavy"),
        Workload("swing_36", 36, swings=True),
        Workload("many_keys_36", 36, distinct=1_000_000),
        Workload("uniform_720", 720),
    )
}

_ALL = tuple(name for name in SYSTEMS if name not in FOR_LONG_WINDOWS)
_STRONGEST = (
    "sweep", "rebuild", "append_delete_dv", "liquid", "by_expiration", "clickhouse_drop", *LIMITS,
)  # fmt: skip
_WITH_ZORDER = (*_STRONGEST, "zorder", "zorder_no_dv", "sweep_by_expiration")
_FEW = (*_WITH_ZORDER, "clickhouse")
# Without append_delete_dv: delta-rs 1.6 stops for ever on its more than 512 files with vectors.
_LONG_WINDOW = ("sweep", *FOR_LONG_WINDOWS, "optimize", "liquid", *LIMITS)


@dataclass(frozen=True)
class Size:
    """A size of the benchmark: live bytes, and the pairs of workload and system."""

    name: str
    live_bytes: int
    systems: dict[str, tuple[str, ...]]
    warm_up_updates: int = 12
    """Made before anything is counted, by one system of each sort. With the usual twelve the check
    of all rows, which every twelfth update makes, is among them."""

    def workload(self, name: str, updates: int | None = None) -> Workload:
        found = replace(_WORKLOADS[name], live_bytes=self.live_bytes)
        return found if updates is None else replace(found, updates=updates)


SIZES = {
    size.name: size
    for size in (
        # For the tests: as quick as it can be and still go through everything.
        Size("tiny", MB // 2, {"uniform_36": _ALL}, warm_up_updates=2),
        # What an update costs when there is next to nothing to write.
        Size("mini", MB, {"uniform_36": _ALL}),
        Size(
            "small",
            100 * MB,
            {
                "uniform_36": _ALL,
                "uniform_144": _FEW,
                "bimodal_36": _FEW,
            },
        ),
        Size(
            "medium",
            1000 * MB,
            {
                "uniform_36": _ALL,
                "zipf_36": _WITH_ZORDER,
                "uniform_144": _STRONGEST,
                "bimodal_36": _STRONGEST,
                "equal_36": _STRONGEST,
                "heavy_36": _STRONGEST,
                "swing_36": _STRONGEST,
                "many_keys_36": _WITH_ZORDER,
                "uniform_720": _LONG_WINDOW,
            },
        ),
        Size(
            "large",
            5000 * MB,
            {
                "uniform_36": _WITH_ZORDER,
                "zipf_36": _WITH_ZORDER,
                "uniform_144": _STRONGEST,
                "uniform_720": _LONG_WINDOW,
            },
        ),
    )
}


@dataclass(frozen=True)
class Choice:
    """What a call of the command is to run: workloads, each with its systems."""

    size: Size
    pairs: dict[str, tuple[str, ...]]
    updates: int | None = None

    @property
    def label(self) -> str:
        """Names the results: a run with another number of updates has results of its own."""
        return self.size.name if self.updates is None else f"{self.size.name}-{self.updates}"

    def workload(self, name: str) -> Workload:
        return self.size.workload(name, self.updates)


def chosen(
    size: str,
    systems: Sequence[str] = (),
    workloads: Sequence[str] = (),
    updates: int | None = None,
) -> Choice:
    """The pairs of a size, or those of them that are asked for; UserError if there are none such.

    A system that is named meets every workload that is asked for, also where the size leaves it
    out.
    """
    _check("SIZE", [size], SIZES)
    _check("SYSTEMS", systems, SYSTEMS)
    _check("WORKLOADS", workloads, _WORKLOADS)
    found = SIZES[size]
    names = workloads or tuple(found.systems)
    wanted = tuple(name for name in SYSTEMS if name in systems)
    pairs = {name: wanted or found.systems.get(name, _STRONGEST) for name in names}
    return Choice(found, pairs, updates)


def _check(what: str, given: Sequence[str], known: Mapping[str, object]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UserError(
            f"{what}={','.join(given)}: there is no {', '.join(unknown)}. "
            f"There are: {', '.join(known)}."
        )
