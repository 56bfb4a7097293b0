"""What every scheme offers to whoever carries out its plans."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from tidetable.core.cell import Cell
from tidetable.core.errors import UserError
from tidetable.core.plan import Plan


class Drawn(StrEnum):
    """How a picture shows the cells of a layout."""

    GRID = "grid"
    """g down, e across."""

    GROUPS = "groups"
    """One row of groups."""

    LEVELS = "levels"
    """A line for each level, the groups across."""


class Scheme(Protocol):
    """A layout of cells and the rule by which updates touch them.

    A scheme plans from slot numbers alone, so a plan names every cell that could change; see
    `Plan.pruned` for what the data then allows to leave out.
    """

    @property
    def period(self) -> int:
        """p: the number of slots in the window."""

    @property
    def name(self) -> str:
        """The scheme's name in a configuration."""

    @property
    def label(self) -> str:
        """The scheme and its settings, for people: 'Rebuild 4x4 round-robin', 'Sweep(8,1)'."""

    @property
    def short_label(self) -> str:
        """The label for a narrow table: what is usual is left out."""

    @property
    def drawn_as(self) -> Drawn:
        """How a picture shows the cells."""

    @property
    def uses_deletion_vectors(self) -> bool:
        """Whether a plan may ask for rows to be removed in place."""

    @property
    def merges(self) -> bool:
        """Whether a rewrite is also what keeps the number of files down (see `Plan.pruned`)."""

    @property
    def cycle(self) -> int:
        """After so many updates of an even stream the layout is in the same state again."""

    @property
    def turn(self) -> int:
        """After so many updates nothing is left of how the table was loaded."""

    def cells(self) -> tuple[Cell, ...]:
        """All cells of the layout, in order."""

    def files_in(self, cell: Cell) -> int:
        """How many files it leaves in a cell at most, if what an update writes there is one."""

    def plan(self, slot: int) -> Plan:
        """What update `slot` does."""

    def fold(self, first: int, last: int) -> Plan:
        """Updates first..last as one commit: the same rows in the same cells as one by one."""

    def initial_cell(self, insertion_slot: int, expiration_slot: int) -> Cell:
        """Where a row of the initial load goes."""

    def cell_of(self, insertion_slot: int, expiration_slot: int, plan: Plan) -> Cell:
        """Where a row goes that arrives with this plan."""

    def cell_sql(self, plan: Plan | None, insertion: str, expiration: str) -> tuple[str, str]:
        """`cell_of` (or, without a plan, `initial_cell`) as SQL for the two columns of a cell.

        `insertion` and `expiration` are SQL expressions that give the two slots as integers.
        """

    def group_sql(self, expiration: str) -> str | None:
        """SQL for the group to which a row in the log belongs; None if there is no log."""


def recent(first: int, last: int, cycle: int) -> range:
    """The slots of a fold that decide what it touches.

    After a whole cycle every part has had its turn, so a long absence costs no more to plan than
    one cycle.
    """
    if first > last:
        raise UserError(
            f"Asked to fold slots {first} to {last}.",
            "The first must not come after the last.",
            "Exchange the two, or leave out the update if there is no slot to catch up with.",
        )
    return range(max(first, last - cycle + 1), last + 1)
