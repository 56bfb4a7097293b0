"""What the files that a commit adds may hold, by its plan: compared before the commit.

What was counted and what was written are two readings of the source. That both found as many rows
does not mean that they found the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidetable.core.cell import Cell, CellState
from tidetable.core.places import Places
from tidetable.core.plan import Action, Plan
from tidetable.core.schemes import Scheme
from tidetable.table.files import DataFile
from tidetable.table.log import Log

_EXPIRE_IN_PLACE = (Action.EXPIRE, Action.APPEND_AND_EXPIRE)


@dataclass(frozen=True)
class Planned:
    """The bounds of what may be written."""

    places: Places
    last: int
    """The slot after the commit: nothing written has expired by then, or arrives later."""

    rows: Mapping[Cell, tuple[int, int]] | None
    """At least and at most so many rows for each cell; None: not known by cell."""

    @staticmethod
    def load(scheme: Scheme, slot: int) -> Planned:
        """The state of a slot, taken from the source."""
        return Planned(Places(scheme, None), slot, None)

    @staticmethod
    def update(scheme: Scheme, plan: Plan, log: Log, new: Mapping[Cell, int]) -> Planned:
        """`new` counts the new rows by cell; the plan is carried out on the version of `log`."""
        slot = plan.last
        places = Places(scheme, scheme.fold(1, slot) if slot >= 1 else None)
        return Planned(places, slot, _rows_by_cell(plan, log, new))

    def misfit(self, added: Iterable[DataFile]) -> str | None:
        """What is wrong with the files, to be read after "would hold"; None if nothing is."""
        added = list(added)
        for file in added:
            if (wrong := self._misplaced(file)) is not None:
                return f"{wrong} in {file.path}"
        if self.rows is None:
            return None
        stored = Counter[Cell]()
        for file in added:
            stored[file.cell] += file.rows
        for cell in sorted({*stored, *self.rows}):
            low, high = self.rows.get(cell, (0, 0))
            if not low <= stored[cell] <= high:
                wanted = str(low) if low == high else f"{low} to {high}"
                return f"{stored[cell]} rows newly written to cell {cell}, not {wanted},"
        return None

    def _misplaced(self, file: DataFile) -> str | None:
        period = self.places.scheme.period
        if file.expiration is not None and file.expiration[0] <= self.last:
            return f"rows that expired in slot {file.expiration[0]}"
        if file.insertion is not None:
            low, high = file.insertion
            if low <= self.last - period or high > self.last:
                return f"rows of slot {low if low <= self.last - period else high}"
        return "rows of another cell" if self.places.is_wrong(file) else None


def read_again(plan: Plan, log: Log) -> list[Cell]:
    """Rewritten cells that hold a live row; of the others only the files have to go."""
    return [
        cell
        for cell in plan.cells(Action.REWRITE)
        if cell in log.cells and log.cells[cell].some_live(plan.last)
    ]


def _rows_by_cell(plan: Plan, log: Log, new: Mapping[Cell, int]) -> dict[Cell, tuple[int, int]]:
    """New rows, and the stored ones that are written again: exactly, where none of these expires
    and all go one way."""
    low, high = Counter(new), Counter(new)
    for cell in plan.cells(Action.REWRITE):
        least, most = _kept(log.cells.get(cell), plan.last)
        low[cell] += least
        high[cell] += most
    for cell, route in plan.moves.items():
        least, most = _kept(log.cells.get(cell), plan.last)
        for target in route.targets:
            high[target] += most
        if not route.homes and route.rest is not None:
            low[route.rest] += least
    if log.properties.get("delta.enableDeletionVectors") != "true":
        for cell in plan.cells(*_EXPIRE_IN_PLACE):  # what stays of its files is written again
            high[cell] += log.cells.get(cell, CellState()).rows
    return {cell: (low[cell], high[cell]) for cell in high}


def _kept(state: CellState | None, last: int) -> tuple[int, int]:
    """At least and at most so many rows of the cell live on after the slot."""
    if state is None or not state.some_live(last):
        return 0, 0
    return (0 if state.some_expire(last) else state.rows), state.rows
