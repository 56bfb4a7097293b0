"""After every update the plans leave exactly the rows that timestamps alone say are live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle.model import SlottedRow, Table
from tests.oracle.oracle import Oracle
from tidetable.core.cell import CellState
from tidetable.core.placement import Placement
from tidetable.core.plan import Plan
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers
from tidetable.core.slot import Timeline, period

START = datetime(2024, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)

Draw = Callable[[int, int], int]
"""Draws an integer between two bounds, both included."""


@dataclass(frozen=True)
class Story:
    """A scheme, the rows that arrive (timestamps only), and how the updates are folded."""

    scheme: Scheme
    every: timedelta
    longest: timedelta
    rows: list[dict[str, object]]
    folds: list[int]
    vagueness: list[int]


def story(draw: Draw, *, rows_max: int, updates_max: int) -> Story:
    """Any story: short and long windows, bursts, empty slots, rows exactly on the edges."""
    # An interval of a few microseconds makes rows on the edges, and one off them, common.
    every = (2, 7, 1_000_003, 1_800_000_000)[draw(0, 3)]
    longest = max(1, draw(1, 12) * every - (0, draw(0, every - 1))[draw(0, 1)])
    slots = period(timedelta(microseconds=longest), timedelta(microseconds=every))
    folds = [(1, 1, 2, draw(1, 2 * slots))[draw(0, 3)] for _ in range(draw(1, updates_max))]
    burst = draw(1 - slots, sum(folds))
    rows: list[dict[str, object]] = []
    for key in range(draw(0, rows_max)):
        slot = (burst, draw(1 - slots, sum(folds)))[draw(0, 2) > 0]
        before_edge = (0, draw(0, every - 1))[draw(0, 2) > 0]
        rest = (0, before_edge, before_edge + 1, draw(0, every - 1))[draw(0, 3)]
        lifetime = (longest, min(longest, draw(0, slots) * every + rest))[draw(0, 4) > 0]
        arrived_at = START + timedelta(microseconds=slot * every - before_edge)
        rows.append(
            {
                "key": key,
                "arrived_at": arrived_at,
                "inserted_at": arrived_at,
                "expires_at": arrived_at + timedelta(microseconds=lifetime),
            }
        )
    return Story(
        scheme(draw, slots),
        timedelta(microseconds=every),
        timedelta(microseconds=longest),
        rows,
        folds,
        [draw(0, 3) for _ in range(8)],
    )


def scheme(draw: Draw, slots: int) -> Scheme:
    """Any scheme for the window, most of them with a number of parts that does not divide it."""
    placement = (Placement.ROUND_ROBIN, Placement.CHRONOLOGICAL)[draw(0, 1)]
    match draw(0, 5):
        case 0:
            return Rebuild(slots, draw(1, slots), draw(1, slots), placement)
        case 1:
            return NoRebuild(slots, draw(1, slots), draw(1, slots), placement)
        case 2:
            return Sweep(slots, draw(1, slots))
        case 3:
            return Sweep(slots, draw(1, slots), draw(1, 4), deletion_vectors=True)
        case 4:
            groups, every = draw(1, slots), draw(2, 4)
            merge_log = draw(2, max(2, groups * every - 1)) if groups * every > 2 else 0
            return Sweep(slots, groups, every, deletion_vectors=True, merge_log=merge_log)
        case _:
            return Tiers(slots, draw(1, slots), draw(2, 4))


class Telling:
    """Plays a story on three tables: one by one, folded, and folded with pruned plans."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.scheme = story.scheme
        self.timeline = Timeline(START, story.every)
        self.oracle = Oracle(START, story.every, story.longest)
        self.oracle.add(story.rows)
        self.arrived: dict[int, list[SlottedRow]] = {}
        self.tables = [Table(story.scheme) for _ in range(3)]
        first_slot = 1 - story.scheme.period
        for table in self.tables:
            table.load(row for row in self.arriving(first_slot, 0) if row.expiration > 0)
        self.check(0)

    def play(self) -> None:
        slot = 0
        for length in self.story.folds:
            first, slot = slot + 1, slot + length
            for j in range(first, slot + 1):
                self.update(self.tables[0], self.scheme.plan(j))
            self.update(self.tables[1], self.scheme.fold(first, slot))
            self.update(self.tables[2], self.scheme.fold(first, slot), prune=True)
            self.check(slot)
            self.check_counts(first, slot)

    def arriving(self, first: int, last: int) -> list[SlottedRow]:
        return [row for slot in range(first, last + 1) for row in self.arriving_in(slot)]

    def arriving_in(self, slot: int) -> list[SlottedRow]:
        if slot not in self.arrived:
            slot_of = self.timeline.slot_of
            self.arrived[slot] = [
                SlottedRow(row["key"], slot_of(row["arrived_at"]), slot_of(row["expires_at"]))
                for row in self.oracle.arrived_in(slot)
            ]
        return self.arrived[slot]

    def update(self, table: Table, plan: Plan, *, prune: bool = False) -> None:
        new = table.allocated(plan, self.arriving(plan.first, plan.last))
        if prune:
            states = {cell: self.vague(table.state(cell), cell.e) for cell in table.files}
            arrivals = {cell: len(rows) for cell, rows in new.items()}
            plan = plan.pruned(states, arrivals, merges=self.scheme.merges)
        table.apply(plan, new)

    def vague(self, state: CellState, seed: int) -> CellState:
        """The state as file statistics may tell it: bounds that are not tight, or not known."""
        match self.story.vagueness[seed % 8]:
            case 0 if state.first_expiration is not None and state.last_expiration is not None:
                return replace(
                    state,
                    first_expiration=state.first_expiration - 2,
                    last_expiration=state.last_expiration + 2,
                )
            case 1:
                return replace(state, first_expiration=None, last_expiration=None)
            case _:
                return state

    def check(self, slot: int) -> None:
        live = sorted(row["key"] for row in self.oracle.live_at_slot(slot))
        one_by_one, *others = (table.by_cell() for table in self.tables)
        assert live == [row.key for row in self.tables[0].rows()]
        for other in others:
            assert one_by_one == other
        for cell, rows in one_by_one.items():
            for row in rows:
                home = self.scheme.initial_cell(row.insertion, row.expiration)
                if cell.is_log:
                    self.check_log(row, slot)
                elif isinstance(self.scheme, Tiers):
                    assert cell.e == home.e
                else:
                    assert cell == home
                if row.insertion > 0:
                    assert cell == self.scheme.cell_of(*row[1:], self.scheme.fold(1, slot))

    def check_log(self, row: SlottedRow, slot: int) -> None:
        """Every log file is gone after m E updates."""
        assert isinstance(self.scheme, Sweep | Tiers)
        every = self.scheme.every if isinstance(self.scheme, Sweep) else 1
        assert row.insertion > slot - every * self.scheme.groups

    def check_counts(self, first: int, last: int) -> None:
        """live before + inserted = live after + expired, folded or not."""
        counts = self.oracle.counts(first, last)
        before = len(self.oracle.live_at_slot(first - 1))
        assert before + counts.inserted == len(self.tables[0].rows()) + counts.expired


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_plans_keep_exactly_the_live_rows(data: st.DataObject) -> None:
    """Found by search, and told in the fewest rows if it ever fails."""
    drawn = story(lambda low, high: data.draw(st.integers(low, high)), rows_max=8, updates_max=5)
    Telling(drawn).play()


def test_plans_keep_exactly_the_live_rows_in_thousands_of_long_stories() -> None:
    """The same on stories too long to search through; the number in a failure is its seed."""
    for seed in range(2000):
        drawn = story(Random(seed).randint, rows_max=30, updates_max=8)
        try:
            Telling(drawn).play()
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}: {drawn.scheme}, folds {drawn.folds}") from failure
