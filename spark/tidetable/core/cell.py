"""A cell: one sub-index, stored as one partition of the Delta table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Cell(NamedTuple):
    """(g, e) of the doubly partitioned family. Sweep has one base cell (0, k) for each group k.

    Tiers has a cell (L, k) for each level L of each group k. Only a log has a negative e.
    """

    g: int
    e: int

    @property
    def is_log(self) -> bool:
        """Whether it holds rows of all groups, which leave it group by group."""
        return self.e < 0

    def __str__(self) -> str:
        return _LOGS.get(self) or f"({self.g},{self.e})"


LOG = Cell(1, -1)
"""Where Sweep with deletion vectors and Tiers keep rows until their group is swept."""

MERGED_LOG = Cell(2, -1)
"""Where Sweep with `merge_log` keeps the older part of its log, several updates to a file."""

_LOGS = {LOG: "log", MERGED_LOG: "merged log"}


@dataclass(frozen=True)
class CellState:
    """What the metadata of a table says about one cell before an update, without reading a row.

    The expiration slots are bounds: no row expires before `first_expiration` or after
    `last_expiration`. None means not known, or that there is no row.
    """

    rows: int = 0
    files: int = 0
    bytes: int = 0
    first_expiration: int | None = None
    last_expiration: int | None = None

    def some_expire(self, slot: int) -> bool:
        """Whether a row may have expired by the end of the slot."""
        return self.rows > 0 and (self.first_expiration is None or self.first_expiration <= slot)

    def all_expire(self, slot: int) -> bool:
        """Whether it is certain that there are rows and all have expired by the slot's end."""
        return self.rows > 0 and self.last_expiration is not None and self.last_expiration <= slot

    def some_live(self, slot: int) -> bool:
        """Whether a row may live on after the slot."""
        return self.rows > 0 and not self.all_expire(slot)
