"""What an update of ours takes against the floor under it: the same bytes by a library alone."""

from __future__ import annotations

from collections.abc import Iterable

from bench.measured import Measured
from bench.systems.catalog import LIMITS, SWEEPS


def floor_s(found: Iterable[Measured], run: str) -> float | None:
    """The quickest limit's median update in that run; None if none was measured in it."""
    limits = (one.update_s_median for one in found if one.system in LIMITS and one.run == run)
    return min(limits, default=None)


def told_floors(found: Iterable[Measured]) -> list[str]:
    """A sentence for each of ours of the family of Sweep: how many times each limit it takes."""
    found = list(found)
    said = []
    for one in found:
        ratios = [
            f"{one.update_s_median / limit.update_s_median:.2f} of `{limit.system}`"
            for limit in found
            if one.system in SWEEPS and limit.system in LIMITS and limit.run == one.run
        ]
        if ratios:
            said.append(f"`{one.system}`: update / limit {', '.join(ratios)}")
    return said
