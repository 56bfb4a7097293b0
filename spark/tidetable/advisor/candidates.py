"""The settings that the advisor looks at: each scheme says which of its own."""

from __future__ import annotations

from collections.abc import Iterator

from tidetable.advisor.workload import Workload
from tidetable.config.scheme import SchemeConfig
from tidetable.core.schemes import SCHEMES

FILE_BYTES_MIN = 1024**2
RUNS_FREE = 64
RUNS_MAX = 1000


def candidates(slots: int, *, coarse: bool = False) -> Iterator[SchemeConfig]:
    """Every setting worth a look for a window of so many slots, of one or (coarse) of several."""
    for scheme in SCHEMES.values():
        for setting in scheme.worth_trying(slots, coarse=coarse):
            if not any(setting.misfits(slots)):
                yield setting


def runs_allowed(workload: Workload) -> int:
    """The most sorted runs that a table of this size may have; `RULE` says it in words."""
    return int(min(RUNS_MAX, max(RUNS_FREE, workload.live_bytes / FILE_BYTES_MIN)))


RULE = (
    f"At most one sorted run for each MB of live data, so that files stay worth opening; "
    f"{RUNS_FREE} are always allowed, and more than {RUNS_MAX:,} never."
)
"""The rule for the number of cells: each has a run at least, and appended files are runs too."""
