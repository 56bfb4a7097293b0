"""Tiers: a sweep writes a run, and runs are merged level by level; for long windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

import pydantic.dataclasses
from pydantic import Field

from tidetable.core.cell import LOG, Cell
from tidetable.core.errors import UserError
from tidetable.core.placement import Partitioning, Placement
from tidetable.core.plan import Action, Plan, Reason, Route, Touch
from tidetable.core.schemes.base import Drawn, recent
from tidetable.core.schemes.settings import (
    CELLS_MAX,
    SETTINGS,
    Parts,
    Settings,
    more_than_slots,
)

FAN_IN_MAX = 1_000

GROUPS_TRIED = (1, 4, 8)
"""By the advisor, which merges four runs at a time."""


@dataclass(frozen=True)
class Tiers:
    """Tiers(E, T): E round-robin expiration groups, runs of each merged T at a time.

    Each time that a group expires it is swept: its rows of the log become a run of level 0. The
    T-th run of a level is written together with the other T - 1 as one run of the next level, so
    the level of every run follows from the number of sweeps, as the digits of a counter to base T.
    Expired rows in runs are marked by deletion vectors; a run goes with its last live row.

    Level L of group k is the cell (L, k), one file for each run. A load puts rows into the top
    level, whose runs stay until they are empty.
    """

    period: int
    groups: int
    fan_in: int

    name: ClassVar[str] = "tiers"
    merges: ClassVar[bool] = False
    drawn_as: ClassVar[Drawn] = Drawn.LEVELS
    uses_deletion_vectors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self.e
        if self.fan_in < 2:
            raise UserError(
                f"Asked to merge {self.fan_in} runs at a time.",
                "It must be 2 or more.",
                "Choose a fan_in such as 4.",
            )

    @cached_property
    def e(self) -> Partitioning:
        """The function from expiration slots to groups."""
        return Partitioning(Placement.ROUND_ROBIN, self.groups, self.period)

    @cached_property
    def top(self) -> int:
        """The highest level: the lowest one of which T runs are never alive at once."""
        # When the T-th run of level L is written, the first has taken no row for the last
        # (T - 1) T^L E updates; if that is p or more, none of its rows is alive.
        level = 0
        while (self.fan_in - 1) * self.fan_in**level * self.groups < self.period:
            level += 1
        return level

    @property
    def label(self) -> str:
        return f"Tiers({self.groups},{self.fan_in})"

    @property
    def short_label(self) -> str:
        return self.label

    @property
    def cycle(self) -> int:
        return self.groups * int(self.fan_in**self.top)

    @property
    def turn(self) -> int:
        # No file and no deletion vector outlives a window.
        return self.period

    def files_in(self, cell: Cell) -> int:
        if cell == LOG:
            return self.groups
        # Of the top level too no T runs of updates are alive at once; a load may have left one.
        return self.fan_in - (cell.g < self.top)

    def cells(self) -> tuple[Cell, ...]:
        levels = range(self.top + 1)
        return (*(Cell(level, group) for level in levels for group in range(self.groups)), LOG)

    def sweeps(self, group: int, slot: int) -> int:
        """The number of the last sweep of the group up to `slot`; that of slot group + 1 is 1."""
        return (slot - 1 - group) // self.groups + 1

    def level(self, sweep: int, last: int) -> int:
        """The level at which rows are after sweep `last` of their group if `sweep` took them."""
        level = self.top
        while _next_multiple(sweep, self.fan_in**level) > last:
            level -= 1
        return level

    def plan(self, slot: int) -> Plan:
        return self.fold(slot, slot)

    def fold(self, first: int, last: int) -> Plan:
        touched: dict[Cell, Touch] = {}
        moves: dict[Cell, Route] = {}
        homes: dict[int, Cell] = {}
        for group in {self.e.part_of(slot) for slot in recent(first, last, self.groups)}:
            before, after = self.sweeps(group, first - 1), self.sweeps(group, last)
            homes[group] = Cell(self.level(before + 1, after), group)
            written = {self.level(sweep, after) for sweep in self._ends(before, after)}
            for level in range(self.top + 1):
                cell = Cell(level, group)
                # All runs of a level are parts of the same run of the next one.
                merged = _next_multiple(before + 1, self.fan_in ** (level + 1))
                if level < self.top and merged <= after:
                    target = Cell(self.level(merged, after), group)
                    moves[cell] = Route(rest=target)
                    touched[cell] = Touch(Action.MOVE, Reason.MERGED_UP, target.g)
                elif level in written:
                    touched[cell] = Touch(Action.APPEND_AND_EXPIRE, Reason.SWEPT | Reason.TAKES_RUN)
                else:
                    touched[cell] = Touch(Action.EXPIRE, Reason.EXPIRES)
        if self.groups > 1:
            # With one group each update sweeps it, and nothing ever waits.
            moves[LOG] = Route(homes)
            touched[LOG] = Touch(Action.APPEND_AND_EXPIRE, Reason.TAKES | Reason.LEAVES)
        return Plan(first, last, touched, moves)

    def _ends(self, before: int, after: int) -> list[int]:
        """Of the sweeps before + 1 .. after the last of each run that is there in the end."""
        # For each level the last whole run; the sweeps of lower levels come after it.
        lasts = [after // self.fan_in**level * self.fan_in**level for level in range(self.top + 1)]
        return [sweep for sweep in lasts if sweep > before]

    def initial_cell(self, insertion_slot: int, expiration_slot: int) -> Cell:
        return Cell(self.top, self.e.part_of(expiration_slot))

    def cell_of(self, insertion_slot: int, expiration_slot: int, plan: Plan) -> Cell:
        group = self.e.part_of(expiration_slot)
        sweep, last = self.sweeps(group, insertion_slot - 1) + 1, self.sweeps(group, plan.last)
        return LOG if sweep > last else Cell(self.level(sweep, last), group)

    def cell_sql(self, plan: Plan | None, insertion: str, expiration: str) -> tuple[str, str]:
        group = self.e.sql(expiration)
        if plan is None:
            return f"CAST({self.top} AS INT)", group
        levels = " ".join(
            f"WHEN ({insertion}) <= {self._newest_sql(level, group, plan.last)} THEN {level}"
            for level in range(self.top, -1, -1)
        )
        waits = f"({insertion}) > {self._newest_sql(0, group, plan.last)}"
        return (
            f"CAST(CASE {levels} ELSE {LOG.g} END AS INT)",
            f"CAST(CASE WHEN {waits} THEN {LOG.e} ELSE {group} END AS INT)",
        )

    def _newest_sql(self, level: int, group: str, last: int) -> str:
        """SQL for the slot of the sweep that completed a group's last run of at least the level."""
        # Groups up to that of slot `last` have been swept once more than the others.
        latest = self.e.part_of(last)
        size = self.fan_in**level
        one, other = (
            (self.sweeps(part, last) // size * size - 1) * self.groups + 1
            for part in (latest, latest + 1)
        )
        if one == other or latest == self.groups - 1:
            return f"({one} + {group})"
        return f"(CASE WHEN {group} <= {latest} THEN {one} ELSE {other} END + {group})"

    def group_sql(self, expiration: str) -> str | None:
        return self.e.sql(expiration)


def _next_multiple(number: int, divisor: int) -> int:
    """The least multiple that is not below the number."""
    return -(-number // divisor) * divisor


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=SETTINGS)
class TiersConfig(Settings):
    """Partitioned by expiration; sorted runs are merged level by level: for long windows."""

    name: Literal["tiers"] = "tiers"

    groups: Parts
    """Expiration groups; at most one for each update in longest_lifetime."""

    fan_in: Annotated[int, Field(strict=True, ge=2, le=FAN_IN_MAX)]
    """So many runs of one level are merged into one of the next."""

    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        yield from more_than_slots("groups", self.groups, period)
        if period is None or self.groups > period:
            return
        levels = self.build(period).top + 1
        if self.groups * levels > CELLS_MAX:
            yield (
                "groups",
                f"{self.groups} with {levels} levels each are {self.groups * levels} cells; "
                f"there may be at most {CELLS_MAX}; write at most {CELLS_MAX // levels}",
            )

    def build(self, period: int) -> Tiers:
        return Tiers(period, self.groups, self.fan_in)

    @classmethod
    def worth_trying(cls, slots: int, *, coarse: bool) -> Iterator[Self]:
        return (cls(groups=groups, fan_in=4) for groups in GROUPS_TRIED)
