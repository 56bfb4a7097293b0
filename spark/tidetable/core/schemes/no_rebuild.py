"""NoRebuild: new rows become additional files, expired rows are marked in place (ICDE 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, Literal, Self

import pydantic.dataclasses

from tidetable.core.cell import Cell
from tidetable.core.plan import Action
from tidetable.core.schemes.base import Scheme
from tidetable.core.schemes.grid import Grid, GridConfig
from tidetable.core.schemes.settings import SETTINGS

SIDES = (1, 2, 4)
"""The advisor tries grids of so many parts on either side."""

TRIED_SLOTS_MAX = 240


@dataclass(frozen=True)
class NoRebuild(Grid):
    """The doubly partitioned index, not reclustered: cheap to update, dear to probe."""

    name: ClassVar[str] = "no_rebuild"
    uses_deletion_vectors: ClassVar[bool] = True
    _title: ClassVar[str] = "NoRebuild"
    _letter: ClassVar[str] = "D"
    _takes: ClassVar[Action] = Action.APPEND
    _expires: ClassVar[Action] = Action.EXPIRE
    _both: ClassVar[Action] = Action.APPEND_AND_EXPIRE

    @property
    def turn(self) -> int:
        return self.period

    def files_in(self, cell: Cell) -> int:
        # One for each update that put rows into it and of whose rows one lives.
        return ceil(self.period / self.insertion)


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=SETTINGS)
class NoRebuildConfig(GridConfig):
    """Doubly partitioned; new rows are appended, expired ones marked: cheap to update."""

    name: Literal["no_rebuild"] = "no_rebuild"

    def build(self, period: int) -> Scheme:
        return NoRebuild(period, self.insertion, self.expiration, self.placement)

    @classmethod
    def worth_trying(cls, slots: int, *, coarse: bool) -> Iterator[Self]:
        # It keeps a file for every update of the window: a long one has far too many.
        sides = SIDES if slots <= TRIED_SLOTS_MAX and not coarse else ()
        return (cls(insertion=side, expiration=side) for side in sides)
