"""Where each index stands and how it is, for the page: from the Delta logs, without a JVM.

The clock is passed in. Nothing here fails because of one index: what is wrong with it becomes its
health, and as much is told as can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from tidetable.config import ConfigError, Index, format_time
from tidetable.core.cell import CellState
from tidetable.core.errors import TidetableError, UserError
from tidetable.pipeline.catalog import Catalog
from tidetable.pipeline.preparation import slot_due
from tidetable.table.damage import DamagedTable
from tidetable.table.state import IndexTable
from tidetable.table.status import Status, status

DAG_PREFIX = "tidetable__"


class Health(StrEnum):
    """How an index is, the worst that is true of it. Their order is their weight."""

    BROKEN = "broken"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"
    FAILING = "failing"
    LATE = "late"
    WARNING = "warning"
    EMPTY = "empty"
    OK = "ok"


_WORDS = {
    Health.BROKEN: "broken YAML",
    Health.DAMAGED: "damaged",
    Health.UNREADABLE: "cannot be read",
    Health.FAILING: "failing",
    Health.LATE: "late",
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
        return DAG_PREFIX + self.name


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
            "health_word": _WORDS[self.health],
            "sentence": self.sentence,
        }


def stand(entry: Entry, now: datetime, reports: Path) -> Standing:
    """Looks at one index; whatever is wrong with it becomes its health."""
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
        return wrong(Health.DAMAGED, str(error), _as_far_as_known(index))
    except UserError as error:
        return wrong(Health.EMPTY if _has_no_table(index) else Health.BROKEN, str(error))
    except TidetableError as error:
        return wrong(Health.UNREADABLE, str(error))
    except Exception as error:  # storage that does not answer, a log that is no log
        return wrong(Health.UNREADABLE, f"The table cannot be read: {brief(error)}")
    return Standing(entry, *_judge(index, found, due, quality, now), due, found, quality)


def _judge(
    index: Index, found: Status, due: int, quality: Mapping[str, Any] | None, now: datetime
) -> tuple[Health, str]:
    failed, warned = sentences(quality, "failed"), sentences(quality, "warnings")
    if quality is not None and not quality.get("success", True):
        return Health.FAILING, _first(failed, "The last quality report failed.")
    oldest_missing = index.timeline.end_of(found.slot + 1) + index.source.grace
    # An update takes a while: late is what has been due for as long as the next one takes to come.
    if found.slot < due and now - oldest_missing >= index.update_every:
        behind = due - found.slot
        updates = "1 update" if behind == 1 else f"{behind:,} updates"
        return Health.LATE, f"{updates} behind: slot {due} is due, the table is at {found.slot}."
    if warned:
        return Health.WARNING, _first(warned, "")
    if quality is None:
        return Health.OK, "Up to date. There is no quality report yet."
    return Health.OK, "Up to date, and the last quality report passed."


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
