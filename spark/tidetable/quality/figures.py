"""What a table says about itself without a row being read: the figures of the quality report.

They come from the Delta log (what the statistics of the files say), from the notes of the commits
and from the table of updates (what a check of all rows counted). No JVM, no data file: the cost is
that of reading the log. A damaged table is read like any other; that is what the report is for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from tidetable.config import Index, format_time
from tidetable.core.balance import alike, imbalance
from tidetable.core.cell import Cell
from tidetable.core.schemes import Scheme
from tidetable.quality.cells import CellFigures, cells_of
from tidetable.quality.files import files_of
from tidetable.quality.predict import (
    ROWS_PER_CELL_MIN,
    chance,
    predicted_imbalance,
    rows_to_judge,
)
from tidetable.quality.volume import Judgement, history_of, judged, rows_by_slot
from tidetable.table.history import Updates
from tidetable.table.history_row import UpdateRow
from tidetable.table.note import Note, NoteKind
from tidetable.table.state import IndexTable, State

if TYPE_CHECKING:
    import pandas as pd

FOREIGN_MAX = 100
"""So many commits of others are named."""

CHECKED_ROWS = (
    "rows", "expired", "insertion_out_of_range", "expiration_out_of_range", "misplaced", "no_key",
    "no_inserted_at", "no_expires_at", "wrong_expiration_slot", "wrong_insertion_slot",
)  # fmt: skip
"""What a check of all rows counts (see rows.py)."""


@dataclass(frozen=True)
class Figures:
    """All of it: the cells, and what holds for the table as a whole."""

    index: Index
    scheme: Scheme
    slot: int
    as_of: datetime
    version: int
    """The newest version that has changed rows."""

    note_version: int
    note: Note
    live_before: int | None
    """What the commit must have started from; None if the log no longer tells."""

    due_slot: int | None
    foreign: list[str]
    """Commits of others since the note that have changed rows."""

    cells: list[CellFigures]
    checks: Mapping[str, int] | None
    """What a check of all rows counted right after this commit, if there was one."""

    volume: Judgement
    """What this commit's slot brought, next to what is usual."""

    folders: Mapping[str, Any] | None
    """Which folders of the source it should have found, if the table of updates tells."""

    against_source: Mapping[str, Any] | None = None
    """What a comparison of this version with the source found, if there was one."""

    replay_from: int | None = None
    """If the table is wrong: the slot from which a replay mends it, if one does."""

    strays: int = 0
    """Cells that are not of the scheme."""

    # -- the whole table -------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return sum(cell.rows for cell in self.cells)

    @property
    def files(self) -> int:
        return sum(cell.files for cell in self.cells)

    @property
    def bytes(self) -> int:
        return sum(cell.bytes for cell in self.cells)

    @property
    def bad_rows_allowed(self) -> int:
        limit = self.index.quality.bad_rows_max
        if limit.rows is not None:
            return limit.rows
        assert limit.percent is not None
        return int(self.note.read * limit.percent / 100)

    @property
    def accounted(self) -> int:
        return self.note.inserted + self.note.dead_on_arrival + self.note.quarantined

    @property
    def live_accounted(self) -> int | None:
        """Live rows by the second law; None if it cannot be told."""
        if self.live_before is None:
            return None
        return self.live_before + self.note.inserted - self.note.expired

    # -- balance ---------------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> Mapping[Cell, int]:
        """Rows of the cells that are to be alike."""
        known = {Cell(one.g, one.e): one.rows for one in self.cells if one.g is not None
                 and one.e is not None}  # fmt: skip
        return alike({cell: known.get(cell, 0) for cell in self.scheme.cells()})

    @property
    def imbalance(self) -> float | None:
        return imbalance(self.sizes.values()) if sum(self.sizes.values()) else None

    @cached_property
    def predicted(self) -> float | None:
        """What an even stream would give with the window as far as it is filled."""
        oldest = min(
            (one.first_insertion for one in self.cells if one.first_insertion is not None),
            default=None,
        )
        return predicted_imbalance(self.scheme, self.slot, oldest)

    @property
    def by_accident(self) -> float:
        """What even arrivals would give at most, with as few rows as there are."""
        return (self.predicted or 1.0) * (1 + chance(len(self.sizes), sum(self.sizes.values())))

    @property
    def too_sparse(self) -> str | None:
        """Why the limit on imbalance says nothing about this table; None if it does."""
        rows, cells = sum(self.sizes.values()), len(self.sizes)
        limit = self.index.quality.imbalance_max
        needed = rows_to_judge(cells, limit)
        if rows < needed:
            return (
                f"{rows} rows in {cells} cells are too few to tell from accident; "
                f"a limit of {limit:g} needs {needed}"
            )
        full = predicted_imbalance(self.scheme, self.slot)
        if self.predicted is not None and full is not None and self.predicted > limit >= full:
            return (
                "the table is still filling: even arrivals in the slots that have come so far "
                f"would give {self.predicted:.2f}"
            )
        return None

    @property
    def too_sparse_to_compare(self) -> str | None:
        if self.predicted is None:
            return "the layout is too large to be predicted"
        rows, cells = sum(self.sizes.values()), len(self.sizes)
        if rows < ROWS_PER_CELL_MIN * cells:
            return f"{rows} rows in {cells} cells are too few to compare"
        return None

    # -- for others ------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """The figures of the whole table, as JSON values."""
        note, uneven = self.note, self.imbalance
        return {
            "slot": self.slot,
            "as_of": format_time(self.as_of),
            "due_slot": self.due_slot,
            "version": self.version,
            "kind": note.kind,
            "scheme": self.scheme.label,
            "rows": self.rows,
            "live": note.live,
            "live_before": self.live_before,
            "files": self.files,
            "bytes": self.bytes,
            "cells": len(self.cells),
            "read": note.read,
            "inserted": note.inserted,
            "expired": note.expired,
            "dead_on_arrival": note.dead_on_arrival,
            "quarantined": note.quarantined,
            "reasons": dict(note.reasons),
            "imbalance": None if uneven is None else round(uneven, 4),
            "imbalance_predicted": None if self.predicted is None else round(self.predicted, 4),
            "proven": sum(cell.proven for cell in self.cells),
            "open": sum(cell.open for cell in self.cells),
            "foreign": self.foreign,
            "checks": None if self.checks is None else dict(self.checks),
            "volume": self.volume.as_json(),
            "folders": None if self.folders is None else dict(self.folders),
            "against_source": None if self.against_source is None else dict(self.against_source),
            "replay_from": self.replay_from,
        }

    def frame(self) -> pd.DataFrame:
        """One row for each cell; what holds for the whole table is in the first row alone.

        There it is looked at once. What is missing, in other rows or altogether, is not looked at.
        """
        import pandas as pd

        frame = pd.DataFrame([asdict(cell) for cell in self.cells])
        whole: dict[str, float | int | None] = {
            "slot": self.slot,
            "due_slot": self.due_slot,
            "foreign_commits": len(self.foreign),
            "live": self.note.live,
            "live_accounted": self.live_accounted,
            "forecast": sum(self.note.live_by_expiration.values()),
            "read": self.note.read,
            "accounted": self.accounted,
            "quarantined": self.note.quarantined,
            "volume": self.volume.rows,
            "folders_missing": None if self.folders is None else self.folders["missing"],
            "differing_slots": (self.against_source or {}).get("slots"),
            "imbalance": None if self.too_sparse else self.imbalance,
            "imbalance_compared": None if self.too_sparse_to_compare else self.imbalance,
        }
        for name in CHECKED_ROWS:
            whole[f"checked_{name}"] = None if self.checks is None else self.checks.get(name)
        rest = [None] * (len(frame) - 1)
        frame = frame.assign(**{name: [value, *rest] for name, value in whole.items()})
        # Numbers throughout, so that a column in which nothing is known is one of numbers too.
        numbers = [name for name in frame.columns if name != "cell"]
        return frame.astype(dict.fromkeys(numbers, "float64"))


def gather(
    index: Index, due_slot: int | None = None, against_source: Mapping[str, Any] | None = None
) -> Figures:
    """The figures of the index as it stands, damaged or not.

    `against_source` is what a comparison has just found; without it, what the last update found.
    UserError if there is no table yet; DamagedTable if its log no longer tells the slot.
    """
    table = IndexTable(index)
    # The second look is for what it says when there is nothing to be found.
    state = table.state(trusting=True) or table.required_state()
    last = next(iter(Updates(table.index).last(1)), None)
    if last is not None and last.version != state.version:
        last = None  # of another commit
    figures = figures_of(table.index, state, last)
    if against_source is None and last is not None and figures.version == state.version:
        against_source = last.against_source
    elif against_source is not None and against_source["version"] < figures.version:
        against_source = {"error": "the table has moved on meanwhile"}
    return replace(
        figures,
        due_slot=due_slot,
        volume=volume_of(table.index, state.note, last),
        against_source=against_source,
    )


def figures_of(index: Index, state: State, row: UpdateRow | None) -> Figures:
    """The figures of one version; `row` is what the table of updates says of it."""
    scheme = index.build_scheme()
    slot, note = state.slot, state.note
    cells = cells_of(index, note, list(files_of(state.log, index)))
    return Figures(
        index=index,
        scheme=scheme,
        slot=slot,
        as_of=index.timeline.end_of(slot),
        version=state.log.rows_version,
        note_version=state.version,
        note=note,
        live_before=_live_before(state),
        due_slot=None,
        foreign=list(islice(_foreign(state), FOREIGN_MAX)),
        cells=cells,
        checks=None if row is None else row.checks,
        volume=judged(slot, None, {}, index),
        folders=None if row is None else row.folders,
        strays=len(cells) - len(scheme.cells()),
    )


def volume_of(index: Index, note: Note, row: UpdateRow | None) -> Judgement:
    """What the slot of this commit brought, next to what the updates before it did."""
    if row is None or note.kind != NoteKind.UPDATE:
        return judged(note.slot, None, {}, index)
    by_slot = rows_by_slot(Updates(index).turns(history_of(index) + 2))
    return judged(note.slot, by_slot.get(note.slot), by_slot, index)


# -- the notes -------------------------------------------------------------------------------------


def _live_before(state: State) -> int | None:
    note = state.note
    if note.kind == NoteKind.LOAD:
        return 0
    if note.kind == NoteKind.RESTORE:
        return note.live  # it undoes what came between, so there is nothing to add up
    before = next(islice(state.log.notes(), 1, 2), None)
    if before is None or before[1].slot != note.previous:
        return None
    return before[1].live


def _foreign(state: State) -> Iterator[str]:
    """What others have done to the rows since the note, the newest first."""
    for commit in state.log.commits():
        if commit.version <= state.version:
            return
        if commit.changes_rows:
            yield f"version {commit.version} ({commit.operation})"
