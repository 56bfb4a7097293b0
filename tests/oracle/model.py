"""A table in memory to which plans are applied as the Delta executor applies them.

It looks at a row's cell only through the scheme, reads and writes touched cells only, and refuses
a plan that leaves a new row without a place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tidetable.core.cell import Cell, CellState
from tidetable.core.plan import Action, Plan
from tidetable.core.schemes import Scheme


class SlottedRow(NamedTuple):
    """A row as the table keeps it: its key and its two slots."""

    key: int
    insertion: int
    expiration: int


Files = list[list[SlottedRow]]


class Table:
    """The files of each cell under one scheme."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.files: dict[Cell, Files] = {cell: [] for cell in scheme.cells()}

    def load(self, rows: Iterable[SlottedRow]) -> None:
        """The initial load: one file for each cell that gets a row."""
        by_cell: dict[Cell, list[SlottedRow]] = defaultdict(list)
        for row in rows:
            by_cell[self.scheme.initial_cell(row.insertion, row.expiration)].append(row)
        for cell, new in by_cell.items():
            self.files[cell].append(new)

    def allocated(self, plan: Plan, rows: Iterable[SlottedRow]) -> dict[Cell, list[SlottedRow]]:
        """The new rows by cell, without those that have expired when the commit is made."""
        by_cell: dict[Cell, list[SlottedRow]] = defaultdict(list)
        for row in rows:
            if row.expiration > plan.last:
                by_cell[self.scheme.cell_of(row.insertion, row.expiration, plan)].append(row)
        return by_cell

    def apply(self, plan: Plan, new: dict[Cell, list[SlottedRow]]) -> None:
        """One commit. `new` is what `allocated` gave under the plan before any pruning."""
        for cell in new:
            action = plan.touched[cell].action
            writes = action.appends or action in (Action.REWRITE, Action.MOVE)
            assert writes, f"no place for new rows in {cell}"
        moved = self._moved(plan)
        for cell, touch in plan.touched.items():
            action, files = touch.action, self.files[cell]
            arriving = new.get(cell, []) + moved.pop(cell, [])
            if action.expires_in_place:
                files = [[row for row in file if row.expiration > plan.last] for file in files]
            if action.appends:
                files = [*files, arriving]
            elif action in (Action.REWRITE, Action.MOVE):
                stored = [row for file in files for row in file if row.expiration > plan.last]
                assert not stored or action is Action.REWRITE, f"rows stay in {cell}"
                files = [stored + arriving]
            else:
                assert not arriving, f"rows move to {cell}, which nobody writes"
            if action is Action.DROP:
                files = []
            self.files[cell] = [file for file in files if file]
        assert not moved, f"rows move to {list(moved)}, which is not touched"

    def _moved(self, plan: Plan) -> dict[Cell, list[SlottedRow]]:
        """Takes the rows out that go to other cells, and returns them by these."""
        moved: dict[Cell, list[SlottedRow]] = defaultdict(list)
        for source, route in plan.moves.items():
            action = plan.touched[source].action
            assert action.expires_in_place or action is Action.MOVE, f"rows leave {source} unseen"
            for file in self.files[source]:
                for row in list(file):
                    home = route.of(self.scheme.initial_cell(row.insertion, row.expiration).e)
                    if home is not None and row.expiration > plan.last:
                        file.remove(row)
                        moved[home].append(row)
        return moved

    def state(self, cell: Cell) -> CellState:
        """What the metadata of the table would tell about the cell."""
        files = self.files[cell]
        expirations = [row.expiration for file in files for row in file]
        return CellState(
            rows=len(expirations),
            files=len(files),
            bytes=100 * len(expirations),
            first_expiration=min(expirations, default=None),
            last_expiration=max(expirations, default=None),
        )

    def by_cell(self) -> dict[Cell, list[SlottedRow]]:
        """The rows of each cell, in the order of their keys."""
        return {
            cell: sorted(row for file in files for row in file)
            for cell, files in self.files.items()
        }

    def rows(self) -> list[SlottedRow]:
        """All rows, in the order of their keys."""
        return sorted(row for rows in self.by_cell().values() for row in rows)
