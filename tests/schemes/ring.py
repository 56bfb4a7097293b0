"""A scheme that is not shipped: one cell for each expiration slot, dropped whole when it is due.

It is what somebody would write who adds a scheme: one file. What is missing is the line in
`tidetable.core.schemes` that registers it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Self

import pydantic.dataclasses

from tidetable.core.cell import Cell
from tidetable.core.placement import Partitioning, Placement
from tidetable.core.plan import Action, Plan, Reason, Touch
from tidetable.core.schemes import Drawn, Scheme, Settings
from tidetable.core.schemes.base import recent
from tidetable.core.schemes.settings import CELLS_MAX, SETTINGS, Parts


@dataclass(frozen=True)
class Ring:
    """Ring(s): p + s cells; with a spare one no row comes into the cell that is due."""

    period: int
    spare: int = 1

    name: ClassVar[str] = "ring"
    uses_deletion_vectors: ClassVar[bool] = False
    merges: ClassVar[bool] = False
    drawn_as: ClassVar[Drawn] = Drawn.GROUPS

    @cached_property
    def e(self) -> Partitioning:
        parts = self.period + self.spare
        return Partitioning(Placement.ROUND_ROBIN, parts, parts)

    @property
    def label(self) -> str:
        return f"Ring of {self.e.parts}"

    @property
    def short_label(self) -> str:
        return f"Ring({self.e.parts})"

    @property
    def cycle(self) -> int:
        return self.e.parts

    @property
    def turn(self) -> int:
        return self.period

    def cells(self) -> tuple[Cell, ...]:
        return tuple(Cell(0, part) for part in range(self.e.parts))

    def files_in(self, cell: Cell) -> int:
        return self.period

    def plan(self, slot: int) -> Plan:
        return self.fold(slot, slot)

    def fold(self, first: int, last: int) -> Plan:
        due = {self.e.part_of(slot) for slot in recent(first, last, self.cycle)}
        touched = {
            cell: Touch(Action.REWRITE, Reason.EXPIRES)
            if cell.e in due
            else Touch(Action.APPEND, Reason.TAKES)
            for cell in self.cells()
        }
        return Plan(first, last, touched)

    def initial_cell(self, insertion_slot: int, expiration_slot: int) -> Cell:
        return Cell(0, self.e.part_of(expiration_slot))

    def cell_of(self, insertion_slot: int, expiration_slot: int, plan: Plan) -> Cell:
        return self.initial_cell(insertion_slot, expiration_slot)

    def cell_sql(self, plan: Plan | None, insertion: str, expiration: str) -> tuple[str, str]:
        return "CAST(0 AS INT)", self.e.sql(expiration)

    def group_sql(self, expiration: str) -> str | None:
        return None


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=SETTINGS)
class RingConfig(Settings):
    """A cell for each expiration slot, which goes as a whole."""

    name: Literal["ring"] = "ring"

    spare: Parts = 1
    """Cells beyond one for each update in longest_lifetime."""

    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        if period is not None and period + self.spare > CELLS_MAX:
            yield "spare", f"{period + self.spare} cells are too many; write less"

    def build(self, period: int) -> Scheme:
        return Ring(period, self.spare)

    @classmethod
    def worth_trying(cls, slots: int, *, coarse: bool) -> Iterator[Self]:
        yield cls()
