"""The command `tidetable` in a process group of its own, which is killed -9 in the middle of it.

Most kills meet a client of a Spark Connect server that stays up. To import what such a client
needs takes longer than an update, so a nursery (`python -m tests.faults.victim`) has imported it
and forks a client for each order that comes in, a line of JSON. With `--alone ORDER` this process
itself runs the command, with a JVM of its own in the same process group.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TIME_MAX_S = 400


@dataclass(frozen=True)
class Order:
    """One call of the command."""

    arguments: list[str]
    home: str
    """The project of the call: where it looks for indexes."""

    said: str
    """The file that gets what the command says."""

    step: str | None = None
    """It is killed when it gets to this step for the n-th time..."""

    times: int = 1
    after_s: float | None = None
    """... or so long after its start."""


def run(order: Order) -> None:
    """Runs the command in this process, which is the leader of its group. Does not return."""
    from tidetable import cli
    from tidetable.table import upkeep as maintain
    from tidetable.table.steps import Step, watched

    file = os.open(order.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.environ["TIDETABLE_HOME"] = order.home
    # All that these tables have written is from the last minutes.
    maintain.READERS_MIN = maintain.WRITERS_MIN = timedelta(0)
    left = order.times

    def watch(step: Step) -> None:
        nonlocal left
        left -= step.value == order.step
        if left == 0:
            os.killpg(0, signal.SIGKILL)

    sys.argv = ["tidetable", *order.arguments]
    with watched(watch):
        cli.main()


# -- whoever starts it ---------------------------------------------------------------------------


def wait(pid: int, after_s: float | None) -> int:
    """The status with which the leader of a group ends, after a kill of the group if it is time."""
    began = time.monotonic()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        passed = time.monotonic() - began
        if passed > (TIME_MAX_S if after_s is None else after_s):
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.01)


class Nursery:
    """Runs orders as clients of a Spark Connect server."""

    def __init__(self, server: str) -> None:
        environment = {
            **os.environ,
            "SPARK_REMOTE": server,
            "JAVA_HOME": "/nonexistent/a-client-needs-no-jvm",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.victim"],
            env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, order: Order) -> int:
        """The exit status; -9 of one that was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery is gone"
        return int(answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def run_alone(order: Order, environment: Mapping[str, str]) -> int:
    """The same with a JVM of its own, which is killed with it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.victim", "--alone", json.dumps(asdict(order))],
        env=dict(environment), cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    status = wait(process.pid, order.after_s)
    process.returncode = status  # it has been waited for
    return status


def _nurse() -> None:
    import importlib

    for name in (
        "pyspark.sql.connect.session", "pyspark.sql.connect.functions", "tidetable.cli",
        "tidetable.output.show", "tidetable.engine.updater", "tidetable.engine.replay",
        "tidetable.engine.rebuild", "tidetable.table.upkeep", "rich.progress",
    ):  # fmt: skip
        importlib.import_module(name)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _leave(order)
        print(wait(pid, order.after_s), flush=True)


def _leave(order: Order) -> None:
    """Runs the order and ends this process, whatever comes of it."""
    status: Any = 70
    try:
        run(order)
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        run(Order(**json.loads(sys.argv[2])))
    else:
        _nurse()
