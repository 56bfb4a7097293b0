"""Sweep: a group is merged exactly when one of its slots expires (docs: sweep)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import ClassVar

from tidetable.core.cell import LOG, Cell
from tidetable.core.errors import UserError
from tidetable.core.placement import Partitioning, Placement
from tidetable.core.plan import EXPIRES, LEAVES, TAKES, Action, Plan, Touch
from tidetable.core.schemes.base import recent


@dataclass(frozen=True)
class Sweep:
    """Sweep(E, m): E round-robin expiration groups, each swept every m-th time that it expires.

    With deletion vectors new rows wait in a log of one file per update until their group is swept.
    Without them they wait as one file per group beside the group's base file; then m must be 1.
    """

    period: int
    groups: int
    every: int = 1
    deletion_vectors: bool = False

    name: ClassVar[str] = "sweep"
    merges: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self.e
        if self.every < 1:
            raise UserError(
                f"Asked to sweep every {self.every} expirations; it must be 1 or more. "
                "Choose 1 to sweep a group each time that it expires."
            )
        if self.every > 1 and not self.deletion_vectors:
            # Between two sweeps only a deletion vector can take out what has expired.
            raise UserError(
                f"Asked to sweep every {self.every} expirations without deletion vectors; "
                "that would leave expired rows in the table. "
                "Choose every: 1, or deletion_vectors: true."
            )

    @cached_property
    def e(self) -> Partitioning:
        """The function from expiration slots to groups."""
        return Partitioning(Placement.ROUND_ROBIN, self.groups, self.period)

    @property
    def uses_deletion_vectors(self) -> bool:
        return self.deletion_vectors

    @property
    def label(self) -> str:
        without = "" if self.deletion_vectors else " without deletion vectors"
        return f"Sweep({self.groups},{self.every}){without}"

    @property
    def cycle(self) -> int:
        return lcm(self.period, self.groups * self.every)

    def cells(self) -> tuple[Cell, ...]:
        base = tuple(Cell(0, group) for group in range(self.groups))
        return (*base, LOG) if self.deletion_vectors else base

    def sweeps(self, slot: int) -> bool:
        """Whether update `slot` sweeps its group: each group on its own m-th turn, evenly."""
        turn, group = divmod(slot - 1, self.groups)
        return (turn + group) % self.every == 0

    def plan(self, slot: int) -> Plan:
        return self.fold(slot, slot)

    def fold(self, first: int, last: int) -> Plan:
        slots = recent(first, last, self.groups * self.every)
        expiring = {self.e.part_of(slot) for slot in slots}
        if not self.deletion_vectors:
            return Plan(first, last, self._touched_without_log(expiring))
        swept = {self.e.part_of(slot): slot for slot in slots if self.sweeps(slot)}
        touched = {
            Cell(0, group): (
                Touch(Action.REWRITE, "swept: rows expire and rows of the log come in")
                if group in swept
                else Touch(Action.EXPIRE, EXPIRES)
            )
            for group in expiring
        }
        return Plan(first, last, touched | self._touched_log(swept, expiring, last), swept)

    def _touched_without_log(self, expiring: set[int]) -> dict[Cell, Touch]:
        return {
            cell: Touch(Action.REWRITE, "swept: rows expire and its files are merged")
            if cell.e in expiring
            else Touch(Action.APPEND, TAKES)
            for cell in self.cells()
        }

    def _touched_log(
        self, swept: dict[int, int], expiring: set[int], last: int
    ) -> dict[Cell, Touch]:
        leave = LEAVES if swept else ""
        expire = EXPIRES if expiring - swept.keys() else ""
        reasons = [why for why in (leave, expire) if why]
        # A group swept at the very last slot takes all of its new rows; if there is only that
        # group nothing is left for the log, and if it is swept at each update nothing ever was.
        if swept.get(0) == last and self.groups == 1:
            if self.every == 1:
                return {}
            return {LOG: Touch(Action.EXPIRE, leave)}
        return {LOG: Touch(Action.APPEND_AND_EXPIRE, " and ".join([TAKES, *reasons]))}

    def initial_cell(self, insertion_slot: int, expiration_slot: int) -> Cell:
        return Cell(0, self.e.part_of(expiration_slot))

    def cell_of(self, insertion_slot: int, expiration_slot: int, plan: Plan) -> Cell:
        base = self.initial_cell(insertion_slot, expiration_slot)
        if not self.deletion_vectors:
            return base
        # In a fold a row that arrived after its group's last sweep would, one by one, be in the
        # log still.
        swept_at = plan.swept.get(base.e)
        return base if swept_at is not None and insertion_slot <= swept_at else LOG

    def cell_sql(self, plan: Plan | None, insertion: str, expiration: str) -> tuple[str, str]:
        group = self.e.sql(expiration)
        if plan is None or not self.deletion_vectors:
            return "CAST(0 AS INT)", group
        if not plan.swept:
            return f"CAST({LOG.g} AS INT)", f"CAST({LOG.e} AS INT)"
        in_base = " OR ".join(
            f"({group} = {k} AND ({insertion}) <= {slot})" for k, slot in sorted(plan.swept.items())
        )
        return (
            f"CAST(CASE WHEN {in_base} THEN 0 ELSE {LOG.g} END AS INT)",
            f"CAST(CASE WHEN {in_base} THEN {group} ELSE {LOG.e} END AS INT)",
        )

    def group_sql(self, expiration: str) -> str | None:
        return self.e.sql(expiration) if self.deletion_vectors else None
