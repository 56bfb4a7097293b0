"""How an update's cost grows with the rows: the same stream at 1, 3, 10 and 30 times the rate.

    make bench-scale

Runs the default scheme on ICDE's workload and writes bench/results/scale.md: seconds per update,
bytes written, files, and a probe through delta-rs, each against the smallest. docs/scale.md holds
these figures against the model.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from bench.__main__ import CACHE, JVM_MEMORY, ROOT
from bench.data import Rows
from bench.machine import in_words, machine
from bench.systems.catalog import SESSION
from bench.systems.ours import Tidetable
from bench.workload import Workload
from tidetable.engine.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = ROOT / "bench" / "results" / "scale.md"
SMALLEST = Workload("scale", 36, live_bytes=20_000_000, updates=9)
FACTORS = (1, 3, 10, 30)
SCHEME = {"name": "sweep", "groups": 8}
PROBES = 8
console = Console(highlight=False)


@dataclass(frozen=True)
class Step:
    """What was measured at one rate."""

    factor: int
    live_bytes: int
    update_s: float
    written_per_inserted: float
    files: int
    probe_ms: float


def main() -> int:
    os.environ.setdefault("TIDETABLE_DRIVER_MEMORY", JVM_MEMORY)
    spark = spark_session(ROOT, "tidetable scale", SESSION)
    # A cold JVM would make the smallest look slow, and the growth small.
    _measured(spark, replace(SMALLEST, name="scale_warm_up"), 0)
    steps = []
    for factor in FACTORS:
        workload = replace(
            SMALLEST, name=f"scale_{factor}", live_bytes=factor * SMALLEST.live_bytes
        )
        steps.append(_measured(spark, workload, factor))
        console.print(steps[-1])
    RESULTS.write_text(_page(steps, machine(spark)))
    console.print(f"written to {RESULTS.relative_to(ROOT)}")
    return 0


def _measured(spark: SparkSession, workload: Workload, factor: int) -> Step:
    rows = Rows(workload, CACHE)
    rows.make(spark)
    folder = CACHE / "tables" / workload.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    system = Tidetable(spark, rows, folder, SCHEME)
    try:
        system.load()
        seconds, written, inserted = [], 0, 0
        before = system.standing()
        for slot in range(1, workload.updates + 1):
            system.wait(slot)
            began = time.monotonic()
            system.update(slot)
            seconds.append(time.monotonic() - began)
            now = system.standing()
            # The first sweeps find what the load has left, which is one file for each group.
            if slot > 1:
                written += now.written - before.written
                inserted += rows.bytes_of(slot)
            before = now
        probes = []
        for key in workload.probed_keys(PROBES):
            began = time.monotonic()
            system.probe(key)
            probes.append(1000 * (time.monotonic() - began))
        return Step(
            factor,
            rows.live_bytes,
            statistics.median(seconds[1:]),
            written / inserted,
            before.files,
            statistics.median(probes),
        )
    finally:
        system.close()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(rows.folder, ignore_errors=True)


def _page(steps: list[Step], facts: dict[str, str]) -> str:
    first = steps[0]
    lines = [
        "# An update against the number of rows",
        "",
        f"Sweep(8,1) without deletion vectors; {SMALLEST.told}; median of "
        f"{SMALLEST.updates - 1} updates, one run. `make bench-scale` makes this page.",
        "",
        "| rows | live | update s | against the first | written per inserted | files "
        "| probe ms, delta-rs |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for step in steps:
        lines.append(
            f"| x{step.factor} | {step.live_bytes / 1e6:,.0f} MB | {step.update_s:.2f} "
            f"| {step.update_s / first.update_s:.2f} | {step.written_per_inserted:.2f} "
            f"| {step.files} | {step.probe_ms:.0f} |"
        )
    return "\n".join([*lines, "", in_words(facts), ""])


if __name__ == "__main__":
    sys.exit(main())
