"""Is the advisor right? Settings are measured on eight workloads, the advised one among them.

    make bench-advisor [LIVE_MB=100] [UPDATES=6] [WORKLOADS=x,y]

For each workload the advisor says what it would choose, from the workload's own lifetimes and a
calibration of this machine. Then that setting and some others are measured side by side, and its
seconds in an update interval are compared with those of the best one. Finished pairs are kept, so
a run that was stopped goes on. The table goes to bench/results/advisor.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench.data import Rows
from bench.measured import Finished, Measured
from bench.sizes import SIZES
from bench.systems.base import System
from bench.systems.catalog import Entry
from bench.workload import SLOT, Workload
from tidetable.advisor import Advice, Calibration, Wishes, advise
from tidetable.advisor import Workload as Asked
from tidetable.advisor.model import Prediction, Simulated, predict
from tidetable.config import SchemeConfig
from tidetable.config.scheme import as_written
from tidetable.core.schemes import RebuildConfig, SweepConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "bench"
RESULT = ROOT / "bench" / "results" / "advisor.md"
TOLERANCE = 1.15
WISHES = Wishes()
WORKLOADS = (
    "uniform_36", "zipf_36", "uniform_144", "bimodal_36", "equal_36", "heavy_36", "swing_36",
    "many_keys_36",
)  # fmt: skip
SETTINGS: tuple[SchemeConfig, ...] = (
    SweepConfig(groups=2),
    SweepConfig(groups=4),
    SweepConfig(groups=8),
    SweepConfig(groups=16),
    SweepConfig(groups=8, deletion_vectors=True),
    RebuildConfig(insertion=4, expiration=4),
)

console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Compared:
    """One setting on one workload: what the model says of it, and what was measured."""

    setting: str
    predicted: Prediction
    measured: Measured


@dataclass(frozen=True)
class Line:
    """One workload: what was advised, and what was best."""

    workload: str
    advised: str
    predicted_s: float
    advised_s: float
    best: str
    best_s: float
    compared: tuple[Compared, ...] = ()

    @property
    def ratio(self) -> float:
        return self.advised_s / self.best_s

    @property
    def within(self) -> bool:
        return self.ratio <= TOLERANCE


def asked_of(workload: Workload, bytes_per_row: float) -> Asked:
    """The workload as the advisor would read it from a long history of it."""
    slots = range(1, workload.period + 1)
    rows = [workload.arrivals(slot) for slot in slots]
    mean = sum(rows) / len(rows)
    shares = [workload.share_living(slot - 1) - workload.share_living(slot) for slot in slots]
    return Asked(
        lifetimes=tuple(mean * share for share in shares),
        bytes_per_row=bytes_per_row,
        update_every=SLOT,
        keep_versions_for=timedelta(hours=24),
        rates=tuple(number / mean for number in rows) if workload.swings else (1.0,),
    )


def seconds(found: Measured, wishes: Wishes = WISHES) -> float:
    """What the advisor minimizes, as measured.

    Settings that are measured here do the same work at every update, so the median tells it. A mean
    of a few updates would tell whom the JVM's collector has met.
    """
    # As `tidetable probe` reads, which is what a calibration measures.
    probes = wishes.probes_per_update * (found.probe_ms_at_once or 0.0) / 1000
    scans = wishes.scans_per_update * (found.scan_s_delta_rs or 0.0)
    return found.update_s_median + probes + scans


def line(workload: str, advice: Advice, measured: Mapping[str, Measured]) -> Line:
    """The outcome for one workload, from what was measured of each setting by its name."""
    totals = {name: seconds(found) for name, found in measured.items()}
    first = advice.best[0]
    best = min(totals, key=lambda name: totals[name])
    return Line(
        workload=workload,
        advised=first.label,
        predicted_s=first.total_s,
        advised_s=totals[name_of(first.setting)],
        best=measured[best].setting,
        best_s=totals[best],
    )


def name_of(setting: SchemeConfig) -> str:
    """A name for files: sweep-groups-8."""
    written = as_written(setting)
    rest = [f"{name}-{value}".lower() for name, value in written.items() if name != "name"]
    return "-".join([written["name"], *rest])


def entry_of(setting: SchemeConfig, period: int) -> Entry:
    scheme = as_written(setting)

    def make(spark: SparkSession, rows: Rows, folder: Path) -> System:
        from bench.systems.ours import Tidetable

        return Tidetable(spark, rows, folder, scheme)

    return Entry(name_of(setting), "ours", setting.build(period).label, "", make)


def settings_for(advice: Advice, period: int) -> list[SchemeConfig]:
    """The settings to measure: the advised one, and the fixed ones that fit."""
    fitting = [one for one in SETTINGS if not any(one.misfits(period))]
    return list(dict.fromkeys([advice.best[0].setting, *fitting]))


def table(lines: Iterable[Line], facts: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    lines = list(lines)
    rows = [
        f"| {one.workload} | {one.advised} | {one.predicted_s:.2f} | {one.advised_s:.2f} "
        f"| {one.best} | {one.best_s:.2f} | {one.ratio:.2f} | {'yes' if one.within else 'no'} |"
        for one in lines
    ]
    kept = sum(one.within for one in lines)
    machine = ", ".join(f"{name} {value}" for name, value in facts.items())
    return "\n".join(
        [
            "# Is the advisor right?",
            "",
            f"On {kept} of {len(lines)} workloads the advised setting is within "
            f"{TOLERANCE - 1:.0%} of the best one measured. Seconds are those of an update "
            f"interval: the median update, {WISHES.probes_per_update:g} probes as "
            f"`tidetable probe` reads and {WISHES.scans_per_update:g} scan. "
            "Made by `make bench-advisor`.",
            "",
            f"{machine}.",
            "",
            "| workload | advised | predicted s | measured s | best measured | its s | ratio "
            "| within |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            "All settings that were measured, the advised one first. Of each pair of figures the "
            "first is predicted, the second measured.",
            "",
            "| workload | setting | update s | probe ms | scan ms | rows written per row |",
            "|---|---|---|---|---|---|",
            *(_compared(one.workload, each) for one in lines for each in one.compared),
            "",
        ]
    )


def _compared(workload: str, one: Compared) -> str:
    told, found = one.predicted, one.measured
    pairs = [
        f"{told.update_s:.2f} {found.update_s_median:.2f}",
        f"{1000 * told.probe_s:.0f} {found.probe_ms_at_once or 0:.0f}",
        f"{1000 * told.scan_s:.0f} {1000 * (found.scan_s_delta_rs or 0):.0f}",
        f"{told.written_per_inserted:.2f} {found.written_per_inserted:.2f}",
    ]
    return f"| {workload} | {one.setting} | {' | '.join(pairs)} |"


# -- measuring -------------------------------------------------------------------------------------


def measure(workloads: Sequence[Workload], finished: Finished, facts: dict[str, Any]) -> list[Line]:
    from bench.__main__ import JVM_MEMORY
    from bench.run import Runner
    from tidetable.engine.session import spark_session

    os.environ.setdefault("TIDETABLE_DRIVER_MEMORY", JVM_MEMORY)
    spark = spark_session(ROOT, "tidetable bench advisor")
    facts |= {"cores": spark.sparkContext.defaultParallelism, "Spark": spark.version}
    runner = Runner(spark, CACHE, finished, facts["run"], console.print, console.print)
    console.print("warming up")
    some = [entry_of(SweepConfig(groups=4), 12), entry_of(SETTINGS[4], 12)]
    runner.warm_up(some, 8, workloads[0].live_bytes)
    calibration = _calibration(spark)
    lines = []
    for workload in workloads:
        rows = Rows(workload, CACHE)
        rows.make(spark)
        asked = asked_of(workload, rows.bytes_per_row)
        advice = advise(asked, calibration, WISHES)
        console.print(f"{workload.name}: {advice.why}")
        settings = settings_for(advice, workload.period)
        entries = [entry_of(one, workload.period) for one in settings]
        missing = [
            one for one in entries
            if not finished.is_finished(workload.name, one.name, workload.digest, one.setting)
        ]  # fmt: skip
        runner.measure(workload, missing)
        found = {one.name: finished.get(workload.name, one.name) for one in entries}
        measured = {name: one for name, one in found.items() if one is not None}
        simulated = Simulated(asked)
        compared = tuple(
            Compared(one.setting, predict(setting, simulated, calibration), measured[one.name])
            for setting, one in zip(settings, entries, strict=True)
            if one.name in measured
        )
        lines.append(replace(line(workload.name, advice, measured), compared=compared))
        RESULT.write_text(table(lines, facts))
    return lines


def _calibration(spark: SparkSession) -> Calibration:
    """Of this machine; kept, so that a run that goes on advises the same."""
    from bench.systems.ours import Tidetable
    from tidetable.advisor.calibrate import calibrated
    from tidetable.config import load_index

    folder = CACHE / "advisor"
    folder.mkdir(parents=True, exist_ok=True)
    system = Tidetable(spark, Rows(SIZES["tiny"].workload("uniform_36"), CACHE), folder,
                       {"name": "sweep", "groups": 8})  # fmt: skip
    file = folder / "index.yaml"
    file.write_text(json.dumps(system._described()))  # JSON is YAML
    return calibrated(spark, load_index(file, folder), console.print)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-advisor", description=__doc__)
    parser.add_argument("--live-mb", type=int, default=100)
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--workloads", default="", help="names with commas; all eight if empty")
    options = parser.parse_args()
    names = [name for name in options.workloads.split(",") if name] or WORKLOADS
    size = SIZES["medium"]
    workloads = [
        replace(size.workload(name, options.updates), live_bytes=options.live_mb * 1_000_000)
        for name in names
    ]
    finished = Finished(CACHE / "finished" / f"advisor-{options.live_mb}-{options.updates}")
    facts = {
        "run": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        "live MB": options.live_mb,
        "updates": options.updates,
    }
    lines = measure(workloads, finished, facts)
    console.print(table(lines, facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
