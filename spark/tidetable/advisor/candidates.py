"""The settings that the advisor looks at. A new scheme is a line in `candidates`."""

from __future__ import annotations

from collections.abc import Iterator

from tidetable.advisor.workload import Workload
from tidetable.config.scheme import (
    NoRebuildConfig,
    RebuildConfig,
    SchemeConfig,
    SweepConfig,
    TiersConfig,
)

FILE_BYTES_MIN = 1024**2
RUNS_FREE = 64
RUNS_MAX = 1000

GROUPS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 44)
GROUPS_WITH_LOG = (1, 4, 8, 16, 32)
EVERY = (1, 2, 4, 8)
GROUPS_MERGED = (8, 16, 27)
GROUPS_TIERED = (1, 4, 8)
SIDES = (2, 3, 4, 6, 8)
SIDES_APPENDED = (1, 2, 4)
APPENDED_SLOTS_MAX = 240


def candidates(slots: int, *, coarse: bool = False) -> Iterator[SchemeConfig]:
    """Every setting worth a look for a window of so many slots, of one or (coarse) of several."""
    for setting in _settings(slots, coarse):
        if not any(setting.misfits(slots)):
            yield setting


def _settings(slots: int, coarse: bool) -> Iterator[SchemeConfig]:
    yield from (SweepConfig(groups=groups) for groups in GROUPS)
    yield from (
        SweepConfig(groups=groups, every=every, deletion_vectors=True)
        for groups in GROUPS_WITH_LOG
        for every in EVERY
    )
    yield from (
        SweepConfig(groups=groups, every=4, deletion_vectors=True, merge_log=8)
        for groups in GROUPS_MERGED
    )
    yield from (TiersConfig(groups=groups, fan_in=4) for groups in GROUPS_TIERED)
    yield from (RebuildConfig(insertion=side, expiration=side) for side in SIDES)
    if slots <= APPENDED_SLOTS_MAX and not coarse:
        # It keeps a file for every update of the window: a long one has far too many.
        yield from (NoRebuildConfig(insertion=side, expiration=side) for side in SIDES_APPENDED)


def runs_allowed(workload: Workload) -> int:
    """The most sorted runs that a table of this size may have; `RULE` says it in words."""
    return int(min(RUNS_MAX, max(RUNS_FREE, workload.live_bytes / FILE_BYTES_MIN)))


RULE = (
    f"At most one sorted run for each MB of live data, so that files stay worth opening; "
    f"{RUNS_FREE} are always allowed, and more than {RUNS_MAX:,} never."
)
"""The rule for the number of cells: each has a run at least, and appended files are runs too."""
