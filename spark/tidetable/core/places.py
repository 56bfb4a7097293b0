"""Whether the rows of a file are in the cell where they belong, by its bounds alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tidetable.core.cell import Cell
from tidetable.core.plan import Plan
from tidetable.core.schemes.base import Scheme

RANGE_MAX = 64
"""So many slots between the least and the greatest of a file are looked at one by one."""


class HasSlots(Protocol):
    """A file, as far as it matters here."""

    @property
    def cell(self) -> Cell | None:
        """None if a partition value is missing."""

    @property
    def has_deletions(self) -> bool:
        """Whether a deletion vector hides some of its rows."""

    @property
    def insertion(self) -> tuple[int, int] | None:
        """Least and greatest insertion slot; None: the statistics do not tell."""

    @property
    def expiration(self) -> tuple[int, int] | None:
        """The same of expiration slots."""


@dataclass
class Places:
    """Whether the rows of a file belong into its cell, by the least and the greatest slots.

    Which part of a cell's name a slot decides is the same for all schemes: g goes by insertion,
    e by expiration. A row that is not where a load puts it waits in a log, or in a run of Tiers.
    """

    scheme: Scheme
    plan: Plan | None
    """All updates so far as one, which knows what the last sweeps have taken out of the log."""

    _alike: dict[tuple[bool, int, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._own = frozenset(self.scheme.cells())

    def is_wrong(self, file: HasSlots) -> bool:
        """Certainly: the least or the greatest slot is that of a row."""
        ins, exp = file.insertion, file.expiration
        if file.cell not in self._own:
            return True
        if ins is None or exp is None:
            return False
        assert file.cell is not None
        if file.cell.is_log:
            # Rows that have left the log are among the statistics, hidden by a deletion vector.
            if file.has_deletions or self.plan is None or ins[0] != ins[1]:
                return False
            return any(self.scheme.cell_of(ins[0], slot, self.plan) != file.cell for slot in exp)
        return any(
            self.scheme.initial_cell(i, x) != file.cell and not self._is_moved_to(file.cell, i, x)
            for i, x in zip(ins, exp, strict=True)
        )

    def _is_moved_to(self, cell: Cell, insertion: int, expiration: int) -> bool:
        """Whether the updates so far have brought such a row to this cell."""
        # Of the rows of one group those of one run move together, hidden ones too.
        if self.plan is None or insertion < 1:
            return False
        return self.scheme.cell_of(insertion, expiration, self.plan) == cell

    def is_right(self, file: HasSlots) -> bool:
        """Certainly: there is no slot between the least and the greatest that is elsewhere."""
        ins, exp = file.insertion, file.expiration
        if ins is None or exp is None or self.is_wrong(file):
            return False
        assert file.cell is not None
        if file.cell.is_log:
            return ins[0] == ins[1] and exp[0] == exp[1] and not file.has_deletions
        return self._are_alike(True, *ins) and self._are_alike(False, *exp)

    def _are_alike(self, by_insertion: bool, first: int, last: int) -> bool:
        """Whether all slots from first to last are of one part; not if there are too many."""
        if last - first > RANGE_MAX:
            return False
        known = self._alike.get((by_insertion, first, last))
        if known is None:
            cell_of = self.scheme.initial_cell
            slots = range(first, last + 1)
            cells = {cell_of(s, last) if by_insertion else cell_of(last, s) for s in slots}
            known = self._alike[(by_insertion, first, last)] = len(cells) == 1
        return known
