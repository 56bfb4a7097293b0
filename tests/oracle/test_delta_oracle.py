"""After every update a Delta table holds exactly the rows that timestamps alone say are live."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.oracle.oracle import Counts, Oracle
from tests.workspace import EVERY, SCHEMA, START, Row, Workspace, cell_of, read_table
from tidetable.core.columns import EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.core.schemes import Scheme, Sweep, Tiers
from tidetable.engine import reading
from tidetable.engine.updater import Updater
from tidetable.table import read
from tidetable.table.report import UpdateReport
from tidetable.table.restriction import Restriction

pytestmark = pytest.mark.spark

PERIOD = 7
LONGEST = timedelta(minutes=67)
RECOUNT_EVERY = 3
KEYS = ("", "A", "a", "b", "b ", "ä", "日本", "it's")[1:]

Draw = Callable[[int, int], int]
"""Draws an integer between two bounds, both included."""

SCHEMES: dict[str, dict[str, Any]] = {
    # 7 slots in 3 and 2 parts: neither divides.
    "rebuild_round_robin": {"name": "rebuild", "insertion": 3, "expiration": 2},
    "rebuild_chronological": {
        "name": "rebuild", "insertion": 3, "expiration": 2, "placement": "chronological",
    },
    "r_ins": {
        "name": "rebuild", "insertion": 4, "expiration": 1, "placement": "chronological",
    },
    "r_exp": {
        "name": "rebuild", "insertion": 1, "expiration": 4, "placement": "chronological",
    },
    "no_rebuild_round_robin": {"name": "no_rebuild", "insertion": 2, "expiration": 3},
    "no_rebuild_chronological": {
        "name": "no_rebuild", "insertion": 2, "expiration": 3, "placement": "chronological",
    },
    "d_ins": {
        "name": "no_rebuild", "insertion": 3, "expiration": 1, "placement": "chronological",
    },
    "d_exp": {
        "name": "no_rebuild", "insertion": 1, "expiration": 3, "placement": "chronological",
    },
    "sweep": {"name": "sweep", "groups": 3},
    "sweep_with_log": {"name": "sweep", "groups": 3, "deletion_vectors": True},
    "sweep_with_log_every_2": {
        "name": "sweep", "groups": 2, "every": 2, "deletion_vectors": True,
    },
    "sweep_with_merged_log": {
        "name": "sweep", "groups": 3, "every": 2, "deletion_vectors": True, "merge_log": 3,
    },
    "tiers": {"name": "tiers", "groups": 2, "fan_in": 2},
}  # fmt: skip


@dataclass
class Story:
    """Rows, when the source shows them, and how the updates are folded."""

    folds: list[int]
    on_time: list[Row] = field(default_factory=list)
    late: dict[int, list[Row]] = field(default_factory=dict)
    """Slot after whose update the source shows them -> rows of slots up to that one."""

    probed: tuple[str, ...] = ()


@st.composite
def stories(draw_from: st.DrawFn) -> Story:
    """Bursts, empty slots, equal rows, rows on the edges, bad rows, rows from before the start."""

    def draw(low: int, high: int) -> int:
        return draw_from(st.integers(low, high))

    folds = [(1, 2, 3)[draw(0, 2)] for _ in range(3)]
    folds.insert(draw(0, 3), 1)
    last = sum(folds)
    burst, empty = draw(-2, last), draw(1, last)
    told = Story(folds, probed=(KEYS[draw(0, 6)], KEYS[draw(0, 6)]))
    for number in range(draw(30, 60)):
        slot = (burst, draw(-PERIOD, last + 1))[draw(0, 3) > 0]
        if slot == empty:
            continue
        row = _row(draw, number, slot)
        rows = [row] * (2 if draw(0, 5) == 0 else 1)
        if 0 < slot < last and draw(0, 4) == 0:
            told.late.setdefault(draw(slot, last - 1), []).extend(rows)
        else:
            told.on_time.extend(rows)
    return told


def _row(draw: Draw, number: int, slot: int) -> Row:
    every = EVERY // timedelta(microseconds=1)
    before_edge = (0, every - 1, 1, draw(0, every - 1))[draw(0, 3)]
    arrived = START + slot * EVERY - timedelta(microseconds=before_edge)
    # Ends on an edge, one microsecond off it, anywhere, or as late as may be.
    on_edge = timedelta(microseconds=before_edge) + draw(0, PERIOD - 1) * EVERY
    lifetime = (
        on_edge,
        on_edge + timedelta(microseconds=1),
        timedelta(microseconds=draw(0, every * 6)),
        LONGEST,
    )[draw(0, 3)]
    row = {
        "id": number,
        "key": KEYS[draw(0, 6)],
        "arrived_at": arrived,
        "inserted_at": arrived - timedelta(microseconds=(0, draw(0, every))[draw(0, 1)]),
        "expires_at": arrived + min(lifetime, LONGEST),
    }
    match draw(0, 14):
        case 1:
            row["key"] = (None, "")[draw(0, 1)]
        case 2:
            row["expires_at"] = row["inserted_at"] - timedelta(microseconds=1)
        case 3:
            row["expires_at"] = arrived + LONGEST + timedelta(microseconds=1)
        case 4:
            row["inserted_at"] = arrived + timedelta(microseconds=1)
            row["expires_at"] = arrived + EVERY
    return row


def is_bad(row: Row) -> bool:
    return (
        not row["key"]
        or row["inserted_at"] > min(row["arrived_at"], row["expires_at"])
        or row["expires_at"] > row["arrived_at"] + LONGEST
    )


class Telling:
    """Plays a story on a Delta table and on the oracle, and compares after every update."""

    def __init__(
        self, spark: SparkSession, folder: Path, scheme: Mapping[str, Any], told: Story
    ) -> None:
        self.spark = spark
        self.told = told
        self.workspace = Workspace(folder)
        self.index = self.workspace.index(
            scheme=dict(scheme),
            longest_lifetime="67m",
            source={"recount_every": RECOUNT_EVERY},
        )
        assert self.index.period == PERIOD
        self.scheme: Scheme = self.index.build_scheme()
        self.oracle = Oracle(START, EVERY, LONGEST)
        self.waiting: list[Row] = []
        self.show(told.on_time)
        self.oracle.add(row for row in told.on_time if not is_bad(row))
        self.oracle.add_bad(row for row in told.on_time if is_bad(row))
        self.updater = Updater(spark, self.index)

    def play(self) -> None:
        slot = 0
        for length in self.told.folds:
            first, slot = slot + 1, slot + length
            self.find_late(first, slot)
            reports = list(self.updater.catch_up(slot, fold=True))
            if first == 1:
                self.check_load(reports.pop(0))
            self.check(reports, first, slot)
            for shown_after in range(first, slot + 1):
                rows = self.told.late.get(shown_after, [])
                self.show(rows)
                self.waiting.extend(rows)
        self.check_spark(slot)
        self.check_quarantine()

    def show(self, rows: list[Row]) -> None:
        self.workspace.add(rows, schema=SCHEMA)

    def find_late(self, first: int, last: int) -> None:
        """The rule: the first update in first..last whose number is a multiple recounts."""
        due = next((j for j in range(first, last + 1) if j % RECOUNT_EVERY == 0), None)
        still: list[Row] = []
        for row in self.waiting:
            slot = self.oracle.slot_of(row["arrived_at"])
            if due is not None and slot >= due - RECOUNT_EVERY:
                self.oracle.take_late([row], due, bad=is_bad(row))
            else:
                still.append(row)
        self.waiting = still

    def check_load(self, report: UpdateReport) -> None:
        assert report.slot == 0
        self.check_report(report, self.oracle.loaded(PERIOD), 0)

    def check(self, reports: list[UpdateReport], first: int, last: int) -> None:
        assert [report.slot for report in reports] == [last]
        self.check_report(reports[0], self.oracle.counts(first, last), last)
        live = self.oracle.live_at_slot(last)
        stored = self.workspace.stored()
        assert contents(stored) == self.expected(live)
        for one in stored:
            self.check_cell(one, last)
        seen = read.view(self.index)
        assert seen.slot == last
        for key in self.told.probed:
            probe = Restriction(keys=(key,))
            found = [one for batch in read.batches(seen, probe) for one in read.rows(batch)]
            wanted = [row for row in live if row["key"] == key]
            assert contents(found) == self.expected(wanted)
            assert read.count(seen, probe) == len(wanted)

    def check_report(self, report: UpdateReport, counts: Counts, slot: int) -> None:
        done = Counts(report.inserted, report.dead_on_arrival, report.expired, report.quarantined)
        assert done == counts
        assert report.live == len(self.oracle.live_at_slot(slot))

    def check_cell(self, one: Mapping[str, Any], slot: int) -> None:
        insertion, expiration = one[INSERTION_SLOT], one[EXPIRATION_SLOT]
        cell = cell_of(one)
        if cell != self.scheme.initial_cell(insertion, expiration):
            assert insertion > 0
            updates = self.scheme.fold(1, slot)
            assert cell == self.scheme.cell_of(insertion, expiration, updates)
        if cell.is_log:
            assert isinstance(self.scheme, Sweep | Tiers)
            assert self.scheme.uses_deletion_vectors
            every = self.scheme.every if isinstance(self.scheme, Sweep) else 1
            assert insertion > slot - every * self.scheme.groups

    def check_spark(self, slot: int) -> None:
        """Spark reads the same rows as delta-rs."""
        frame = reading.frame(self.spark, read.view(self.index), Restriction())
        found = list(reading.spark_rows(frame))
        assert contents(found) == self.expected(self.oracle.live_at_slot(slot))

    def check_quarantine(self) -> None:
        """Every bad row is there once, in the slot that counted it; loaded ones in slot 0."""
        last = sum(self.told.folds)
        slots = [self.oracle.slot_of(self.oracle.arrival(row)) for row in self.oracle.bad]
        wanted = Counter(max(0, slot) for slot in slots if -PERIOD < slot <= last)
        assert Counter(one["slot"] for one in self.workspace.quarantined(self.index)) == wanted

    def expected(self, rows: Iterable[Row]) -> Counter[Any]:
        return Counter((*values(row), *self.oracle.slots(row)) for row in rows)


def values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in SCHEMA.names)


def contents(rows: Iterable[Mapping[str, Any]]) -> Counter[Any]:
    return Counter((*values(row), row[INSERTION_SLOT], row[EXPIRATION_SLOT]) for row in rows)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_table_holds_exactly_the_live_rows_after_every_update(
    spark: SparkSession, scheme: str
) -> None:
    """One example for each scheme, since every update is a Spark job; the story is printed."""

    @seed(list(SCHEMES).index(scheme))  # another story for each, the same in every run
    @given(told=stories())
    @settings(
        max_examples=1,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def tell(told: Story) -> None:
        # The first example of Hypothesis is always the dullest; it would be the only one.
        assume(len({row["arrived_at"] for row in told.on_time}) > 15 and told.late)
        with TemporaryDirectory() as folder:
            Telling(spark, Path(folder), SCHEMES[scheme], told).play()

    tell()


@pytest.mark.parametrize(
    "scheme",
    ["rebuild_chronological", "sweep", "sweep_with_merged_log", "tiers"],
)
def test_a_fold_leaves_the_same_rows_in_the_same_cells_as_one_by_one(
    spark: SparkSession, workspace: Workspace, scheme: str
) -> None:
    """And counts what the updates one by one count together."""
    draw = Random(scheme).randint
    workspace.add([_row(draw, number, draw(-PERIOD, 4)) for number in range(120)])
    changes = {"scheme": dict(SCHEMES[scheme]), "longest_lifetime": "67m"}
    index = workspace.index(**changes)
    list(Updater(spark, index).catch_up(0))
    # A Delta table may be moved: paths in its log are relative.
    twin = workspace.index(table=str(workspace.folder / "twin"), **changes)
    shutil.copytree(index.table, twin.table)

    reports = list(Updater(spark, index).catch_up(4))
    (folded,) = Updater(spark, twin).catch_up(4, fold=True)
    assert [report.slot for report in reports] == [1, 2, 3, 4]
    one_by_one, at_once = (
        Counter(tuple(sorted(one.items())) for one in read_table(table))
        for table in (index.table, twin.table)
    )
    assert one_by_one == at_once
    for name in ("inserted", "expired", "dead_on_arrival", "quarantined"):
        assert sum(getattr(report, name) for report in reports) == getattr(folded, name), name
    assert folded.live == reports[-1].live == len(read_table(twin.table)) > 0
