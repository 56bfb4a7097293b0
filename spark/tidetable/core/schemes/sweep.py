"""Sweep: a group is merged exactly when one of its slots expires (docs: sweep)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, lcm
from typing import Annotated, ClassVar, Literal, Self

import pydantic.dataclasses
from pydantic import Field

from tidetable.core.cell import LOG, MERGED_LOG, Cell
from tidetable.core.errors import UserError
from tidetable.core.placement import Partitioning, Placement
from tidetable.core.plan import Action, Plan, Reason, Route, Touch
from tidetable.core.schemes.base import Drawn, Scheme, recent
from tidetable.core.schemes.settings import SETTINGS, Parts, Settings, more_than_slots

EVERY_MAX = 1_000
MERGE_LOG_MAX = 1_000_000

# What the advisor tries.
GROUPS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 44)
GROUPS_WITH_LOG = (1, 4, 8, 16, 32)
EVERY = (1, 2, 4, 8)
GROUPS_MERGED = (8, 16, 27)


@dataclass(frozen=True)
class Sweep:
    """Sweep(E, m): E round-robin expiration groups, each swept every m-th time that it expires.

    With deletion vectors new rows wait in a log of one file per update until their group is swept.
    Without them they wait as one file per group beside the group's base file; then m must be 1.
    With `merge_log` the files of the log become one of a second log every so many updates; 0 is
    never.
    """

    period: int
    groups: int
    every: int = 1
    deletion_vectors: bool = False
    merge_log: int = 0

    name: ClassVar[str] = "sweep"
    merges: ClassVar[bool] = True
    drawn_as: ClassVar[Drawn] = Drawn.GROUPS

    def __post_init__(self) -> None:
        _ = self.e
        if self.every < 1:
            raise UserError(
                f"Asked to sweep every {self.every} expirations.",
                "It must be 1 or more.",
                "Choose 1 to sweep a group each time that it expires.",
            )
        if self.every > 1 and not self.deletion_vectors:
            # Between two sweeps only a deletion vector can take out what has expired.
            raise UserError(
                f"Asked to sweep every {self.every} expirations without deletion vectors; "
                "that would leave expired rows in the table.",
                remedy="Choose every: 1, or deletion_vectors: true.",
            )
        if self.merge_log:
            self._check_merge_log(self.merge_log)

    def _check_merge_log(self, updates: int) -> None:
        if self.every < 2:
            # A merge takes the place of a sweep, so that no update is much larger than the others.
            raise UserError(
                f"Asked to merge the log every {updates} updates and to sweep at each.",
                "The log is merged at updates that sweep nothing.",
                "Choose every: 2 or more, or no merge_log.",
            )
        turn = self.groups * self.every
        if not 2 <= updates < turn:
            raise UserError(
                f"Asked to merge the log every {updates} updates.",
                f"It must be 2 or more, and less than the {turn} updates after which a row has "
                "left the log anyway.",
                "Choose a number in between, or no merge_log.",
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
        merged = f", log merged every {self.merge_log}" if self.merge_log else ""
        return f"Sweep({self.groups},{self.every}){without}{merged}"

    @property
    def short_label(self) -> str:
        log = "+log" if self.deletion_vectors else ""
        merged = f"/{self.merge_log}" if self.merge_log else ""
        return f"Sweep({self.groups},{self.every}){log}{merged}"

    @property
    def cycle(self) -> int:
        return lcm(self.groups * self.every, self.merge_log or 1)

    @property
    def turn(self) -> int:
        return self.groups * self.every

    def files_in(self, cell: Cell) -> int:
        turn = self.groups * self.every
        if not self.deletion_vectors:
            return turn  # what its last sweep wrote, and a file for each update since
        if not self.merge_log:
            return turn if cell == LOG else 1
        # A merge may come two updates later than the one before it did.
        return {
            LOG: self.merge_log + 2,
            MERGED_LOG: ceil(turn / self.merge_log) + 1,
        }.get(cell, 1)

    def cells(self) -> tuple[Cell, ...]:
        base = tuple(Cell(0, group) for group in range(self.groups))
        if not self.deletion_vectors:
            return base
        return (*base, LOG, MERGED_LOG) if self.merge_log else (*base, LOG)

    def sweeps(self, slot: int) -> bool:
        """Whether update `slot` sweeps its group: each group on its own m-th turn, evenly."""
        turn, group = divmod(slot - 1, self.groups)
        return (turn + group) % self.every == 0

    def swept_by(self, group: int, slot: int) -> int:
        """The last update up to `slot` that swept the group."""
        turn = (slot - 1 - group) // self.groups
        turn -= (turn + group) % self.every
        return turn * self.groups + group + 1

    def merged_by(self, slot: int) -> int | None:
        """The last update up to `slot` that merged the log; None if that is never done.

        Of each `merge_log` updates it is the first that sweeps no group: so a large sweep and a
        large merge never meet.
        """
        if not self.merge_log:
            return None
        first = slot - (slot - 1) % self.merge_log
        while True:
            # At most two updates in a row sweep a group, so this ends at the third window.
            updates = range(first, min(first + self.merge_log, slot + 1))
            for update in updates:
                if not self.sweeps(update):
                    return update
            first -= self.merge_log

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
                Touch(Action.REWRITE, Reason.SWEPT | Reason.EXPIRES | Reason.FROM_LOG)
                if group in swept
                else Touch(Action.EXPIRE, Reason.EXPIRES)
            )
            for group in expiring
        }
        merged_at = self.merged_by(last)
        merged = merged_at is not None and merged_at >= first
        homes = {group: Cell(0, group) for group in swept}
        moves: dict[Cell, Route] = {}
        if merged:
            moves[LOG] = Route(homes, MERGED_LOG)
            touched[LOG] = Touch(Action.MOVE, Reason.LOG_MERGED)
        else:
            touched |= self._touched_log(swept, expiring, last)
            if swept and LOG in touched:
                moves[LOG] = Route(homes)
        if self.merge_log:
            touched[MERGED_LOG] = self._touch_of_merged_log(bool(swept), merged)
            if swept:
                moves[MERGED_LOG] = Route(homes)
        return Plan(first, last, touched, moves)

    def _touch_of_merged_log(self, swept: bool, merged: bool) -> Touch:
        if merged:
            return Touch(Action.APPEND_AND_EXPIRE, Reason.TAKES_LOG)
        return Touch(Action.EXPIRE, Reason.LEAVES if swept else Reason.EXPIRES)

    def _touched_without_log(self, expiring: set[int]) -> dict[Cell, Touch]:
        return {
            cell: Touch(Action.REWRITE, Reason.SWEPT | Reason.EXPIRES | Reason.MERGED)
            if cell.e in expiring
            else Touch(Action.APPEND, Reason.TAKES)
            for cell in self.cells()
        }

    def _touched_log(
        self, swept: dict[int, int], expiring: set[int], last: int
    ) -> dict[Cell, Touch]:
        leave = Reason.LEAVES if swept else Reason(0)
        expire = Reason.EXPIRES if expiring - swept.keys() else Reason(0)
        # A group swept at the very last slot takes all of its new rows; if there is only that
        # group nothing is left for the log, and if it is swept at each update nothing ever was.
        if swept.get(0) == last and self.groups == 1:
            if self.every == 1:
                return {}
            return {LOG: Touch(Action.EXPIRE, leave)}
        return {LOG: Touch(Action.APPEND_AND_EXPIRE, Reason.TAKES | leave | expire)}

    def initial_cell(self, insertion_slot: int, expiration_slot: int) -> Cell:
        return Cell(0, self.e.part_of(expiration_slot))

    def cell_of(self, insertion_slot: int, expiration_slot: int, plan: Plan) -> Cell:
        base = self.initial_cell(insertion_slot, expiration_slot)
        if not self.deletion_vectors:
            return base
        # In a fold a row that arrived after its group's last sweep would, one by one, be in the
        # log still, and in the merged one if a merge came after it.
        swept_at = self.swept_by(base.e, plan.last)
        if swept_at >= max(plan.first, insertion_slot):
            return base
        merged_at = self.merged_by(plan.last)
        return MERGED_LOG if merged_at is not None and insertion_slot <= merged_at else LOG

    def cell_sql(self, plan: Plan | None, insertion: str, expiration: str) -> tuple[str, str]:
        group = self.e.sql(expiration)
        if plan is None or not self.deletion_vectors:
            return "CAST(0 AS INT)", group
        log = str(LOG.g)
        merged_at = self.merged_by(plan.last)
        if merged_at is not None:
            log = f"CASE WHEN ({insertion}) <= {merged_at} THEN {MERGED_LOG.g} ELSE {LOG.g} END"
        # Rows arrive with the plan, so only what it sweeps can have taken them.
        swept = {
            part: slot
            for part in range(self.groups)
            if (slot := self.swept_by(part, plan.last)) >= plan.first
        }
        if not swept:
            return f"CAST({log} AS INT)", f"CAST({LOG.e} AS INT)"
        in_base = " OR ".join(
            f"({group} = {part} AND ({insertion}) <= {slot})" for part, slot in swept.items()
        )
        return (
            f"CAST(CASE WHEN {in_base} THEN 0 ELSE {log} END AS INT)",
            f"CAST(CASE WHEN {in_base} THEN {group} ELSE {LOG.e} END AS INT)",
        )

    def group_sql(self, expiration: str) -> str | None:
        return self.e.sql(expiration) if self.deletion_vectors else None


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=SETTINGS)
class SweepConfig(Settings):
    """Partitioned by expiration; a group is merged when one of its slots expires."""

    name: Literal["sweep"] = "sweep"
    added_later: ClassVar[frozenset[str]] = frozenset({"merge_log"})

    groups: Parts
    """Expiration groups; at most one for each update in longest_lifetime."""

    every: Annotated[int, Field(strict=True, ge=1, le=EVERY_MAX)] = 1
    """Sweep a group every so many times that it expires; above 1 needs deletion_vectors."""

    deletion_vectors: Annotated[bool, Field(strict=True)] = False
    """Mark expired rows in place, and keep new rows in a log until their group is swept."""

    merge_log: Annotated[int, Field(strict=True, ge=0, le=MERGE_LOG_MAX)] = 0
    """Merge the files of the log every so many updates; needs every: 2 or more. 0 is never."""

    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        yield from more_than_slots("groups", self.groups, period)
        if self.every > 1 and not self.deletion_vectors:
            yield (
                "every",
                f"{self.every} without deletion vectors would leave expired rows in the table; "
                "write every: 1, or deletion_vectors: true",
            )
        if not self.merge_log:
            return
        turn = self.groups * self.every
        if self.merge_log == 1:
            yield "merge_log", "1 would merge nothing; write 2 or more, or 0 for never"
        elif self.every < 2:
            yield (
                "merge_log",
                "the log is merged at updates that sweep no group, and with every: 1 each one "
                "does; write every: 2 or more, or leave out merge_log",
            )
        elif self.merge_log >= turn:
            yield (
                "merge_log",
                f"after {turn} updates (groups x every) a row has left the log anyway; "
                f"write less than {turn}, or leave out merge_log",
            )

    def build(self, period: int) -> Scheme:
        return Sweep(period, self.groups, self.every, self.deletion_vectors, self.merge_log)

    @classmethod
    def worth_trying(cls, slots: int, *, coarse: bool) -> Iterator[Self]:
        yield from (cls(groups=groups) for groups in GROUPS)
        yield from (
            cls(groups=groups, every=every, deletion_vectors=True)
            for groups in GROUPS_WITH_LOG
            for every in EVERY
        )
        yield from (
            cls(groups=groups, every=4, deletion_vectors=True, merge_log=8)
            for groups in GROUPS_MERGED
        )
