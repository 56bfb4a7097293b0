"""What a run of Airflow costs for a small index: from queued to validated, three indexes at once.

    make bench-run

Starts an Airflow and a Spark Connect server as `make run` does, lets the indexes load, and then
triggers one slot of all of them at the same moment, again and again. When each task was queued,
when it began and when it ended is what Airflow's own database says. Writes
bench/results/run_cost.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import yaml
from rich.console import Console

from bench import long_run
from bench.machine import here, in_words
from rig.airflow_api import AirflowApi
from rig.embedded import connections, new_token, spark_connect
from rig.home import Airflow
from rig.services import Services, free_port

RESULTS = long_run.ROOT / "bench" / "results" / "run_cost.md"
INDEXES = 3
ROWS = 500
ROUNDS = 6
UNCOUNTED = 2
"""The first slots, in which Spark's code is not compiled yet."""

EVERY = timedelta(hours=1)
PERIOD = 12
TASKS = ("plan", "update", "validate")
_PATIENCE_S = 600
console = Console(highlight=False)


@dataclass(frozen=True)
class Task:
    """One task of one run, in seconds since the run was queued."""

    queued: float
    began: float
    ended: float


Run = dict[str, Task]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--indexes", type=int, default=INDEXES)
    parser.add_argument("--print", action="store_true", help="write no page")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="tidetable-run-cost-"))
    try:
        with running(folder, options.indexes) as (api, cpu):
            rounds = list(measured(api, folder, options.indexes, options.rounds, cpu))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told = page([run for runs, _ in rounds for run in runs], [used for _, used in rounds], options)
    if not options.print:
        RESULTS.write_text(told)
    console.print(told)
    return 0


# -- what runs -------------------------------------------------------------------------------------


@contextmanager
def running(folder: Path, indexes: int) -> Iterator[tuple[Api, Cpu]]:
    """An Airflow over small indexes that have just begun: nothing is due for an hour."""
    begins = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    describe(folder, indexes, begins)
    port, token = free_port(), new_token()
    airflow = Airflow(
        home=folder / ".airflow",
        project=folder,
        port=free_port(),
        connections=connections(port, token),
    )
    with Services(folder / "services") as services:
        services.start(spark_connect(folder, port, token))
        migration = airflow.migration()
        assert migration is not None
        services.run(migration)
        started = [services.start(service) for service in airflow.services()]
        services.wait_ready()
        yield Api(airflow), Cpu(started)


def describe(folder: Path, indexes: int, begins: datetime) -> None:
    """Indexes over one source, whose slots lie in the future: none is due but those asked for."""
    long_run.START, long_run.EVERY, long_run.PERIOD = begins, EVERY, PERIOD
    long_run.write_source(folder / "source", range(1 - PERIOD, ROUNDS * 10), ROWS)
    home = folder / "include" / "indexes"
    home.mkdir(parents=True)
    for number in range(indexes):
        name = f"small_{number}"
        made = long_run.describe(folder, name, {"name": "sweep", "groups": 4})
        described = yaml.safe_load(made.read_text())
        described |= {"engine": "connect", "update_every": "1h", "longest_lifetime": f"{PERIOD}h"}
        (home / made.name).write_text(yaml.safe_dump(described))
        made.unlink()


def measured(
    api: Api, folder: Path, indexes: int, rounds: int, cpu: Cpu
) -> Iterator[tuple[list[Run], float]]:
    """The runs of each counted round, and the seconds of CPU that it took."""
    begins = long_run.START
    names = [f"tidetable__small_{number}" for number in range(indexes)]
    api.wait_for_dags(names)
    for number in range(1, UNCOUNTED + rounds + 1):
        used = cpu.used()
        ids = [api.trigger(name, begins + number * EVERY) for name in names]
        runs = [api.ended(*run) for run in zip(names, ids, strict=True)]
        used = cpu.used() - used
        told = ", ".join(f"{run['validate'].ended:.1f}" for run in runs)
        console.print(f"round {number}: validated after {told} s; {used:.1f} s of CPU")
        if number > UNCOUNTED:
            yield runs, used


class Cpu:
    """What the programs of this Airflow and their children have used, living or ended."""

    def __init__(self, started: Sequence[int]) -> None:
        self._programs = [psutil.Process(pid) for pid in started]

    def used(self) -> float:
        """Seconds, without those of children that still run."""
        found = 0.0
        for program in self._programs:
            for process in (program, *program.children(recursive=True)):
                try:
                    times = process.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                found += times.user + times.system + times.children_user + times.children_system
        return found


class Api:
    """What the benchmark asks of Airflow."""

    def __init__(self, airflow: Airflow) -> None:
        self._url = f"{airflow.url}/api/v2"
        self._api = AirflowApi(airflow.url, airflow.password())

    def wait_for_dags(self, names: Sequence[str]) -> None:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            found = {one["dag_id"] for one in self._call("dags?limit=100")["dags"]}
            if found.issuperset(names):
                return
            time.sleep(1)
        raise TimeoutError(f"Airflow has no DAGs {names}")

    def trigger(self, dag_id: str, end: datetime) -> str:
        """A run of the interval that ends then, to begin at once."""
        now = datetime.now(UTC).isoformat()
        body = {
            "logical_date": end.isoformat(),
            "data_interval_start": (end - EVERY).isoformat(),
            "data_interval_end": end.isoformat(),
            "run_after": now,
        }
        return str(self._call(f"dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def ended(self, dag_id: str, run_id: str) -> Run:
        """The tasks of the run, once it has ended."""
        path = f"dags/{dag_id}/dagRuns/{urllib.parse.quote(run_id, safe='')}"
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            run = self._call(path)
            if run["state"] in ("success", "failed"):
                break
            time.sleep(0.5)
        if run["state"] != "success":
            raise RuntimeError(f"{dag_id} {run_id}: {run['state']}")
        queued = _moment(run["queued_at"])
        tasks = self._call(f"{path}/taskInstances")["task_instances"]
        return {
            one["task_id"]: Task(
                *(_moment(one[at]) - queued for at in ("queued_when", "start_date", "end_date"))
            )
            for one in tasks
        }

    def _call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self._url}/{path}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {self._api.token()}",
                "Content-Type": "application/json",
                "Accept": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


# -- the page --------------------------------------------------------------------------------------


def page(runs: list[Run], used: list[float], options: argparse.Namespace) -> str:
    whole = [run["validate"].ended for run in runs]
    lines = [
        "# The cost of a run",
        "",
        f"Seconds from a run being queued to its index being validated: {options.indexes} indexes "
        f"with {ROWS} new rows each, triggered at once, on one Spark Connect server; "
        f"{options.rounds} rounds. `make bench-run` makes this page.",
        "",
        "| | median | smallest | largest |",
        "|---|---:|---:|---:|",
        _row("queued to validated", whole),
    ]
    for name in TASKS:
        tasks = [(run, run[name]) for run in runs]
        queued = [task.queued - _end_before(run, name) for run, task in tasks]
        lines.append(_row(f"until `{name}` is queued", queued))
        lines.append(_row("until it begins", [task.began - task.queued for _, task in tasks]))
        lines.append(_row("until it has ended", [task.ended - task.began for _, task in tasks]))
    cpu = statistics.median(used) / options.indexes
    return "\n".join(
        [
            *lines,
            "",
            f"A run takes {cpu:.1f} s of CPU of Airflow's programs and tasks, `maintain` and the "
            "work of the scheduler between the runs included.",
            "",
            in_words(here()),
            "",
        ]
    )


def _end_before(run: Run, name: str) -> float:
    """When the task before it ended; 0 for the first."""
    place = TASKS.index(name)
    return run[TASKS[place - 1]].ended if place else 0.0


def _row(told: str, seconds: Sequence[float]) -> str:
    return (
        f"| {told} | {statistics.median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
