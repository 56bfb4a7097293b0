"""Rebuild: every touched cell is written again, sorted and without gaps (ICDE 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import pydantic.dataclasses

from tidetable.core.cell import Cell
from tidetable.core.plan import Action
from tidetable.core.schemes.base import Scheme
from tidetable.core.schemes.grid import Grid, GridConfig
from tidetable.core.schemes.settings import SETTINGS

SIDES = (2, 3, 4, 6, 8)
"""The advisor tries grids of so many parts on either side."""


@dataclass(frozen=True)
class Rebuild(Grid):
    """The doubly partitioned index, reclustered: dear to update, cheap to probe."""

    name: ClassVar[str] = "rebuild"
    uses_deletion_vectors: ClassVar[bool] = False
    _title: ClassVar[str] = "Rebuild"
    _letter: ClassVar[str] = "R"
    _takes: ClassVar[Action] = Action.REWRITE
    _expires: ClassVar[Action] = Action.REWRITE
    _both: ClassVar[Action] = Action.REWRITE

    @property
    def turn(self) -> int:
        return self.insertion * self.expiration

    def files_in(self, cell: Cell) -> int:
        return 1


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=SETTINGS)
class RebuildConfig(GridConfig):
    """Doubly partitioned; every touched cell is written again: cheap to probe."""

    name: Literal["rebuild"] = "rebuild"

    def build(self, period: int) -> Scheme:
        return Rebuild(period, self.insertion, self.expiration, self.placement)

    @classmethod
    def worth_trying(cls, slots: int, *, coarse: bool) -> Iterator[Self]:
        return (cls(insertion=side, expiration=side) for side in SIDES)
