"""Long stories: three windows of updates with everything that may happen to an index in between.

After every step the table and its quarantine are compared, row by row, with what timestamps alone
say. A story follows from its scheme and its seed:

    python -m tests.faults.story --scheme sweep --seed 7
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.faults.stream import LONGEST, PERIOD, Stream
from tests.oracle.books import Books, assert_same, contents
from tests.workspace import SCHEMA, Workspace
from tidetable.engine import reading
from tidetable.engine.rebuild import rebuild
from tidetable.engine.replay import replay
from tidetable.engine.updater import Updater
from tidetable.table import read
from tidetable.table.log import open_log
from tidetable.table.restriction import Restriction
from tidetable.table.steps import Step, watched
from tidetable.table.upkeep import maintain, purge, retention

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
SLOTS = 3 * PERIOD
"""Three windows."""

SCHEMES: dict[str, dict[str, Any]] = {
    "rebuild": {"name": "rebuild", "insertion": 2, "expiration": 2},
    "rebuild_chronological": {
        "name": "rebuild", "insertion": 2, "expiration": 2, "placement": "chronological",
    },
    "no_rebuild": {"name": "no_rebuild", "insertion": 2, "expiration": 2},
    "sweep": {"name": "sweep", "groups": 3},
    "sweep_with_log": {"name": "sweep", "groups": 2, "every": 2, "deletion_vectors": True},
    "sweep_with_merged_log": {
        "name": "sweep", "groups": 3, "every": 2, "deletion_vectors": True, "merge_log": 3,
    },
    "tiers": {"name": "tiers", "groups": 2, "fan_in": 2},
}  # fmt: skip

CARDS = ("replay", "replay", "rebuild", "maintain", "purge", "crash", "crash", "crash")
"""What comes between updates, in an order that the seed decides."""


STEPS = {
    "update": [
        Step.PLAN_MADE, Step.QUARANTINE_WRITTEN, Step.FILES_WRITTEN, Step.COMMITTED, Step.RECORDED,
    ],
    "replay": [Step.COMMITTED, Step.RECORDED, Step.PLAN_MADE, Step.FILES_WRITTEN],
    "rebuild": [Step.FILES_WRITTEN, Step.COMMITTED, Step.RECORDED],
    "maintain": [Step.CHECKPOINTED, Step.GARBAGE_FOUND, Step.FILES_DELETED],
    "purge": [Step.GARBAGE_FOUND, Step.FILES_DELETED],
}  # fmt: skip
"""The steps that each command comes to."""


class Crash(BaseException):
    """The program ends here. Nothing that catches errors may catch it."""


class Story:
    """One index and what happens to it."""

    def __init__(self, spark: SparkSession, folder: Path, scheme: str, seed: int) -> None:
        self.spark = spark
        self.line = f"STORY python -m tests.faults.story --scheme {scheme} --seed {seed}"
        self.draw = Random(f"{scheme}/{seed}")
        self.stream = Stream(self.draw)
        self.workspace = Workspace(folder)
        self.index = self.workspace.index(
            scheme=dict(SCHEMES[scheme]),
            longest_lifetime=f"{LONGEST // timedelta(minutes=1)}m",
            source={"recount_every": 3},
        )
        assert self.index.period == PERIOD
        self.books = Books(self.index)
        self.shown = -PERIOD
        self.commits_at: list[datetime] = []
        self.steps: list[str] = []
        self.crashes = 0

    @property
    def slot(self) -> int:
        return -1 if self.books.slot is None else self.books.slot

    def tell(self) -> int:
        """Plays all of it; how many steps it had. AssertionError with the line that replays it."""
        cards = list(CARDS)
        self.draw.shuffle(cards)
        try:
            self.update()
            while cards or self.slot < SLOTS:
                if cards:
                    getattr(self, cards.pop())()
                self.update()
            self.finish()
        except Exception as error:
            told = "\n  ".join(self.steps[-6:])
            raise AssertionError(
                f"{self.line}\n  {told}\n{type(error).__name__}: {error}"
            ) from error
        return len(self.steps)

    # -- steps -----------------------------------------------------------------------------------

    def update(self) -> None:
        """The next one to three slots, folded or one by one."""
        target = self.slot + self.draw.choice((1, 1, 2, 3))
        fold = self.draw.random() < 0.7
        self._show(target)
        self._done(
            f"update to {target}{' folded' if fold else ''}", self._catching_up(target, fold)
        )
        assert self.slot == target

    def replay(self) -> None:
        if self.slot < 1:
            return
        last, first = self.slot, self._back()
        self._done(f"replay from {first}", lambda: list(replay(self._updater(), first)))
        assert self.slot == last

    def rebuild(self) -> None:
        self._done("rebuild", lambda: rebuild(self._updater()))

    def maintain(self) -> None:
        now = self._later()
        self._done(f"maintain as of {now}", lambda: maintain(self.index, force=True, now=now))

    def purge(self) -> None:
        now = self._later()
        self._done(f"purge as of {now}", lambda: purge(self.index, now))

    def crash(self) -> None:
        """The program dies at a step, is started again and dies again; then it is let through."""
        target = self.slot + self.draw.choice((1, 2))
        self._show(target)
        command = self.draw.choice(("update", "update", "replay", "rebuild", "maintain"))
        first, now = self._back(), self._later()
        acts: dict[str, Callable[[], object]] = {
            "update": self._catching_up(target, self.draw.random() < 0.7),
            "replay": lambda: list(replay(self._updater(), first)),
            "rebuild": lambda: rebuild(self._updater()),
            "maintain": lambda: maintain(self.index, force=True, now=now),
        }
        for _ in range(2):
            step, times = self.draw.choice(STEPS[command]), self.draw.choice((1, 1, 1, 2))
            if command == "replay" and not 1 <= first <= self.slot:
                break  # it died at an earlier slot: an update goes on from there
            self._crashed(command, acts[command], step, times)

    def finish(self) -> None:
        """Spark reads what delta-rs reads, and nothing that no version names is left for ever."""
        frame = reading.frame(self.spark, read.view(self.index), Restriction())
        assert_same(
            contents(reading.spark_rows(frame)), self.books.expected(), "rows read by Spark"
        )
        maintain(self.index, force=True, now=datetime.now(UTC) + timedelta(days=400))
        log = open_log(self.index.table)
        assert log is not None
        self.books.check(self.workspace)

    # -- parts -----------------------------------------------------------------------------------

    def _show(self, last: int) -> None:
        """The source gets the rows of the slots up to `last`, and late ones of those before."""
        rows = []
        for slot in range(self.shown + 1, last + 1):
            rows += self.stream.steady(slot)
            # The second window is steady: there counts see nothing.
            if not PERIOD < slot <= 2 * PERIOD and self.draw.random() < 0.5:
                rows += self.stream.rough(slot)
        if self.shown > 2 * PERIOD and self.draw.random() < 0.5:
            rows += self.stream.rough(self.shown)
        self.shown = max(self.shown, last)
        if rows:
            self.workspace.add(rows, schema=SCHEMA)
            self.books.show(rows)

    def _updater(self) -> Updater:
        return Updater(self.spark, self.index)

    def _catching_up(self, target: int, fold: bool) -> Callable[[], object]:
        return lambda: list(self._updater().catch_up(target, fold=fold))

    def _back(self) -> int:
        return max(1, self.slot - self.draw.choice((0, 1, 2, 4)))

    def _later(self) -> datetime:
        """A time at which files may go that were replaced before some earlier commit."""
        since = self.draw.choice([*self.commits_at[-6:], datetime.now(UTC) + timedelta(days=40)])
        return since + retention(self.index)

    def _done(self, what: str, act: Callable[[], object]) -> None:
        self.steps.append(what)
        act()
        self._check()

    def _crashed(self, what: str, act: Callable[[], object], step: Step, times: int) -> None:
        self.steps.append(f"{what}, ends at {step!r} for the {times}. time")
        left = [times]

        def watch(reached: Step) -> None:
            left[0] -= reached is step
            if not left[0]:
                raise Crash

        with suppress(Crash), watched(watch):
            act()
        died = left[0] == 0
        self.crashes += died
        # What found nothing to do does not make up for what the one before it had not recorded.
        self._check(settled=False)

    def _check(self, *, settled: bool = True) -> None:
        told = self.books.follow()
        self.steps[-1] += f": {', '.join(told) or 'no commit'}"
        self.commits_at.append(datetime.now(UTC))
        self.books.check(self.workspace, settled=settled)


def tell(spark: SparkSession, scheme: str, seed: int) -> Story:
    """Plays one story in a folder of its own."""
    with TemporaryDirectory(prefix="tidetable-story-") as folder:
        story = Story(spark, Path(folder), scheme, seed)
        story.tell()
        return story


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", choices=list(SCHEMES), action="append")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--stories", type=int, default=1, help="of each scheme, from this seed on")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no story after that")
    given = parser.parse_args()
    from tidetable.engine.session import spark_session

    spark = spark_session(ROOT, "tidetable stories", SMALL_PLANS)
    until = time.monotonic() + 60 * given.minutes
    told = steps = crashes = 0
    for seed in range(given.seed, given.seed + given.stories):
        for scheme in given.scheme or list(SCHEMES):
            if time.monotonic() > until:
                break
            began = time.monotonic()
            try:
                story = tell(spark, scheme, seed)
            except AssertionError as error:
                sys.exit(str(error))
            told, steps, crashes = told + 1, steps + len(story.steps), crashes + story.crashes
            print(f"{story.line}: {len(story.steps)} steps, {story.crashes} crashes, "
                  f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
    print(f"{told} stories, {steps} steps, {crashes} crashes")


SMALL_PLANS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""To compile a plan takes longer than to run it once over a few rows."""

if __name__ == "__main__":
    main()
