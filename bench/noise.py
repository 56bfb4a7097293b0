"""What slowed all systems at once was not theirs: the machine was busy with something else."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measured import Measured
from bench.systems.catalog import SYSTEMS

BUSY = 1.25
"""All were slower than usual by more than this: the machine was busy."""

SYSTEMS_MIN = 4
"""With fewer others nobody can say whose it was: checkpoints and OPTIMIZE come in step."""


def slowness(found: Sequence[Measured], system: str) -> list[float]:
    """For each update, how many times slower than usual the other systems of that run were.

    They take turns, so the same trouble hits them all. At least 1: nobody is made faster by it.
    """
    ours = next(one for one in found if one.system == system)
    others = [
        one
        for one in found
        if one is not ours and one.run == ours.run and SYSTEMS[one.system].takes_turns
    ]
    if len(others) < SYSTEMS_MIN:
        return [1.0] * len(ours.seconds)
    ratios = [[value / one.update_s_median for value in one.seconds] for one in others]
    # The one that was slowed least: several of them run OPTIMIZE at the same update.
    return [max(1.0, min(at)) for at in zip(*ratios, strict=True)]


def told(found: Sequence[Measured], system: str) -> str | None:
    """The updates in which the machine was busy, in words; None if there were none."""
    factors = slowness(found, system)
    busy = [slot for slot, factor in enumerate(factors, start=1) if factor > BUSY]
    if not busy:
        return None
    return (
        f"The machine was busy with something else in update {', '.join(map(str, busy))}: "
        f"the systems took up to {max(factors):.1f} times as long as usual then."
    )
