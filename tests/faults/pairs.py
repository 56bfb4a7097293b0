"""Pairs of operations: one is stopped at a named step, another runs whole, the first goes on.

    python -m tests.faults.pairs --seed 7 [--minutes 20]
    python -m tests.faults.pairs --pair plain/update/plan_made/replay

Each pair ends in the oracle's table and quarantine, with a row in the table of updates for each
commit; if a stranger has changed rows, in a sentence that names the command which leads there. What
an operation has reported as done is never undone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from tests.faults.story import Crash
from tests.oracle.books import Books
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
    """An index that two operations meet at: at slot BEGINS_AT, or without a table yet."""

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

Operation = Callable[[World], None]

OURS: dict[str, Operation] = {
    "update": lambda world: world.report(world.updater().catch_up(_next(world))),
    "fold": lambda world: world.report(world.updater().catch_up(_next(world) + 1, fold=True)),
    "rebuild": lambda world: void(rebuild(world.updater())),
    "replay": lambda world: world.report(replay(world.updater(), BEGINS_AT - 1)),
    "maintain": lambda world: void(maintain(world.index, force=True)),
    "purge": lambda world: void(purge(world.index, datetime.now(UTC) + LATER)),
    "create": lambda world: world.report(world.updater().catch_up(0)),
    "retry": lambda world: _killed_and_again(OURS["update"], world),
}
ENDS = {"retry": "update", "create_again": "create"}
"""First operations that end at the step, for good. After the second one the same is run again."""

BEGINNINGS = frozenset({"create", "create_again"})
"""They begin without a table."""

STRANGERS: dict[str, Operation] = {
    "append": lambda world: world.sql("INSERT INTO {table} SELECT * FROM {table} LIMIT 1"),
    "delete": lambda world: world.sql("DELETE FROM {table} WHERE id IN (0, 41)"),
    "change": lambda world: world.sql("UPDATE {table} SET key = 'theirs' WHERE id IN (0, 41)"),
    "optimize": lambda world: world.sql("OPTIMIZE {table}"),
    "vacuum": lambda world: _vacuumed(world),
    "column": lambda world: world.sql("ALTER TABLE {table} ADD COLUMN theirs STRING"),
    "property": lambda world: world.sql("ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')"),
    "restore": lambda world: world.sql(
        f"RESTORE TABLE {{table}} TO VERSION AS OF {_version_before(world)}"
    ),
}  # fmt: skip


def void(_: object) -> None:
    """What is returned does not matter."""


def _next(world: World) -> int:
    state = IndexTable(world.index).state(trusting=True)
    return 0 if state is None else state.slot + 1


def _version_before(world: World) -> int:
    state = IndexTable(world.index).state(trusting=True)
    return 0 if state is None else max(0, state.version - 1)


def _killed_and_again(operation: Operation, world: World) -> None:
    """Another writer that ended with its files written and has been started again."""

    def end(step: Step) -> None:
        if step is Step.FILES_WRITTEN:
            raise Crash

    with suppress(Crash), watched(end):
        operation(world)
    operation(world)


def _vacuumed(world: World) -> None:
    """Everything goes that the newest version does not name, however new it is."""
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # Else VACUUM lists the folder with thousands of tasks.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    for name, value in settings.items():
        world.spark.conf.set(name, value)
    try:
        world.sql("VACUUM {table} RETAIN 0 HOURS")
    finally:
        for name in settings:
            world.spark.conf.unset(name)


# -- one pair --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """`second` runs when `first` reaches the step for the n-th time."""

    family: str
    first: str
    step: Step
    second: str
    nth: int = 1

    @property
    def group(self) -> tuple[str, str, Step]:
        """Pairs of one group differ by what comes second."""
        return self.family, self.first, self.step

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

    def new(self, family: str, first: str) -> World:
        """A world as the first operation finds it."""
        ready = self.folder / (f"{family}-empty" if first in BEGINNINGS else family)
        if not ready.exists():
            ready.mkdir(parents=True)
            world = World(self.spark, Workspace(ready), FAMILIES[family])
            world.workspace.add(stream())
            if first not in BEGINNINGS:
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
            world = self.new(family, first)  # whose own making has steps too
            with watched(seen.append):
                OURS[ENDS.get(first, first)](world)
            self._steps[family, first] = seen
        return self._steps[family, first]

    def all_pairs(self) -> Iterator[Pair]:
        for family in FAMILIES:
            for first in (*OURS, *(ENDS.keys() - OURS.keys())):
                steps = self.steps(family, first)
                for place, step in enumerate(steps):
                    for second in (*OURS, *STRANGERS):
                        yield Pair(family, first, step, second, steps[: place + 1].count(step))


def spread(pairs: Iterable[Pair], seed: int) -> list[Pair]:
    """The pairs in an order of which every beginning is spread over families, operations and steps.

    One pair of each of these before a second one of any.
    """
    draw = Random(seed)
    groups: dict[tuple[str, str, Step], list[Pair]] = {}
    for pair in sorted(pairs, key=str):
        groups.setdefault(pair.group, []).append(pair)
    for group in groups.values():
        draw.shuffle(group)
    turns = [(turn, draw.random(), pair)
             for group in groups.values() for turn, pair in enumerate(group)]  # fmt: skip
    return [pair for _, _, pair in sorted(turns, key=lambda one: one[:2])]


def tried(worlds: Worlds, pair: Pair) -> str:
    """How the pair ended; AssertionError if the table is wrong."""
    world = worlds.new(pair.family, pair.first)
    books = Books(world.index)
    books.show(stream())
    ended = _met(world, pair)
    told = _settled(world)
    state = IndexTable(world.index).required_state()
    assert world.stored() == world.expected(state.slot), f"{pair}: wrong table at {state.slot}"
    assert state.slot >= max(world.reported, default=0), f"{pair}: a reported slot was undone"
    books.follow()
    books.check(world.workspace, settled=False)
    world.report(world.updater().catch_up(ENDS_AT))
    assert world.stored() == world.expected(ENDS_AT), f"{pair}: wrong table after going on"
    books.follow()
    books.check(world.workspace)
    bad = sorted((one["slot"], _number(one["row"]))
                 for one in world.workspace.quarantined(world.index))  # fmt: skip
    wanted = sorted((max(0, slot), 10 * slot + 2) for slot in range(-1, ENDS_AT + 1))
    assert bad == wanted, f"{pair}: in quarantine {bad}"
    shutil.rmtree(world.workspace.folder)
    return f"{ended}; {told}" if told else ended


def _number(text: str) -> int:
    return int(json.loads(text)["id"])


def _met(world: World, pair: Pair) -> str:
    """Runs both. An operation may refuse, with a sentence."""
    count = 0
    refused: list[str] = []
    first = ENDS.get(pair.first, pair.first)

    def watch(step: Step) -> None:
        nonlocal count
        if step is not pair.step:
            return
        count += 1
        if count != pair.nth:
            return
        if pair.first in ENDS:
            raise Crash
        with watched(lambda _: None):
            _run(pair.second, world, refused)

    with suppress(Crash), watched(watch):
        _run(first, world, refused)
    assert count >= pair.nth, f"{pair}: the step was not reached"
    if pair.first in ENDS:
        _run(pair.second, world, refused)
        _run(first, world, refused)
    return "; ".join(refused) or "both done"


def _run(name: str, world: World, refused: list[str]) -> None:
    if name in STRANGERS:
        # What Spark refuses to a stranger is not for us to judge; what becomes of the table is.
        try:
            STRANGERS[name](world)
        except Exception as error:
            refused.append(f"theirs: {type(error).__name__}")
        return
    try:
        OURS[name](world)
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


def run(worlds: Worlds, pairs: Iterable[Pair], until: float) -> tuple[list[Pair], list[Pair]]:
    """Those that were tried before the time was up, and those of them that went wrong."""
    done, wrong = [], []
    for pair in pairs:
        if time.monotonic() > until:
            break
        done.append(pair)
        try:
            print(f"{pair}: {tried(worlds, pair)}", flush=True)
        except Exception as error:
            wrong.append(pair)
            print(f"PAIR {pair} WRONG: {type(error).__name__}: {str(error)[:300]}", flush=True)
            print(f"  again: python -m tests.faults.pairs --pair {pair}", flush=True)
    return done, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Pairs of operations, interleaved.")
    parser.add_argument("--pair", action="append", default=[], help="only this one")
    parser.add_argument("--seed", type=int, default=1, help="which, and in what order")
    parser.add_argument("--minutes", type=float, default=60, help="begin no pair after that")
    options = parser.parse_args()
    from tidetable.engine.session import spark_session

    spark = spark_session(ROOT, "pairs", {"spark.sql.codegen.wholeStage": "false"})
    until = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        worlds = Worlds(spark, Path(folder))
        pairs = [Pair.parsed(text) for text in options.pair]
        pairs = pairs or spread(worlds.all_pairs(), options.seed)
        done, wrong = run(worlds, pairs, until)
    groups = {pair.group for pair in pairs}
    print(
        f"pairs: {len(done)} tried of {len(pairs)}, at {len({pair.group for pair in done})} of "
        f"{len(groups)} steps of an operation and family, {len(wrong)} wrong, seed {options.seed}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
