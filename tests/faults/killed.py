"""Kills -9 of a whole process group, at each named step and at random times.

After each kill the table is compared with the oracle; then an ordinary update goes on, and the
table, its quarantine and its table of updates are compared again. At the end nothing is left that a
maintenance would not remove. Which kills there are follows from scheme and seed:

    python -m tests.faults.killed --scheme sweep --seed 7
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.faults.story import SCHEMES, SMALL_PLANS, STEPS
from tests.faults.stream import LONGEST, PERIOD, Stream
from tests.faults.victim import ROOT, Nursery, Order, run_alone
from tests.oracle.books import Books
from tests.workspace import SCHEMA, Workspace, at
from tidetable.engine.session import connect_server_command, connect_server_environment
from tidetable.table.garbage import named_files
from tidetable.table.log import open_log
from tidetable.table.place import quarantine_path, updates_path
from tidetable.table.steps import Step
from tidetable.table.upkeep import maintain

STARTS_WITHIN_S = 240
_KILLED = -signal.SIGKILL
_MADE_BY_DELTA = ("_delta_log", "_commits", "_sidecars")


@dataclass(frozen=True)
class Kill:
    """A command and where it is killed: at a step, or (None) at a random time."""

    command: str
    step: Step | None
    times: int = 1
    alone: bool = False
    """With a JVM of its own in the same process group."""

    def __str__(self) -> str:
        where = "at a random time" if self.step is None else f"at {self.step.value!r}"
        again = f", the {self.times}. time" if self.times > 1 else ""
        return f"{self.command} {where}{again}{', with its JVM' if self.alone else ''}"


class Killing:
    """One index whose writers are killed."""

    def __init__(self, server: str, nursery: Nursery, folder: Path, scheme: str, seed: int) -> None:
        self.nursery = nursery
        self.scheme = scheme
        self.line = f"KILLS python -m tests.faults.killed --scheme {scheme} --seed {seed}"
        self.draw = Random(f"{scheme}/{seed}")
        self.stream = Stream(self.draw)
        self.workspace = Workspace(folder)
        self.index = self.workspace.index(
            scheme=dict(SCHEMES[scheme]),
            longest_lifetime=f"{LONGEST // timedelta(minutes=1)}m",
            source={"recount_every": 4},
            keep_versions_for="3s",
        )
        self.books = Books(self.index)
        self.shown = -PERIOD
        self.took_s = {"update": 3.0, "replay": 5.0, "rebuild": 3.0, "maintain": 1.0, "purge": 1.0}
        self.steps: list[str] = []
        self.kills = 0

    def play(self, kills: Sequence[Kill], until: float = inf) -> None:
        """These kills, each with what goes on after it; once the time is up, no more of them."""
        try:
            for kill in kills:
                if time.monotonic() > until:
                    break
                self.kill(kill)
                self.go_on()
            self.check_leftovers()
        except Exception as error:
            told = "\n  ".join(self.steps[-6:])
            raise AssertionError(
                f"{self.line}\n  {told}\n{type(error).__name__}: {error}"
            ) from error

    def kill(self, kill: Kill) -> None:
        """One kill. A step that the command does not come to lets it through."""
        self.steps.append(str(kill))
        usual = self.took_s[kill.command] + (8 if kill.alone else 0)
        after_s = self.draw.uniform(0, 1.2 * usual) if kill.step is None else None
        status = self._run(kill, after_s)
        assert status in (_KILLED, 0), f"exit status {status}: {self.said()}"
        self.kills += status == _KILLED
        if status != _KILLED:
            self.steps[-1] += " (was done before)"
        self._check(settled=False)

    def go_on(self) -> None:
        """An ordinary update, after which everything is as if nothing had happened."""
        target = self._next()
        self.steps.append(f"update to {target}")
        began = time.monotonic()
        status = self.nursery.run(self._order(self._arguments("update", target)))
        assert status == 0, f"exit status {status}: {self.said()}"
        self.took_s["update"] = time.monotonic() - began
        self._check(settled=True)
        assert self.books.slot == target

    def check_leftovers(self) -> None:
        """A maintenance in a year leaves the files of the newest version and no others."""
        self.steps.append("maintain in a year")
        maintain(self.index, force=True, now=datetime.now(UTC) + timedelta(days=400))
        self._check(settled=True)
        for path in (self.index.table, quarantine_path(self.index), updates_path(self.index)):
            log = open_log(path)
            if log is None:
                continue
            root = Path(path)
            stored = {
                file.relative_to(root).as_posix()
                for file in root.rglob("*")
                if file.is_file() and not set(file.parts) & set(_MADE_BY_DELTA)
            }
            left = {one for one in stored if not one.endswith(".crc")} - named_files(log).in_use
            assert not left, f"left over in {path}: {sorted(left)[:5]}"

    def said(self) -> str:
        return (self.workspace.folder / "said").read_text()[-2000:]

    # -- parts -----------------------------------------------------------------------------------

    def _run(self, kill: Kill, after_s: float | None) -> int:
        step = None if kill.step is None else kill.step.value
        arguments = self._arguments(kill.command, self._next())
        order = self._order(arguments, step=step, times=kill.times, after_s=after_s)
        if not kill.alone:
            return self.nursery.run(order)
        environment = {k: v for k, v in os.environ.items() if k != "SPARK_REMOTE"}
        return run_alone(order, environment)

    def _order(
        self,
        arguments: list[str],
        step: str | None = None,
        times: int = 1,
        after_s: float | None = None,
    ) -> Order:
        folder = self.workspace.folder
        return Order(arguments, str(folder), str(folder / "said"), step, times, after_s)

    def _arguments(self, command: str, target: int) -> list[str]:
        slot = self.books.slot
        call = [command, str(self.workspace.yaml), "--json"]
        match command:
            case "update":
                fold = ["--fold"] if self.draw.random() < 0.5 else []
                return [*call, "--until", at(target).isoformat(), *fold]
            case "replay":
                assert slot is not None
                return [*call, "--from", str(max(1, slot - self.draw.randint(0, 2)))]
            case "maintain":
                return [*call, "--force", "--purge"]
            case "purge":
                return [*call, "--yes"]
        return call

    def _next(self) -> int:
        """The slot of the next update, whose rows the source shows from now on."""
        target = 0 if self.books.slot is None else self.books.slot + 1
        rows = []
        for slot in range(self.shown + 1, target + 1):
            rows += self.stream.steady(slot)
            rows.append(self.stream.bad(slot))
        self.shown = max(self.shown, target)
        if rows:
            self.workspace.add(rows, schema=SCHEMA)
            self.books.show(rows)
        return target

    def _check(self, *, settled: bool) -> None:
        """Again if the server, which outlives its client, has gone on meanwhile."""
        for _ in range(5):
            told = self.books.follow()
            self.steps[-1] += f": {', '.join(told) or 'no commit'}"
            try:
                self.books.check(self.workspace, settled=settled)
                return
            except Exception:
                log = open_log(self.index.table)
                if log is None or log.version == self.books.version:
                    raise
        raise AssertionError("the table does not come to rest")


# -- the server ----------------------------------------------------------------------------------


@contextmanager
def connect_server() -> Iterator[str]:
    """The address of a private Spark Connect server."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    command = connect_server_command(ROOT, port)
    small = [part for name, value in SMALL_PLANS.items() for part in ("--conf", f"{name}={value}")]
    with TemporaryDirectory(prefix="tidetable-connect-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command[:-1], *small, command[-1]],
                env={**os.environ, **connect_server_environment()},
                cwd=folder,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _wait_for(port, process, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, log.read_text()
        time.sleep(0.2)
    raise AssertionError(f"no server within {STARTS_WITHIN_S} s: {log.read_text()}")


@contextmanager
def nursery() -> Iterator[tuple[str, Nursery]]:
    """A server and a nursery of clients for it."""
    with connect_server() as server:
        clients = Nursery(server)
        try:
            yield server, clients
        finally:
            clients.close()


# -- by hand -------------------------------------------------------------------------------------


def drawn(draw: Random, number: int) -> list[Kill]:
    """As many kills, from the first load on."""
    kills = [Kill("update", draw.choice((Step.TABLE_CREATED, Step.QUARANTINE_WRITTEN, None)))]
    kills.append(Kill("update", draw.choice(STEPS["update"])))
    while len(kills) < number:
        command = draw.choice(("update", "update", "update", *STEPS))
        if draw.random() < 0.15:
            kills.append(Kill(command, None, alone=True))
        elif draw.random() < 0.3:
            kills.append(Kill(command, None))
        else:
            kills.append(Kill(command, draw.choice(STEPS[command]), draw.choice((1, 1, 2))))
    return kills[:number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", choices=list(SCHEMES), action="append")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=1, help="of each scheme, from this seed on")
    parser.add_argument("--kills", type=int, default=10, help="in each round")
    parser.add_argument("--minutes", type=float, default=1e9, help="kill nothing after that")
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    kills = rounds = 0
    with nursery() as (server, clients):
        for seed in range(given.seed, given.seed + given.rounds):
            for scheme in given.scheme or list(SCHEMES):
                if time.monotonic() > until:
                    break
                began = time.monotonic()
                with TemporaryDirectory(prefix="tidetable-kills-") as folder:
                    killing = Killing(server, clients, Path(folder), scheme, seed)
                    try:
                        killing.play(drawn(killing.draw, given.kills), until)
                    except AssertionError as error:
                        sys.exit(str(error))
                kills, rounds = kills + killing.kills, rounds + 1
                print(f"{killing.line}: {killing.kills} kills, {time.monotonic() - began:.0f} s",
                      flush=True)  # fmt: skip
    print(f"{kills} kills in {rounds} rounds")


if __name__ == "__main__":
    main()
