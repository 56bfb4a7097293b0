"""Pairs of operations: one is stopped at a named step, another runs whole, the first goes on.

    python -m tests.faults.pairs --all --seed 7 [--minutes 20]
    python -m tests.faults.pairs --pair plain/update/plan_made/replay

Each pair ends in the oracle's table; if a stranger has changed rows, in a sentence that names the
command which leads there. What an operation has reported as done is never undone.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from tests.oracle.oracle import Oracle
from tests.workspace import EVERY, START, Row, Workspace, row
from tidetable.config import Index
from tidetable.core.errors import Replay, TidetableError
from tidetable.engine.rebuild import rebuild
from tidetable.engine.replay import replay
from tidetable.engine.updater import Updater
from tidetable.table.state import DamagedTable, IndexTable
from tidetable.table.steps import Step, watched
from tidetable.table.upkeep import maintain, purge

FAMILIES: dict[str, dict[str, Any]] = {
    "plain": {"name": "sweep", "groups": 3},
    "vectors": {"name": "no_rebuild", "insertion": 2, "expiration": 3},
}
BEGINS_AT = 4
ENDS_AT = 7
LATER = timedelta(days=60)
ROOT = Path(__file__).resolve().parents[2]


def stream() -> Iterator[Row]:
    """As many rows in every slot, so that counts tell nothing; one in each is bad."""
    for slot in range(-1, ENDS_AT + 1):
        yield row(10 * slot, slot, slot + 1.5)
        yield row(10 * slot + 1, slot - 0.5, slot + 4.5)
        yield row(10 * slot + 2, slot - 0.3, slot + 3, key="")


@dataclass
class World:
    """An index at slot BEGINS_AT that two operations meet at."""

    spark: SparkSession
    workspace: Workspace
    scheme: dict[str, Any]
    reported: list[int] = field(default_factory=list)
    """The slots that updates said to be done."""

    @property
    def index(self) -> Index:
        return self.workspace.index(scheme=self.scheme)

    def updater(self) -> Updater:
        return Updater(self.spark, self.index)

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(table=f"delta.`{self.workspace.table}`"))

    def report(self, reports: Iterator[Any]) -> None:
        for one in reports:
            self.reported.append(one.slot)

    def expected(self, slot: int) -> list[tuple[Any, ...]]:
        """The rows that live after the slot, from timestamps alone."""
        oracle = Oracle(START, EVERY, 6 * EVERY)
        oracle.add(stream())
        live = (one for one in oracle.live_at_slot(slot) if one["key"])
        return sorted(_identity(one, _slot(one["arrived_at"]), _slot(one["expires_at"]))
                      for one in live)  # fmt: skip

    def stored(self) -> list[tuple[Any, ...]]:
        return sorted(
            _identity(one, one["_insertion_slot"], one["_expiration_slot"])
            for one in self.workspace.stored()
        )


def _identity(one: Row, came: int, goes: int) -> tuple[Any, ...]:
    times = (one[name] for name in ("arrived_at", "inserted_at", "expires_at"))
    return (one["id"], one["key"], *times, came, goes)


def _slot(moment: datetime) -> int:
    return -((START - moment) // EVERY)


# -- what may meet ---------------------------------------------------------------------------------

OURS: dict[str, Callable[[World], None]] = {
    "update": lambda world: world.report(world.updater().catch_up(_next(world))),
    "fold": lambda world: world.report(world.updater().catch_up(_next(world) + 1, fold=True)),
    "rebuild": lambda world: void(rebuild(world.updater())),
    "replay": lambda world: world.report(replay(world.updater(), BEGINS_AT - 1)),
    "maintain": lambda world: void(maintain(world.index, force=True)),
    "purge": lambda world: void(purge(world.index, datetime.now(UTC) + LATER)),
}
STRANGERS: dict[str, Callable[[World], None]] = {
    "append": lambda world: world.sql("INSERT INTO {table} SELECT * FROM {table} LIMIT 1"),
    "delete": lambda world: world.sql("DELETE FROM {table} WHERE id = 41"),
    "change": lambda world: world.sql("UPDATE {table} SET key = 'theirs' WHERE id = 41"),
    "optimize": lambda world: world.sql("OPTIMIZE {table}"),
    "property": lambda world: world.sql("ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')"),
    "restore": lambda world: world.sql(
        f"RESTORE TABLE {{table}} TO VERSION AS OF {_version_before(world)}"
    ),
}  # fmt: skip


def void(_: object) -> None:
    """What is returned does not matter."""


def _next(world: World) -> int:
    state = IndexTable(world.index).state(trusting=True)
    assert state is not None
    return state.slot + 1


def _version_before(world: World) -> int:
    state = IndexTable(world.index).state(trusting=True)
    assert state is not None
    return state.version - 1


# -- one pair --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """`second` runs when `first` reaches the step for the n-th time."""

    family: str
    first: str
    step: Step
    second: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.family}/{self.first}/{self.step.name.lower()}/{self.second}/{self.nth}"

    @staticmethod
    def parsed(text: str) -> Pair:
        family, first, step, second, *nth = text.split("/")
        return Pair(family, first, Step[step.upper()], second, int(nth[0]) if nth else 1)


class Worlds:
    """A table for each family, made once and copied for every pair."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self._number = 0
        self._steps: dict[tuple[str, str], list[Step]] = {}

    def new(self, family: str) -> World:
        ready = self.folder / family
        if not ready.exists():
            ready.mkdir(parents=True)
            world = World(self.spark, Workspace(ready), FAMILIES[family])
            world.workspace.add(stream())
            list(world.updater().catch_up(BEGINS_AT - 2, fold=True))
            list(world.updater().catch_up(BEGINS_AT))
        self._number += 1
        copy = self.folder / f"pair-{self._number}"
        shutil.copytree(ready, copy)
        return World(self.spark, Workspace(copy), FAMILIES[family])

    def steps(self, family: str, first: str) -> list[Step]:
        """The steps that the operation reaches when nobody comes between."""
        if (family, first) not in self._steps:
            seen: list[Step] = []
            with watched(seen.append):
                OURS[first](self.new(family))
            self._steps[family, first] = seen
        return self._steps[family, first]

    def all_pairs(self) -> Iterator[Pair]:
        for family in FAMILIES:
            for first in OURS:
                steps = self.steps(family, first)
                for place, step in enumerate(steps):
                    for second in (*OURS, *STRANGERS):
                        yield Pair(family, first, step, second, steps[: place + 1].count(step))


def tried(worlds: Worlds, pair: Pair) -> str:
    """How the pair ended; AssertionError if the table is wrong."""
    world = worlds.new(pair.family)
    ended = _met(world, pair)
    told = _settled(world)
    state = IndexTable(world.index).required_state()
    assert world.stored() == world.expected(state.slot), f"{pair}: wrong table at {state.slot}"
    assert state.slot >= max(world.reported, default=0), f"{pair}: a reported slot was undone"
    world.report(world.updater().catch_up(ENDS_AT))
    assert world.stored() == world.expected(ENDS_AT), f"{pair}: wrong table after going on"
    bad = [one["slot"] for one in world.workspace.quarantined(world.index)]
    assert len(bad) == len([one for one in stream() if not one["key"]]), f"{pair}: {bad}"
    shutil.rmtree(world.workspace.folder)
    return f"{ended}; {told}" if told else ended


def _met(world: World, pair: Pair) -> str:
    """Runs both. An operation may refuse, with a sentence."""
    operations = {**OURS, **STRANGERS}
    count = 0
    refused: list[str] = []

    def watch(step: Step) -> None:
        nonlocal count
        if step is not pair.step:
            return
        count += 1
        if count == pair.nth:
            with watched(lambda _: None):
                _run(operations[pair.second], world, refused)

    with watched(watch):
        _run(operations[pair.first], world, refused)
    assert count >= pair.nth, f"{pair}: the step was not reached"
    return "; ".join(refused) or "both done"


def _run(operation: Callable[[World], None], world: World, refused: list[str]) -> None:
    try:
        operation(world)
    except TidetableError as error:
        refused.append(f"{type(error).__name__}: {str(error)[:80]}")


def _settled(world: World) -> str:
    """Follows the advice of a table that somebody has changed, literally; what it was."""
    told = []
    for _ in range(3):
        try:
            IndexTable(world.index).required_state()
            return " ".join(told)
        except DamagedTable as error:
            advised = error.remedy
            if not isinstance(advised, Replay) or advised.from_slot is None:
                raise AssertionError(f"no advice: {error}") from error
            told.append(f"replay --from {advised.from_slot}")
            # What the stranger undid was not undone by us.
            world.reported.clear()
            world.report(replay(world.updater(), advised.from_slot))
    raise AssertionError(f"still damaged after {told}")


# -- many ------------------------------------------------------------------------------------------


def run(worlds: Worlds, pairs: Iterator[Pair] | list[Pair], until: float) -> tuple[int, list[str]]:
    """How many were tried before the time was up, and those that went wrong."""
    wrong = []
    number = 0
    for pair in pairs:
        if time.monotonic() > until:
            break
        number += 1
        try:
            print(f"{pair}: {tried(worlds, pair)}", flush=True)
        except Exception as error:
            wrong.append(str(pair))
            print(f"PAIR {pair} WRONG: {type(error).__name__}: {str(error)[:300]}", flush=True)
            print(f"  again: python -m tests.faults.pairs --pair {pair}", flush=True)
    return number, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Pairs of operations, interleaved.")
    parser.add_argument("--all", action="store_true", help="all pairs, in an order by the seed")
    parser.add_argument("--pair", action="append", default=[], help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    from tidetable.engine.session import spark_session

    spark = spark_session(ROOT, "pairs", {"spark.sql.codegen.wholeStage": "false"})
    until = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        worlds = Worlds(spark, Path(folder))
        pairs = [Pair.parsed(text) for text in options.pair]
        if not pairs:
            pairs = list(worlds.all_pairs())
            Random(options.seed).shuffle(pairs)
        number, wrong = run(worlds, pairs, until)
    print(f"pairs: {number} tried of {len(pairs)}, {len(wrong)} wrong, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
