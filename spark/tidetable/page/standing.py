"""Where each index stands and how it is, for the page: from the Delta logs, without a JVM.

The clock is passed in. Nothing here fails because of one index: what is wrong with it becomes its
health, and as much is told as can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from tidetable.config import ConfigError, Index, format_duration, format_time
from tidetable.core.cell import CellState
from tidetable.core.errors import TidetableError, UserError
from tidetable.output.remedies import as_command
from tidetable.page.activity import NOTHING_KNOWN, Activity, Failure
from tidetable.pipeline.catalog import Catalog
from tidetable.pipeline.dag_ids import dag_id
from tidetable.pipeline.preparation import slot_due
from tidetable.table.damage import DamagedTable
from tidetable.table.state import IndexTable
from tidetable.table.status import Status, status

PACE = 6
"""By this many newest commits it is judged whether an index catches up or falls behind."""

SILENT_MAX = timedelta(minutes=15)
"""A run that has committed nothing for this long, or for an interval, does not count as one that
catches up."""


class Health(StrEnum):
    """How an index is, the worst that is true of it. Their order is their weight."""

    BROKEN = "broken"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"
    FAILING = "failing"
    LATE = "late"
    CATCHING_UP = "catching_up"
    FIRST = "first"
    WARNING = "warning"
    EMPTY = "empty"
    OK = "ok"


_WORDS = {
    Health.BROKEN: "broken YAML",
    Health.DAMAGED: "damaged",
    Health.UNREADABLE: "cannot be read",
    Health.FAILING: "failing",
    Health.LATE: "late",
    Health.CATCHING_UP: "catching up",
    Health.FIRST: "first update is running",
    Health.WARNING: "warning",
    Health.EMPTY: "no table yet",
    Health.OK: "ok",
}


@dataclass(frozen=True)
class Entry:
    """One index file: the index in it, or what is wrong with the file."""

    name: str
    file: str
    index: Index | None = None
    mistake: str | None = None

    @property
    def dag_id(self) -> str:
        return dag_id(self.name)


def entries(catalog: Catalog) -> list[Entry]:
    """All index files of a project, broken ones too, in order of their names."""
    found = [Entry(name, entry.file, entry.index) for name, entry in catalog.entries.items()]
    found += [_broken(mistake) for mistake in catalog.mistakes]
    return sorted(found, key=lambda entry: (entry.name, entry.index is None))


def _broken(error: ConfigError) -> Entry:
    return Entry(Path(error.file).stem, error.file, mistake=str(error))


@dataclass(frozen=True)
class Standing:
    """What was found out about one index, and how it is."""

    entry: Entry
    health: Health
    sentence: str
    due: int | None = None
    status: Status | None = None
    quality: Mapping[str, Any] | None = None
    activity: Activity = NOTHING_KNOWN

    @property
    def word(self) -> str:
        """Its health in a few words."""
        if self.health is Health.CATCHING_UP and self.status is not None:
            return f"catching up, {self.status.slot:,} of {self.due:,}"
        return _WORDS[self.health]

    @property
    def lag(self) -> int | None:
        """How many slots that are due have not been applied."""
        if self.due is None:
            return None
        return max(0, self.due - (0 if self.status is None else self.status.slot))

    def as_json(self) -> dict[str, Any]:
        """One line of the list of indexes."""
        index, found = self.entry.index, self.status
        if found is not None:
            index = found.index  # with the scheme that an `auto` has become
        return {
            "name": self.entry.name,
            "dag_id": self.entry.dag_id,
            "file": self.entry.file,
            "scheme": None if index is None else index.scheme_label,
            "slot": None if found is None else found.slot,
            "as_of": None if found is None else format_time(found.as_of),
            "live": None if found is None else found.live,
            "due": self.due,
            "lag": self.lag,
            "health": str(self.health),
            "health_word": self.word,
            "sentence": self.sentence,
        }


def stand(
    entry: Entry,
    now: datetime,
    reports: Path,
    ask: Callable[[str], Activity] = lambda dag_id: NOTHING_KNOWN,
) -> Standing:
    """Looks at one index; whatever is wrong with it becomes its health.

    `ask` says what Airflow is doing for a DAG; it is asked only about indexes that are not where
    they should be.
    """
    if entry.index is None:
        return Standing(entry, Health.BROKEN, entry.mistake or "")
    index = entry.index
    due = slot_due(index, now - index.source.grace)
    quality = _latest_quality(reports, index.name)

    def wrong(health: Health, sentence: str, found: Status | None = None) -> Standing:
        return Standing(entry, health, sentence, due, found, quality)

    try:
        found = status(index)
    except DamagedTable as error:
        return wrong(Health.DAMAGED, error.told(as_command), _as_far_as_known(index))
    except UserError as error:
        if not _has_no_table(index):
            return wrong(Health.BROKEN, error.told(as_command))
        doing = ask(entry.dag_id)
        return replace(wrong(*_judge_empty(error.told(as_command), doing, now)), activity=doing)
    except TidetableError as error:
        return wrong(Health.UNREADABLE, error.told(as_command))
    except Exception as error:  # storage that does not answer, a log that is no log
        return wrong(Health.UNREADABLE, f"The table cannot be read: {brief(error)}")
    doing = ask(entry.dag_id) if found.slot < due else NOTHING_KNOWN
    judged = _judge(index, found, due, quality, now, doing)
    return Standing(entry, *judged, due, found, quality, doing)


def _judge_empty(sentence: str, doing: Activity, now: datetime) -> tuple[Health, str]:
    if doing.failure is not None and not doing.failure.over:
        return Health.FAILING, f"{_failed(doing.failure)} {sentence}"
    if doing.at_work(now):
        return Health.FIRST, (
            "The first update is running: it makes the table and loads the rows that are alive at "
            "its start."
        )
    return Health.EMPTY, sentence + doing.in_words()


def _failed(failure: Failure) -> str:
    return (
        f"The task {failure.task} failed at {format_time(failure.at)}; its log in Airflow says why."
    )


def _judge(
    index: Index,
    found: Status,
    due: int,
    quality: Mapping[str, Any] | None,
    now: datetime,
    doing: Activity,
) -> tuple[Health, str]:
    failed, warned = sentences(quality, "failed"), sentences(quality, "warnings")
    if quality is not None and not quality.get("success", True):
        return Health.FAILING, _first(failed, "The last quality report failed.")
    if found.slot < due and doing.failure is not None and not doing.failure.over:
        return Health.FAILING, f"{_failed(doing.failure)} {_behind(found.slot, due)}"
    oldest_missing = index.timeline.end_of(found.slot + 1) + index.source.grace
    # An update takes a while: late is what has been due for as long as the next one takes to come.
    if found.slot < due and now - oldest_missing >= index.update_every:
        return _judge_overdue(index, found.slot, due, doing, now)
    if warned:
        return Health.WARNING, _first(warned, "")
    if quality is None:
        return Health.OK, "Up to date. There is no quality report yet."
    return Health.OK, "Up to date, and the last quality report passed."


def _judge_overdue(
    index: Index, slot: int, due: int, doing: Activity, now: datetime
) -> tuple[Health, str]:
    """Late, unless the missing slots are being applied faster than new ones come due."""
    behind = _behind(slot, due)
    if not doing.at_work(now):
        return Health.LATE, behind + doing.in_words()
    done = _last_commits(index)
    alive = [at for at in (doing.since, *(at for _, at in done[:1])) if at is not None]
    if alive and now - max(alive) > max(index.update_every, SILENT_MAX):
        return Health.LATE, behind + doing.in_words()
    lags = [slot_due(index, at - index.source.grace) - slot for slot, at in done]
    if len(lags) >= PACE and lags[0] > lags[-1]:
        return Health.LATE, (
            f"{behind} Updates are running, and take longer than the "
            f"{format_duration(index.update_every)} between them: it falls further behind."
        )
    left = due - slot
    return Health.CATCHING_UP, (
        f"Slot {slot:,} of {due:,} is done, {_updates(left)} to go. Missing slots are applied in "
        "order, one commit each."
    )


def _behind(slot: int, due: int) -> str:
    return f"{_updates(due - slot)} behind: slot {due} is due, the table is at {slot}."


def _updates(number: int) -> str:
    return "1 update" if number == 1 else f"{number:,} updates"


def _last_commits(index: Index) -> list[tuple[int, datetime]]:
    """Slot and time of the newest commits that applied one, the newest first."""
    try:
        log = IndexTable(index).log()
        found = [] if log is None else list(islice(log.commits(), PACE))
    except Exception:  # then how fast it goes is not known
        return []
    return [
        (one.note.slot, one.at) for one in found
        if one.note is not None and one.note.kind == "update" and one.at is not None
    ]  # fmt: skip


def _first(told: Sequence[str], otherwise: str) -> str:
    if not told:
        return otherwise
    more = len(told) - 1
    return told[0] + (f" And {more} more." if more else "")


def _has_no_table(index: Index) -> bool:
    try:
        return IndexTable(index).state() is None
    except Exception:  # then there is something in its place, and the first error says what
        return False


def _as_far_as_known(index: Index) -> Status | None:
    """Where a damaged table stands by its last note."""
    try:
        table = IndexTable(index)
        state = table.state(trusting=True)
        if state is None:
            return None
        index = table.index
        scheme = index.build_scheme()
        cells = {cell: state.log.cells.get(cell, CellState()) for cell in scheme.cells()}
    except Exception:  # damaged beyond its log: then there is no picture, only the sentence
        return None
    return Status(index, state.slot, table.as_of(state.slot), scheme.label, state.note, cells)


def _latest_quality(reports: Path, name: str) -> Mapping[str, Any] | None:
    from tidetable.quality import latest

    try:
        return latest(reports, name)
    except Exception:  # half-written or of another version: the next validation replaces it
        return None


def sentences(quality: Mapping[str, Any] | None, kind: str) -> list[str]:
    """What the last quality report says under `failed` or `warnings`."""
    found = [] if quality is None else quality.get(kind) or []
    return [one if isinstance(one, str) else str(one.get("sentence", one)) for one in found]


def brief(error: Exception) -> str:
    """What an error of somebody else's says, in a line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:299] + "…"
