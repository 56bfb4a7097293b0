"""The benchmark: runs what is not measured yet and writes the results.

    make bench SIZE=small [WORKLOADS=x,y] [SYSTEMS=a,b] [UPDATES=n] [FRESH=1] [KEEP=1]

docs/benchmark.md says what is measured and how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.extra import NAMES, why_not
from bench.measured import Finished
from bench.published import published
from bench.results import RUN, told_goals, write_results
from bench.sizes import Choice, chosen
from bench.systems.catalog import SESSION, SYSTEMS, Entry, warming_up
from tidetable.core.errors import TidetableError

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "bench"
RESULTS = ROOT / "bench" / "results"
JVM_MEMORY = "4g"
"""For all systems alike, unless TIDETABLE_DRIVER_MEMORY says otherwise."""

console = Console(highlight=False, soft_wrap=True)
Pairs = dict[str, list[Entry]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("--size", default="small")
    parser.add_argument("--systems", default="", help="names with commas; all of the size if empty")
    parser.add_argument("--workloads", default="", help="the same")
    parser.add_argument("--updates", default="", help="another number of updates than 12")
    parser.add_argument("--fresh", default="", help="1: measure again what is finished")
    parser.add_argument("--keep", default="", help="1: what is published counts as finished")
    options = parser.parse_args()
    try:
        choice = chosen(
            options.size,
            _names(options.systems),
            _names(options.workloads),
            int(options.updates) if options.updates else None,
        )
        return run(choice, fresh=bool(options.fresh), keep=bool(options.keep))
    except TidetableError as error:
        console.print(str(error))
        return error.exit_status


def run(choice: Choice, *, fresh: bool, keep: bool = False) -> int:
    finished = Finished(CACHE / "finished" / choice.label)
    if keep:
        for one in published(RESULTS, choice.label):
            if finished.get(one.workload, one.system) is None:
                finished.keep(one)
    pairs = without_what_is_missing(unfinished(choice, finished, fresh=fresh))
    facts = finished.folder.with_name(f"{choice.label}-machine.json")
    failures: dict[tuple[str, str], str] = {}
    if any(pairs.values()):
        failures = measure(choice, pairs, finished, facts)
    else:
        console.print(f"All of {choice.label} is measured already; FRESH=1 measures again.")
    if not finished.all():
        return 1
    if not facts.is_file():
        console.print("Nothing of it was measured here: the published results stay as they are.")
        return 0
    for file in write_results(choice, finished, json.loads(facts.read_text()), RESULTS):
        console.print(f"written: {file.relative_to(ROOT)}")
    for line in told_goals(choice, finished):
        console.print(line)
    return 1 if failures else 0


def measure(
    choice: Choice, pairs: Pairs, finished: Finished, facts: Path
) -> dict[tuple[str, str], str]:
    from bench.machine import machine
    from bench.run import READ_ROUNDS, Runner
    from tidetable.engine.session import spark_session

    os.environ.setdefault("TIDETABLE_DRIVER_MEMORY", JVM_MEMORY)
    spark = spark_session(ROOT, "tidetable bench", SESSION)
    finished.folder.mkdir(parents=True, exist_ok=True)
    run = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    earlier = json.loads(facts.read_text()) if facts.is_file() else {}
    known = machine(spark) | {
        name: value for name, value in earlier.items() if name.startswith(RUN)
    }
    facts.write_text(json.dumps(known))
    began = time.monotonic()
    steps = sum(
        1 + len(entries) * (3 + choice.workload(name).updates + READ_ROUNDS)
        for name, entries in pairs.items()
        if entries
    )
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("warming up", total=steps)

        told = ""

        def step(what: str) -> None:
            nonlocal told
            progress.update(task, description=what)
            if not what.startswith("warm_up"):
                progress.advance(task)
            # Without a screen there is no bar: a line for each round that the systems make.
            round_ = re.sub(r": \w+,", ":", what)
            if not console.is_terminal and round_ != told:
                told = round_
                console.print(f"{(time.monotonic() - began) / 60:5.1f} min  {round_}")

        runner = Runner(spark, CACHE, finished, run, step, console.print)
        every = dict.fromkeys(entry for entries in pairs.values() for entry in entries)
        some = [entry for entry in warming_up(every) if can_be_had(entry)]
        runner.warm_up(some, choice.size.warm_up_updates, choice.size.live_bytes)
        for name, entries in pairs.items():
            if entries:
                runner.measure(choice.workload(name), entries)
    spark.stop()
    measured = sum(map(len, pairs.values())) - len(runner.failures)
    spent = ", ".join(f"{kind} {seconds / 60:.1f}" for kind, seconds in runner.spent.items())
    took = f"{measured} pairs in {(time.monotonic() - began) / 60:.0f} minutes ({spent})"
    facts.write_text(json.dumps(known | {f"{RUN}{run}": took}))
    console.print(f"measured: {took}")
    return runner.failures


def unfinished(choice: Choice, finished: Finished, *, fresh: bool) -> Pairs:
    """The pairs that are still to be measured."""
    pairs: Pairs = {}
    for name, systems in choice.pairs.items():
        digest = choice.workload(name).digest
        pairs[name] = [
            SYSTEMS[system]
            for system in systems
            if fresh or not finished.is_finished(name, system, digest, SYSTEMS[system].setting)
        ]
    return pairs


def without_what_is_missing(pairs: Pairs) -> Pairs:
    """The pairs without what cannot be had here, which is said."""
    needed = {entry.needs for entries in pairs.values() for entry in entries if entry.needs}
    for need in sorted(needed):
        if why := why_not(ROOT, need):
            console.print(f"{NAMES[need]} is left out: it cannot be installed here ({why}).")
    return {
        workload: [entry for entry in entries if can_be_had(entry)]
        for workload, entries in pairs.items()
    }


def can_be_had(entry: Entry) -> bool:
    """Whether what it needs is there, or could be installed."""
    return entry.needs is None or why_not(ROOT, entry.needs) is None


def _names(text: str) -> list[str]:
    return [name for name in text.replace(",", " ").split() if name]


if __name__ == "__main__":
    sys.exit(main())
