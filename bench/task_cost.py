"""What the Spark job of one Airflow task costs: a process that starts, makes one update and ends.

    make bench-task

The same update of few rows is made in turns by applications of their own, whose JVMs start in
different ways, and by a client of a Spark Connect server that runs already. Airflow's own part, to
schedule a task and start its worker, is not in it. Writes bench/results/task_cost.md.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bench.long_run import EVERY, PERIOD, ROOT, START, describe, write_source
from bench.machine import here, in_words
from rig.embedded import new_token, spark_connect
from rig.services import Services, free_port
from tidetable.engine.archive import make_archive
from tidetable.engine.jvm import archived, find_java, spark_home
from tidetable.engine.session import submit_conf

RESULTS = ROOT / "bench" / "results" / "task_cost.md"
ROWS = 500
ROUNDS = 5
UNCOUNTED = 2
"""The first load, and one more update for the server to be warm."""

SCHEME: dict[str, object] = {"name": "sweep", "groups": 8}
JOB = ROOT / "spark" / "tidetable" / "jobs" / "update.py"
WAYS = {
    "plain": "spark-submit, a JVM with no options of ours",
    "quick": "the same with a JVM that is quick to start (one compiler, one collector thread)",
    "archive": "the same with Spark's classes in an archive (`make archive`): `engine: submit`",
    "connect": "a client of a Spark Connect server in a process of its own (`SPARK_REMOTE`)",
}
console = Console(highlight=False)


def main() -> int:
    find_java()
    make_archive(ROOT)
    folder = Path(tempfile.mkdtemp(prefix="tidetable-task-cost-"))
    try:
        with Services(folder / "logs") as services:
            port, token = free_port(), new_token()
            services.start(spark_connect(ROOT, port, token))
            services.wait_ready()
            seconds = measured(folder, f"sc://127.0.0.1:{port}/;token={token}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    RESULTS.write_text(page(seconds, here()))
    console.print(RESULTS.read_text())
    return 0


def measured(folder: Path, url: str) -> dict[str, list[float]]:
    """Seconds of the counted processes, by way."""
    last = UNCOUNTED + ROUNDS - 1
    write_source(folder / "source", range(1 - PERIOD, last + 1), ROWS)
    commands = _commands(url)
    indexes = {way: describe(folder, way, SCHEME) for way in WAYS}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for slot in range(last + 1):
        for way, (command, environment) in commands.items():
            until = (START + slot * EVERY).isoformat()
            began = time.monotonic()
            subprocess.run(
                [*command, str(JOB), str(indexes[way]), "--until", until, "--json"],
                env={**os.environ, **environment, "TIDETABLE_HOME": str(folder)},
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            took = time.monotonic() - began
            if slot >= UNCOUNTED:
                seconds[way].append(took)
            console.print(f"slot {slot} of {last}: {way} {took:.1f} s")
    return seconds


def _commands(url: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    """How each way starts the job, and what it needs in its environment."""

    def submit(options: Callable[[str], str]) -> tuple[list[str], dict[str, str]]:
        conf = submit_conf(ROOT)
        name = "spark.driver.extraJavaOptions"
        conf[name] = options(conf[name])
        settings = [part for item in conf.items() for part in ("--conf", "=".join(item))]
        binary = str(spark_home() / "bin" / "spark-submit")
        return [binary, "--master", "local[*]", *settings], {"SPARK_LOCAL_IP": "127.0.0.1"}

    def without_archive(options: str) -> str:
        return options.replace(archived(ROOT), "").strip()

    return {
        "plain": submit(lambda _: "-Duser.timezone=UTC"),
        "quick": submit(without_archive),
        "archive": submit(lambda options: options),
        "connect": ([sys.executable], {"SPARK_REMOTE": url}),
    }


def page(seconds: dict[str, list[float]], facts: dict[str, str]) -> str:
    first = statistics.median(seconds["plain"])
    lines = [
        "# The cost of one task",
        "",
        f"Seconds from the start of a process to its end, which makes one update of {ROWS} rows, "
        f"Sweep(8,1) without deletion vectors; {ROUNDS} of each in turns. What Airflow adds, to "
        "schedule a task and to start its worker, is not in it. `make bench-task` makes this page.",
        "",
        "| how the job starts | median | smallest | of the first |",
        "|---|---:|---:|---:|",
    ]
    for way, told in WAYS.items():
        typical = statistics.median(seconds[way])
        lines.append(
            f"| {told} | {typical:.1f} | {min(seconds[way]):.1f} | {typical / first:.2f} |"
        )
    return "\n".join([*lines, "", in_words(facts), ""])


if __name__ == "__main__":
    sys.exit(main())
