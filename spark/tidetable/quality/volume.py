"""How many rows a slot brought, next to what is usual: the check that a source is still there.

What is usual is what the table of updates says that earlier updates read. A slot is compared with
the same time of day on earlier days, so that a quiet night is no alarm; with the same day a week
ago too, so that a quiet Sunday is none. Medians of the days, so that one odd day changes nothing.
No clock, no Spark: it takes some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, sqrt
from statistics import median
from typing import Any

from tidetable.config import Index, Volume
from tidetable.table.folders import folders_in_words
from tidetable.table.history import ROWS_MAX, Turn, Updates
from tidetable.table.note import NoteKind

DAY = timedelta(days=1)
WEEK_DAYS = 7
NEAR = timedelta(hours=1)
"""As far from the same time of day counts as the same: summer time moves a source by an hour."""

HISTORY = 8 * DAY
HISTORY_TURNS_MIN = 28
"""Four weeks of an index that is updated once a day."""

TURNS_MIN = 3
"""With fewer earlier turns at this time of day nobody knows what is usual."""

ACCIDENT = 4
"""So many times the root of a number of rows it may vary by accident alone."""


@dataclass(frozen=True)
class Usual:
    """What earlier updates brought, in rows for each slot."""

    least: float
    """At this time of day: the median of the days' smallest turns within NEAR of it."""

    most: float
    """The median of the days' largest turns, at any time."""

    turns: int
    """How many earlier turns these are the figures of."""

    days: int | None
    """How many days; None if no time of day was looked at."""


@dataclass(frozen=True)
class Judgement:
    """What a slot brought, and between which limits it should have been."""

    slot: int
    rows: float | None
    """Rows read for the slot; of a fold the mean of its slots. None if it took none."""

    usual: Usual | None = None
    low: float | None = None
    high: float | None = None
    """None: there is no limit on this side."""

    why_not: str | None = None
    """Why nothing can be said; then all of the above is None."""

    @property
    def is_low(self) -> bool:
        return self.rows is not None and self.low is not None and self.rows < self.low

    @property
    def is_high(self) -> bool:
        return self.rows is not None and self.high is not None and self.rows > self.high

    @property
    def holds(self) -> bool:
        return not self.is_low and not self.is_high

    @property
    def is_quiet_time(self) -> bool:
        """Whether nothing is usual at this time of day, though the source is alive otherwise."""
        return self.usual is not None and self.usual.least == 0 and self.usual.most > 0

    @property
    def limits(self) -> str:
        """For people: 'at least 12', 'at most 5,000', '12 to 5,000'."""
        low, high = self.low, self.high
        if not low and high is None:
            return "any number"
        if not low:
            return f"at most {_rows(high)}"
        least = _rows(ceil(low))
        return f"at least {least}" if high is None else f"{least} to {_rows(high)}"

    @property
    def found(self) -> str:
        told = f"{_rows(self.rows or 0)} rows"
        if self.usual is None:
            return told
        least, most, days = _rows(self.usual.least), _rows(self.usual.most), self.usual.days
        if days is None:
            return f"{told}; the last {self.usual.turns} updates brought {least}, by the median"
        when = "the day before" if days == 1 else f"the last {days} days"
        return (
            f"{told}; {when} brought at least {least} at this time of day, and at most {most} in "
            "a slot"
        )

    def as_json(self) -> dict[str, Any]:
        usual = self.usual
        return {
            "slot": self.slot,
            "rows": self.rows,
            "low": self.low,
            "high": self.high,
            "usual_least": None if usual is None else usual.least,
            "usual_most": None if usual is None else usual.most,
            "days": None if usual is None else usual.days,
            "why_not": self.why_not,
        }


def history_of(index: Index) -> int:
    """How many updates are looked at to tell what is usual."""
    wanted = index.quality.volume.over
    if wanted is not None:
        return wanted
    return min(ROWS_MAX, max(HISTORY_TURNS_MIN, -(-HISTORY // index.update_every)))


def rows_by_slot(turns: Iterable[Turn]) -> dict[int, float]:
    """Rows for each slot, by the last update that took it, from turns in the order of commits.

    A fold counts once, at its last slot, with the mean of its slots. What a replay has undone does
    not count. Late rows are taken off: they are of other slots.
    """
    found: dict[int, float] = {}
    before: int | None = None
    for turn in turns:
        if turn.kind in (NoteKind.LOAD, NoteKind.RESTORE):
            found = {slot: rows for slot, rows in found.items() if slot <= turn.slot}
        elif turn.kind == NoteKind.UPDATE and before is not None and turn.slot > before:
            found[turn.slot] = max(0, turn.read - turn.late) / (turn.slot - before)
        before = turn.slot
    return found


def usual_at(slot: int, by_slot: Mapping[int, float], every: timedelta) -> Usual | None:
    """What the slots before this one say is usual; None if they are too few to say."""
    near = max(every / 2, NEAR)
    least: dict[int, float] = {}
    most: dict[int, float] = {}
    turns = 0
    for earlier, rows in by_slot.items():
        ago = (slot - earlier) * every
        day = round(ago / DAY)
        if earlier >= slot or day < 1:
            continue  # a source that stops must not become its own measure within the day
        most[day] = max(rows, most.get(day, 0))
        if abs(ago - day * DAY) <= near:
            turns += 1
            least[day] = min(rows, least.get(day, rows))
    if turns < TURNS_MIN:
        return None
    return Usual(least=min(_medians(least)), most=max(_medians(most)), turns=turns, days=len(least))


def usual_of_last(slot: int, by_slot: Mapping[int, float]) -> Usual | None:
    """The same from the last slots whatever the time of day, where the YAML asks for so few."""
    earlier = [rows for at, rows in by_slot.items() if at < slot]
    if len(earlier) < TURNS_MIN:
        return None
    middle = median(earlier)
    return Usual(least=middle, most=middle, turns=len(earlier), days=None)


def _medians(by_day: Mapping[int, float]) -> list[float]:
    """That of all days, and that of the same days of earlier weeks if there are any."""
    weekly = [rows for day, rows in by_day.items() if day % WEEK_DAYS == 0]
    return [median(by_day.values()), *([median(weekly)] if weekly else [])]


def judged(slot: int, rows: float | None, by_slot: Mapping[int, float], index: Index) -> Judgement:
    """Whether so many rows are usual; `by_slot` has what earlier slots brought."""
    if rows is None:
        return Judgement(slot, None, why_not="this commit took no rows of a slot of its own")
    over, every = index.quality.volume.over, index.update_every
    if over is not None and over * every < DAY:
        usual = usual_of_last(slot, by_slot)
    else:
        usual = usual_at(slot, by_slot, every)
    if usual is None:
        return Judgement(slot, rows, why_not="too few updates came before to tell what is usual")
    low, high = _limits(usual, index.quality.volume)
    return Judgement(slot, rows, usual, low, high)


def of_preview(index: Index, answer: Mapping[str, Any], ended: int) -> dict[str, Any]:
    """What `check` says of the folders and the volume of a slot that is over: a part of its answer.

    `answer` is that of `Updater.preview`, `ended` the last slot that is over. A slot that is not
    over has no volume yet, and a first load has none to compare with.
    """
    slot, next_slot, folders = answer["slot"], answer["next_slot"], answer["folders"]
    if slot is None:
        unseen = [] if folders is None else [
            f"Of the folders that source.path names, {folders_in_words(folders)}. Compare it with "
            "the names of the folders."
        ]  # fmt: skip
        return {"volume": None, "warnings": unseen}
    if next_slot > ended:
        return {"folders": None, "volume": None, "warnings": []}
    by_slot = rows_by_slot(Updates(index).turns(history_of(index) + 1))
    volume = judged(next_slot, answer["read"], by_slot, index)
    warnings = []
    if folders and folders["missing"] and not volume.is_quiet_time:
        warnings.append(
            f"Of the folders that source.path names for slot {next_slot}, "
            f"{folders_in_words(folders)}."
        )
    if not volume.holds:
        warnings.append(f"Slot {next_slot} should bring {volume.limits} rows: {volume.found}.")
    return {"volume": volume.as_json(), "warnings": warnings}


def _limits(usual: Usual, wanted: Volume) -> tuple[float, float | None]:
    # A few rows more or less are an accident, however large a share of a small number they are.
    low = min(wanted.min_share * usual.least, usual.least - ACCIDENT * sqrt(usual.least))
    if not usual.most:
        return max(0.0, low), None
    by_accident = usual.most + ACCIDENT * sqrt(usual.most) + ACCIDENT**2
    return max(0.0, low), max(wanted.max_share * usual.most, by_accident)


def _rows(number: float | None) -> str:
    return "no limit" if number is None else f"{number:,.0f}"
