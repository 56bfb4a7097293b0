"""What Airflow is doing for an index, as far as the page tells it. Plain data; runs.py asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tidetable.config import format_time

BETWEEN_RUNS = timedelta(minutes=1)
"""A run that ended this recently is followed by the next one, which Airflow has yet to start."""


@dataclass(frozen=True)
class Failure:
    """The last task of an index's DAG that failed."""

    dag_id: str
    run_id: str
    task: str
    at: datetime
    over: bool
    """Whether the same task has succeeded since."""

    def as_json(self) -> dict[str, Any]:
        return {"run": self.run_id, "task": self.task, "at": format_time(self.at),
                "over": self.over}  # fmt: skip


@dataclass(frozen=True)
class Activity:
    """Where the runs of an index's DAG are."""

    since: datetime | None = None
    """When the run began that is at work; None if none is."""

    waiting: str | None = None
    """The task for which that run waits: to be tried again, or to look again."""

    queued: bool = False
    """Whether a run waits to be started."""

    succeeded_at: datetime | None = None
    """When the last good run ended."""

    paused: bool = False
    failure: Failure | None = None

    def at_work(self, now: datetime) -> bool:
        """Whether a run is at work, or the next one is about to be."""
        if self.since is not None:
            return self.waiting is None
        recent = self.succeeded_at is not None and now - self.succeeded_at < BETWEEN_RUNS
        return not self.paused and recent

    def in_words(self) -> str:
        """Why nothing moves, as a sentence with a blank before it; empty if Airflow cannot tell."""
        if self.since is not None and self.waiting is not None:
            return f" Its run waits for the task {self.waiting}, whose log says why."
        if self.since is not None:
            return " A run is at work, and has committed nothing for long; see its log."
        if self.paused:
            return " Its DAG is paused."
        if self.queued:
            return " A run is queued and has not been started."
        return ""


NOTHING_KNOWN = Activity()
