"""500 updates of a small index: does an update get slower as history grows?

The source is partitioned by time, so a batch never costs a scan of all history. Time is made to
pass for Delta as well: log files are given the age that they would have if every update took its
half hour, so checkpoints, log clean-up and the expiry of removed files happen as in production.

    make bench-long ARGS="--updates 500"

Prints the seconds of the first and the last 50 updates and their ratio (goal: below 1.3), and
writes every update's figures to bench/results/long_run.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from rich.console import Console
from rich.progress import Progress

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
START = datetime(2024, 1, 1, tzinfo=UTC)
EVERY = timedelta(minutes=30)
PERIOD = 36
WARM_UP = 15
console = Console(highlight=False)


def write_source(folder: Path, slots: Iterable[int], rows_per_slot: int, seed: int = 1) -> None:
    """Rows of each slot in the folder of its hour; lifetimes uniform up to p slots."""
    rng = np.random.default_rng(seed)
    step = int(EVERY.total_seconds() * 1_000_000)
    for slot in slots:
        begin = int(START.timestamp() * 1_000_000) + (slot - 1) * step
        arrived = begin + 1 + np.sort(rng.integers(0, step - 1, rows_per_slot))
        lives = rng.integers(1, PERIOD * step, rows_per_slot)
        moment = datetime.fromtimestamp((begin + 1) / 1_000_000, UTC)
        hour = folder / moment.strftime("hour=%Y-%m-%dT%H")
        hour.mkdir(parents=True, exist_ok=True)
        stamp = pa.timestamp("us", "UTC")
        table = pa.table(
            {
                "key": pa.array([f"key-{k:05d}" for k in rng.integers(0, 5000, rows_per_slot)]),
                "arrived_at": pa.array(arrived, stamp),
                "inserted_at": pa.array(arrived, stamp),
                "expires_at": pa.array(arrived + lives, stamp),
                "payload": pa.array([f"{n:040d}" for n in range(rows_per_slot)]),
            }
        )
        pq.write_table(table, hour / f"slot-{slot}.parquet")


def describe(folder: Path, name: str, scheme: dict[str, object]) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "name": name,
                "source": {
                    "path": str(folder / "source" / "hour={%Y-%m-%dT%H}"),
                    "arrived_at": "arrived_at",
                },
                "key": "key",
                "inserted_at": "inserted_at",
                "expires_at": "expires_at",
                "update_every": "30m",
                "longest_lifetime": "18h",
                "start": START.isoformat(),
                "table": str(folder / name),
                "scheme": scheme,
                "keep_versions_for": "1h",
            }
        )
    )
    return path


def age_log(table: Path, version: int) -> None:
    """Gives every log file the age it would have, had each update taken its half hour."""
    now = time.time()
    for file in (table / "_delta_log").iterdir():
        number = file.name.split(".")[0]
        if number.isdigit():
            written = now - (version - int(number)) * EVERY.total_seconds()
            os.utime(file, (written, written))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--rows", type=int, default=2000, help="rows per slot")
    parser.add_argument("--scheme", default="sweep", choices=["sweep", "rebuild", "no_rebuild"])
    options = parser.parse_args()
    schemes: dict[str, dict[str, object]] = {
        "sweep": {"name": "sweep", "groups": 8},
        "rebuild": {"name": "rebuild", "insertion": 4, "expiration": 4},
        "no_rebuild": {"name": "no_rebuild", "insertion": 4, "expiration": 4},
    }
    folder = Path(tempfile.mkdtemp(prefix="tidetable-long-run-"))
    try:
        return run(folder, options.updates, options.rows, schemes[options.scheme])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, updates: int, rows: int, scheme: dict[str, object]) -> int:
    from tidetable.config import load_index
    from tidetable.engine.session import spark_session
    from tidetable.engine.updater import Updater

    console.print(f"{updates} updates of {rows} rows, p = {PERIOD}, {scheme}")
    write_source(folder / "source", range(1 - PERIOD, updates + 1), rows)
    spark = spark_session(ROOT, "tidetable long run")
    # A cold JVM would make the first updates slow and the ratio look good.
    warm = load_index(describe(folder, "warm_up", scheme), folder)
    for _ in Updater(spark, warm).catch_up(WARM_UP):
        pass
    index = load_index(describe(folder, "long_run", scheme), folder)
    reports = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("updates", total=updates + 1)
        for report in Updater(spark, index).catch_up(updates):
            reports.append(report)
            age_log(Path(index.table), report.version)
            progress.advance(task)
            if not console.is_terminal and report.slot % 50 == 0:
                console.print(f"slot {report.slot}: {report.seconds:.2f} s, {report.live:,} live")
    seconds = [report.seconds for report in reports if report.slot >= 1]
    log_files = len(list((Path(index.table) / "_delta_log").iterdir()))
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "long_run.csv").open("w", newline="") as file:
        names = [name for name in asdict(reports[0]) if name != "reasons"]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(asdict(report) for report in reports)
    first, last = seconds[:50], seconds[-50:]
    ratio = sum(last) / sum(first)
    console.print(
        f"first 50: {sum(first):.1f} s (median {statistics.median(first):.2f}), "
        f"last 50: {sum(last):.1f} s (median {statistics.median(last):.2f}), "
        f"ratio {ratio:.2f}; {log_files} files in the log after {len(reports)} commits"
    )
    return 0 if ratio < 1.3 else 1


if __name__ == "__main__":
    sys.exit(main())
