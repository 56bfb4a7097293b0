"""How far the indexes have caught up: what `make run` shows, and when it is done."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from rig.airflow_api import AirflowApi, Failure
from tidetable.config import Index
from tidetable.core.errors import TidetableError
from tidetable.pipeline.dag_ids import dag_id
from tidetable.quality import latest, reports_home
from tidetable.table.history import Updates
from tidetable.table.history_row import UpdateRow
from tidetable.table.state import IndexTable

_ROWS_SEEN_MAX = 50


class Outcome(StrEnum):
    """Where the catch-up of an index has got to."""

    GOING = "going"
    DONE = "done"
    FAILED = "failed"


@dataclass
class CatchUp:
    """The updates of one index up to a slot."""

    index: Index
    last_slot: int
    """The one at which it has caught up."""

    outcome: Outcome = Outcome.GOING
    why: str = ""
    """If it failed."""

    slot: int | None = None
    """At which the table stands; None: there is none yet."""

    live: int = 0
    finished_runs: int = 0
    failures: list[Failure] = field(default_factory=list)
    since: datetime | None = None
    """Runs that failed before are no news."""

    _version: int = -1

    @property
    def dag_id(self) -> str:
        return dag_id(self.index.name)

    def look(self) -> list[UpdateRow]:
        """Reads where the table stands; returns the updates since the last look."""
        rows = [
            row for row in Updates(self.index).last(_ROWS_SEEN_MAX) if row.version > self._version
        ]
        if rows:
            self._version = rows[-1].version
        state = IndexTable(self.index).state()
        if state is None:
            self.slot, self.live = None, 0
        else:
            self.slot, self.live = state.slot, state.note.live
        return rows

    def settled(self, project: Path) -> str | None:
        """None if the table has got to the last slot with a good report, else what is not so."""
        try:
            self.look()
        except TidetableError as error:
            return str(error)
        if self.slot is None:
            return "there is no table"
        if self.slot < self.last_slot:
            return f"the table stands at slot {self.slot}, not at {self.last_slot}"
        report = latest(reports_home(project), self.index.name)
        if report is None:
            return "there is no quality report"
        if not report["success"]:
            return "the last quality report says that the table is wrong"
        if report["slot"] < self.last_slot:
            return f"the last quality report is about slot {report['slot']}, not {self.slot}"
        return None

    def ask(self, airflow: AirflowApi, project: Path) -> None:
        """Asks Airflow how the runs are, and decides whether this index is done."""
        counts = airflow.counts(self.dag_id, self.since)
        failed = counts.get("failed", 0)
        self.finished_runs = counts.get("success", 0) + failed
        if failed:
            newest = airflow.runs(self.dag_id, "failed", limit=1)[0]
            self.failures = airflow.failures(self.dag_id, newest.run_id)
            self._fail(f"{failed} of its runs failed, the last of them {newest.run_id}")
        elif self.finished_runs >= self.last_slot:
            unsettled = self.settled(project)
            if unsettled is None:
                self.outcome = Outcome.DONE
            elif counts.get("success", 0) >= self.last_slot:
                self._fail(
                    f"all runs have succeeded, but {unsettled}. If somebody has removed the table: "
                    "`make clean` also removes what Airflow remembers, and then all starts over"
                )
        elif airflow.is_paused(self.dag_id):
            self._fail("its DAG is paused in Airflow: switch it on there")

    def again(self) -> None:
        """The failure has been told: a later one is news again."""
        self.outcome, self.failures, self.since = Outcome.GOING, [], datetime.now(UTC)

    def _fail(self, why: str) -> None:
        self.outcome, self.why = Outcome.FAILED, why


def to_the_end(indexes: Sequence[Index]) -> list[CatchUp]:
    """Of all indexes that end, up to there; the others have no last run to wait for."""
    found = [
        CatchUp(index, index.timeline.ended_by(index.end))
        for index in indexes
        if index.end is not None
    ]
    return [one for one in found if one.last_slot > 0]


def to_now(indexes: Sequence[Index], now: datetime) -> list[CatchUp]:
    """Of all indexes, up to the last slot that has ended; earlier failures are no news."""
    found = [
        CatchUp(index, index.timeline.ended_by(min(now, index.end or now)), since=now)
        for index in indexes
    ]
    return [one for one in found if one.last_slot > 0]


def nothing_left(waiting: Sequence[CatchUp], project: Path) -> bool:
    """Whether every one stands at its end already, with a good report."""
    return all(one.settled(project) is None for one in waiting)


@dataclass(frozen=True)
class Timing:
    """How long whole updates took, all tasks of a run."""

    runs: int
    first_s: float
    """The first one creates the table, and finds a Spark that has done nothing yet."""

    median_s: float
    longest_s: float
    """Of the others."""


def timing(airflow: AirflowApi, one: CatchUp) -> Timing | None:
    """Of the runs that succeeded, a hundred at most; None if there is none."""
    taken = [run.seconds for run in airflow.runs(one.dag_id, "success") if run.seconds is not None]
    if not taken:
        return None
    *others, first = taken  # the newest comes first
    others = others or [first]
    return Timing(len(taken), first, statistics.median(others), max(others))
