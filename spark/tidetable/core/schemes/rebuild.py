"""Rebuild: every touched cell is written again, sorted and without gaps (ICDE 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidetable.core.plan import Action
from tidetable.core.schemes.grid import Grid


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
