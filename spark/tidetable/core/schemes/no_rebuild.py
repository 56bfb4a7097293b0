"""NoRebuild: new rows become additional files, expired rows are marked in place (ICDE 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidetable.core.plan import Action
from tidetable.core.schemes.grid import Grid


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
