"""A cell: one sub-index, stored as one partition of the Delta table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Cell(NamedTuple):
    """(g, e) of the doubly partitioned family. Sweep has one base cell (0, k) for each group k."""

    g: int
    e: int

    def __str__(self) -> str:
        return "log" if self == LOG else f"({self.g},{self.e})"


LOG = Cell(1, -1)
"""Where Sweep with deletion vectors keeps rows of all groups until their group is swept."""


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
