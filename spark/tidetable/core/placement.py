"""Placement: which partition a slot belongs to (ICDE 3.1 to 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidetable.core.errors import UserError


class Placement(StrEnum):
    """How slots are dealt to partitions."""

    ROUND_ROBIN = "round_robin"
    """Neighbouring slots go to different partitions: balanced sizes (Theorem 1)."""

    CHRONOLOGICAL = "chronological"
    """Neighbouring slots share a partition, as days do in a wave index."""


@dataclass(frozen=True)
class Partitioning:
    """One partition function of the papers: g with G parts, or e with E parts.

    `part_of` and `sql` are the same function, once for Python and once for a query engine.
    """

    placement: Placement
    parts: int
    period: int

    def __post_init__(self) -> None:
        if not 1 <= self.parts <= self.period:
            raise UserError(
                f"Asked for {self.parts} partitions of a window of {self.period} slots.",
                "There must be at least 1 and at most one per slot.",
                f"Choose a number from 1 to {self.period}, or update more often.",
            )

    def part_of(self, slot: int) -> int:
        """The partition, 0 to parts - 1, of a slot; any integer is a slot."""
        if self.placement is Placement.ROUND_ROBIN:
            return (slot - 1) % self.parts
        position = (slot - 1) % self.period
        if position < self._in_wide:
            return position // (self._width + 1)
        return self._wide + (position - self._in_wide) // self._width

    def sql(self, column: str) -> str:
        """`part_of` as an expression over an integer column, for Spark SQL and for DataFusion."""
        if self.parts == 1:
            return "CAST(0 AS INT)"
        if self.placement is Placement.ROUND_ROBIN:
            return f"CAST({_modulo(column, self.parts)} AS INT)"
        position = _modulo(column, self.period)
        narrow = _divided(position, self._width)
        if not self._wide:
            return f"CAST({narrow} AS INT)"
        wide = _divided(position, self._width + 1)
        narrow = f"{self._wide} + {_divided(f'({position} - {self._in_wide})', self._width)}"
        return f"CAST(CASE WHEN {position} < {self._in_wide} THEN {wide} ELSE {narrow} END AS INT)"

    # The papers assume that parts divides p. Otherwise the first p mod parts partitions are one
    # slot wider, so that p slots are covered once; for a divisible p this is the papers' function.

    @property
    def _width(self) -> int:
        return self.period // self.parts

    @property
    def _wide(self) -> int:
        return self.period % self.parts

    @property
    def _in_wide(self) -> int:
        return self._wide * (self._width + 1)


def _modulo(column: str, divisor: int) -> str:
    # % takes the sign of the dividend in both engines, and only Spark has pmod.
    return f"(((({column}) - 1) % {divisor} + {divisor}) % {divisor})"


def _divided(dividend: str, divisor: int) -> str:
    # / is a fraction in Spark and a whole number in DataFusion; without the remainder both agree.
    return f"({dividend} - {dividend} % {divisor}) / {divisor}"
