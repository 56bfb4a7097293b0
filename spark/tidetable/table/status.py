"""Where an index stands and how its cells are filled, from the Delta log alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidetable.config import Index, format_time
from tidetable.core.balance import alike, imbalance
from tidetable.core.cell import Cell, CellState
from tidetable.core.errors import UserError
from tidetable.core.plan import Action, Plan
from tidetable.table.note import Note
from tidetable.table.state import IndexTable, State


@dataclass(frozen=True)
class Status:
    """What `tidetable status` shows."""

    index: Index
    slot: int
    as_of: datetime
    scheme: str
    note: Note
    cells: dict[Cell, CellState]
    """Every cell of the layout, empty ones too."""

    @property
    def live(self) -> int:
        return sum(state.rows for state in self.cells.values())

    @property
    def files(self) -> int:
        return sum(state.files for state in self.cells.values())

    @property
    def bytes(self) -> int:
        return sum(state.bytes for state in self.cells.values())

    @property
    def imbalance(self) -> float | None:
        """Largest cell / mean cell, without a log; None while there is no row."""
        if not self.live:
            return None
        return imbalance(alike({cell: one.rows for cell, one in self.cells.items()}).values())

    def as_json(self) -> dict[str, Any]:
        uneven = self.imbalance
        return {
            "slot": self.slot,
            "as_of": format_time(self.as_of),
            "scheme": self.scheme,
            "live": self.live,
            "files": self.files,
            "bytes": self.bytes,
            "imbalance": None if uneven is None else round(uneven, 4),
            "cells": [
                {
                    "g": cell.g,
                    "e": cell.e,
                    "rows": state.rows,
                    "files": state.files,
                    "bytes": state.bytes,
                }
                for cell, state in self.cells.items()
            ],
        }


def status(index: Index) -> Status:
    """Of the table as it is now."""
    table = IndexTable(index)
    return status_of(table, table.required_state())


def status_of(table: IndexTable, state: State) -> Status:
    """The same of a table whose state is known."""
    index = table.index
    scheme = index.build_scheme()
    cells = {cell: state.log.cells.get(cell, CellState()) for cell in scheme.cells()}
    return Status(index, state.slot, table.as_of(state.slot), scheme.label, state.note, cells)


@dataclass(frozen=True)
class Outlook:
    """What an update would do, as far as it can be told before its rows are read."""

    slot: int
    as_of: datetime
    creates: bool
    expiring: int | None
    plan: Plan
    cells: dict[Cell, CellState]

    def as_json(self) -> dict[str, Any]:
        touched = [
            {
                "g": cell.g,
                "e": cell.e,
                "action": str(touch.action),
                "why": touch.why,
                "rows": self.cells.get(cell, CellState()).rows,
                "files": self.cells.get(cell, CellState()).files,
                "bytes": self.cells.get(cell, CellState()).bytes,
            }
            for cell, touch in sorted(self.plan.touched.items())
        ]
        written_again = self.plan.cells(Action.REWRITE, Action.MOVE)
        rewritten = [self.cells[cell] for cell in written_again if cell in self.cells]
        return {
            "slot": self.slot,
            "as_of": format_time(self.as_of),
            "creates_table": self.creates,
            "expiring": self.expiring,
            "cells": touched,
            "rewritten_rows": sum(state.rows for state in rewritten),
            "rewritten_files": sum(state.files for state in rewritten),
            "rewritten_bytes": sum(state.bytes for state in rewritten),
        }


def outlook(index: Index, slot: int | None) -> Outlook:
    """The plan for the next update, or for a later one as the cells are now."""
    table = IndexTable(index)
    state = table.state()
    index = table.index
    following = 0 if state is None else state.slot + 1
    wanted = following if slot is None else slot
    if wanted < following:
        raise UserError(
            f"Slot {wanted} of {index.name!r} is done; the table stands at slot {following - 1}. "
            f"Plan slot {following} or a later one."
        )
    # Before the table is made, the scheme need not be chosen yet.
    scheme = None if wanted == 0 else index.build_scheme()
    plan = Plan(0, 0, {}) if scheme is None else scheme.plan(wanted)
    cells = {} if state is None else dict(state.log.cells)
    expiring = None
    if state is not None:
        expiring = state.note.live_by_expiration.get(wanted, 0)
        if scheme is not None and wanted == following:
            # Where rows arrive is not known yet: count one row into each cell that can take some.
            arrivals = {
                cell: 1
                for cell, touch in plan.touched.items()
                if touch.takes_new_rows or scheme.merges
            }
            plan = plan.pruned(cells, arrivals, merges=scheme.merges)
    return Outlook(wanted, table.as_of(wanted), state is None, expiring, plan, cells)
