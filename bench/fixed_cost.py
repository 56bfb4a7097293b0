"""What an update costs that has nothing to do, and who takes the time.

    make bench-fixed

Two tables of the same stream take turns in one warm session: one whose files tasks write in Arrow
(engine/parts.py), and one that Spark's Delta writes in a private table (engine/workbench.py), as it
does for tables with deletion vectors and in object stores. Every third slot has no row. Writes
bench/results/fixed_cost.md.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.long_run import PERIOD, ROOT, describe, write_source
from bench.machine import in_words, machine
from tidetable.config import load_index
from tidetable.engine import swap
from tidetable.engine.session import spark_session
from tidetable.engine.updater import Updater

if TYPE_CHECKING:
    from tidetable.table.log import Log

RESULTS = ROOT / "bench" / "results" / "fixed_cost.md"
ROWS = 500
WARM_UP = 24
UPDATES = 60
EMPTY_EVERY = 3
SCHEME: dict[str, object] = {"name": "sweep", "groups": 8}
WAYS = {"arrow": "tasks write in Arrow", "spark": "Spark's Delta writes in a private table"}
console = Console(highlight=False)


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="tidetable-fixed-cost-"))
    try:
        seconds = measured(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    RESULTS.write_text(page(seconds, machine(spark_session(ROOT))))
    console.print(RESULTS.read_text())
    return 0


def measured(folder: Path) -> dict[tuple[str, bool], list[float]]:
    """Seconds of the updates, by way and whether there were rows."""
    last = WARM_UP + UPDATES
    slots = [slot for slot in range(1 - PERIOD, last + 1) if slot < 1 or slot % EMPTY_EVERY]
    write_source(folder / "source", slots, ROWS)
    spark = spark_session(ROOT, "tidetable fixed cost")
    updaters = {
        way: Updater(spark, load_index(describe(folder, way, SCHEME), folder)) for way in WAYS
    }
    seconds: dict[tuple[str, bool], list[float]] = {}
    for slot in range(last + 1):
        for way, updater in updaters.items():
            with written_by(way):
                began = time.monotonic()
                for _ in updater.catch_up(slot):
                    pass
                took = time.monotonic() - began
            if slot > WARM_UP:
                seconds.setdefault((way, bool(slot % EMPTY_EVERY)), []).append(took)
        if slot % 12 == 0:
            console.print(f"slot {slot} of {last}")
    return seconds


@contextmanager
def written_by(way: str) -> Iterator[None]:
    """While this lasts, no table is plain if Spark is to write it."""
    usual = swap.is_plain

    def never(_: Log) -> bool:
        return False

    swap.is_plain = usual if way == "arrow" else never
    try:
        yield
    finally:
        swap.is_plain = usual


def page(seconds: dict[tuple[str, bool], list[float]], facts: dict[str, str]) -> str:
    lines = [
        "# The fixed cost of an update",
        "",
        "Seconds of one update in a warm session, Sweep(8,1) without deletion vectors, "
        f"p = {PERIOD}, {UPDATES} updates by each way in turns. "
        "`make bench-fixed` makes this page.",
        "",
        f"| who writes | empty batch, median | smallest | {ROWS} rows, median | smallest |",
        "|---|---:|---:|---:|---:|",
    ]
    for way, told in WAYS.items():
        empty, some = seconds[way, False], seconds[way, True]
        lines.append(
            f"| {told} | {statistics.median(empty):.2f} | {min(empty):.2f} "
            f"| {statistics.median(some):.2f} | {min(some):.2f} |"
        )
    ratios = [
        statistics.median(seconds["arrow", rows]) / statistics.median(seconds["spark", rows])
        for rows in (False, True)
    ]
    return "\n".join(
        [
            *lines,
            "",
            f"The first against the second: {ratios[0]:.2f} for an empty batch, "
            f"{ratios[1]:.2f} for {ROWS} rows.",
            "",
            in_words(facts),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
