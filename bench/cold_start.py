"""What `tidetable update` costs from a cold start: a new process, a new JVM, one small update.

    make bench-cold

The same update of few rows is made in turns by JVMs that start in different ways. Seconds of wall
time until the command has ended, and of CPU of all its processes, the JVM's to its last moment;
the latter says the same on a machine that others use too. Writes bench/results/cold_start.md.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.long_run import EVERY, PERIOD, ROOT, START, describe, write_source
from bench.machine import here, in_words
from tidetable.engine.archive import make_archive
from tidetable.engine.jvm import ARCHIVE, JARS, find_java

RESULTS = ROOT / "bench" / "results" / "cold_start.md"
ROWS = 500
ROUNDS = 5
UNCOUNTED = 1
"""The first load, which makes the table."""

SCHEME: dict[str, object] = {"name": "sweep", "groups": 8}
LONG = "-XX:+UseParallelGC"
WAYS = {
    "bare": "no archive of Spark's classes, all of Java's compilers",
    "archive": "with the archive (`make setup`)",
    "now": "with the archive, and Java's options as the command chooses them",
}
_SUBREAPER = 36  # of prctl: whom a child leaves behind is ours to wait for
console = Console(highlight=False)


@dataclass(frozen=True)
class Cost:
    """Seconds of one command."""

    wall: float
    cpu: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--print", action="store_true", help="write no page")
    options = parser.parse_args(arguments)
    find_java()
    make_archive(ROOT)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    folder = Path(tempfile.mkdtemp(prefix="tidetable-cold-start-"))
    try:
        costs = measured(folder, options.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told = page(costs, options.rounds)
    if not options.print:
        RESULTS.write_text(told)
    console.print(told)
    return 0


def measured(folder: Path, rounds: int) -> dict[str, list[Cost]]:
    """What each counted command has cost, by way."""
    last = UNCOUNTED + rounds - 1
    write_source(folder / "source", range(1 - PERIOD, last + 1), ROWS)
    # Java takes an archive only for the very paths of jars that it was made with: those of ROOT.
    homes = dict.fromkeys(WAYS, ROOT) | {"bare": _without_archive(folder / "bare-project")}
    environments = {
        "bare": {"TIDETABLE_JAVA_OPTIONS": LONG},
        "archive": {"TIDETABLE_JAVA_OPTIONS": LONG},
        "now": {},
    }
    indexes = {way: describe(folder, way, SCHEME) for way in WAYS}
    costs: dict[str, list[Cost]] = {way: [] for way in WAYS}
    for slot in range(last + 1):
        until = (START + slot * EVERY).isoformat()
        for way in WAYS:
            words = ["update", str(indexes[way]), "--until", until]
            cost = run(words, {**environments[way], "TIDETABLE_HOME": str(homes[way])}, folder)
            if slot >= UNCOUNTED:
                costs[way].append(cost)
            console.print(f"slot {slot} of {last}: {way} {cost.wall:.1f} s, CPU {cost.cpu:.1f} s")
    return costs


def _without_archive(home: Path) -> Path:
    """A project with the jars of this checkout, and in the archive's place a file that is none."""
    (home / JARS.parent).mkdir(parents=True)
    (home / JARS).symlink_to((ROOT / JARS).resolve())
    (home / ARCHIVE).touch()
    return home


def run(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Cost:
    """One command, and every process that it leaves behind."""
    before = _children()
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "tidetable.cli", *words],
        env={**os.environ, **environment},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    wall = time.monotonic() - began
    with suppress(ChildProcessError):
        while True:  # the JVM, which ends after the command
            os.wait()
    return Cost(wall, _children() - before)


def _children() -> float:
    """Seconds of CPU of all children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def page(costs: Mapping[str, Sequence[Cost]], rounds: int) -> str:
    first = statistics.median(cost.wall for cost in costs["bare"])
    lines = [
        "# The cost of a cold start",
        "",
        f"Seconds of `tidetable update` for one update of {ROWS} rows, Sweep(8,1) without deletion "
        f"vectors, in a process and a JVM of its own; {rounds} of each in turns. "
        "`make bench-cold` makes this page.",
        "",
        "| the JVM starts | wall, median | smallest | of the first | CPU, median |",
        "|---|---:|---:|---:|---:|",
    ]
    for way, told in WAYS.items():
        wall = [cost.wall for cost in costs[way]]
        cpu = [cost.cpu for cost in costs[way]]
        lines.append(
            f"| {told} | {statistics.median(wall):.1f} | {min(wall):.1f} "
            f"| {statistics.median(wall) / first:.2f} | {statistics.median(cpu):.1f} |"
        )
    return "\n".join([*lines, "", in_words(here()), ""])


if __name__ == "__main__":
    sys.exit(main())
