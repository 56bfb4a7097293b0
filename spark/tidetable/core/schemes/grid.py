"""The doubly partitioned grid that Rebuild and NoRebuild share (ICDE 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import Annotated, ClassVar, Self

import pydantic.dataclasses
from pydantic import Field

from tidetable.core.cell import Cell
from tidetable.core.placement import Partitioning, Placement
from tidetable.core.plan import Action, Plan, Reason, Touch
from tidetable.core.schemes.base import Drawn, recent
from tidetable.core.schemes.settings import (
    CELLS_MAX,
    SETTINGS,
    Parts,
    Settings,
    more_than_slots,
)

PARTS = "Parts by {} slot; at most one for each update in longest_lifetime."


@dataclass(frozen=True)
class Grid:
    """G partitions of insertion slots by E of expiration slots: a row is in (g(ins), e(exp)).

    Update j touches row g(j) of the grid for the insertions and column e(j) for the expirations,
    G + E - 1 cells in all. The subclasses say what is done to them.
    """

    period: int
    insertion: int
    expiration: int
    placement: Placement = Placement.ROUND_ROBIN

    name: ClassVar[str]
    merges: ClassVar[bool] = False
    drawn_as: ClassVar[Drawn] = Drawn.GRID
    _title: ClassVar[str]
    _letter: ClassVar[str]
    _takes: ClassVar[Action]
    _expires: ClassVar[Action]
    _both: ClassVar[Action]

    def __post_init__(self) -> None:
        # Asked for here so that a wrong number is found when the scheme is made, not at an update.
        _ = self.g, self.e

    @classmethod
    def by_insertion(cls, period: int, n: int) -> Self:
        """R-ins n or D-ins n of the papers: n chronological parts by insertion time only."""
        return cls(period, insertion=n, expiration=1, placement=Placement.CHRONOLOGICAL)

    @classmethod
    def by_expiration(cls, period: int, n: int) -> Self:
        """R-exp n or D-exp n of the papers: n chronological parts by expiration time only."""
        return cls(period, insertion=1, expiration=n, placement=Placement.CHRONOLOGICAL)

    @cached_property
    def g(self) -> Partitioning:
        """The partition function of insertion slots."""
        return Partitioning(self.placement, self.insertion, self.period)

    @cached_property
    def e(self) -> Partitioning:
        """The partition function of expiration slots."""
        return Partitioning(self.placement, self.expiration, self.period)

    @property
    def label(self) -> str:
        return self._label(" round-robin", " chronological")

    @property
    def short_label(self) -> str:
        return self._label("", " chron.")

    def _label(self, round_robin: str, chronological: str) -> str:
        parts = f"{self._title} {self.insertion}x{self.expiration}"
        if self.placement is Placement.ROUND_ROBIN:
            return parts + round_robin
        if 1 in (self.insertion, self.expiration):
            side = "ins" if self.expiration == 1 else "exp"
            return f"{self._letter}-{side} {self.insertion * self.expiration}"
        return parts + chronological

    @property
    def cycle(self) -> int:
        return lcm(self.period, self.insertion, self.expiration)

    def cells(self) -> tuple[Cell, ...]:
        return tuple(Cell(g, e) for g in range(self.insertion) for e in range(self.expiration))

    def plan(self, slot: int) -> Plan:
        return self.fold(slot, slot)

    def fold(self, first: int, last: int) -> Plan:
        # Within p slots every part has its turn under either placement, since parts <= p.
        slots = recent(first, last, self.period)
        taking = {self.g.part_of(slot) for slot in slots}
        expiring = {self.e.part_of(slot) for slot in slots}
        touched = {}
        for cell in self.cells():
            takes, expires = cell.g in taking, cell.e in expiring
            if takes and expires:
                touched[cell] = Touch(self._both, Reason.TAKES | Reason.EXPIRES)
            elif takes:
                touched[cell] = Touch(self._takes, Reason.TAKES)
            elif expires:
                touched[cell] = Touch(self._expires, Reason.EXPIRES)
        return Plan(first, last, touched)

    def initial_cell(self, insertion_slot: int, expiration_slot: int) -> Cell:
        return Cell(self.g.part_of(insertion_slot), self.e.part_of(expiration_slot))

    def cell_of(self, insertion_slot: int, expiration_slot: int, plan: Plan) -> Cell:
        return self.initial_cell(insertion_slot, expiration_slot)

    def cell_sql(self, plan: Plan | None, insertion: str, expiration: str) -> tuple[str, str]:
        return self.g.sql(insertion), self.e.sql(expiration)

    def group_sql(self, expiration: str) -> str | None:
        return None


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=SETTINGS)
class GridConfig(Settings):
    """What the settings of the two schemes share."""

    # Pydantic finds docstrings of attributes only in the class itself, not in the ones below it.
    insertion: Annotated[Parts, Field(description=PARTS.format("insertion"))]
    expiration: Annotated[Parts, Field(description=PARTS.format("expiration"))]
    placement: Annotated[
        Placement,
        Field(description="Whether neighbouring slots go to different parts or share one."),
    ] = Placement.ROUND_ROBIN

    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        yield from more_than_slots("insertion", self.insertion, period)
        yield from more_than_slots("expiration", self.expiration, period)
        cells = self.insertion * self.expiration
        if cells > CELLS_MAX:
            yield (
                "insertion",
                f"{self.insertion} x {self.expiration} parts are {cells} cells; "
                f"insertion x expiration may be at most {CELLS_MAX}",
            )
