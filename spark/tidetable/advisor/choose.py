"""`scheme: auto`: the advisor chooses when the table is made, and says by what it chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession

from tidetable.advisor import Advice, Calibration, Wishes, Workload, advise
from tidetable.advisor.calibrate import calibrated
from tidetable.advisor.histogram import read_workload
from tidetable.config import AutoConfig, Index, SchemeConfig
from tidetable.core.errors import UserError
from tidetable.core.schemes import SweepConfig

GROUPS_UNSEEN = 8
"""Sweep with so many groups where no row has arrived yet to choose by."""


@dataclass(frozen=True)
class Chosen:
    """A scheme, and what is written into the table about the choice."""

    scheme: SchemeConfig
    about: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return dict(self.about)


def choose_scheme(spark: SparkSession, index: Index, say: Callable[[str], None]) -> Chosen:
    """What the advisor advises; Sweep with eight groups while the source is empty."""
    wishes = wishes_of(index)
    say("choosing a scheme: reading lifetimes")
    try:
        workload = read_workload(spark, index)
    except UserError as error:
        why = f"No row has arrived yet to choose by: {error}"
        return Chosen(SweepConfig(groups=min(GROUPS_UNSEEN, index.period)), {"why": why})
    calibration = calibrated(spark, index, say)
    say("choosing a scheme: simulating")
    found = advise(workload, calibration, wishes)
    require(found)
    return Chosen(found.best[0].setting, _about(found, workload, calibration))


def wishes_of(index: Index) -> Wishes:
    """What the YAML says under `scheme: auto`; the usual if it names a scheme."""
    asked = index.scheme
    if not isinstance(asked, AutoConfig):
        return Wishes()
    return Wishes(
        probes_per_update=asked.probes_per_update,
        scans_per_update=asked.scans_per_update,
        update_seconds_max=asked.update_seconds_max,
        files_max=asked.files_max,
        purge_within=asked.purge_within,
    )


def require(found: Advice) -> None:
    """UserError if no setting keeps the limits."""
    if not found.best:
        raise UserError(
            f"No setting keeps all limits: {found.obstacle}. Raise that limit; "
            "tidetable advise shows the settings that come nearest."
        )


def _about(found: Advice, workload: Workload, calibration: Calibration) -> dict[str, Any]:
    best = found.best[0]
    return {
        "why": found.why,
        "predicted": best.prediction.as_json(),
        "workload": workload.as_json(),
        "wishes": found.wishes.as_json(),
        "calibration": asdict(calibration),
    }
