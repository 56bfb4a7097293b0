"""How rows are laid out into files: sorted, split by key range, and without a pass too many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from tests.workspace import SCHEMA, Workspace, row
from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.core.placement import Placement
from tidetable.core.plan import Plan
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep
from tidetable.core.split import KeyRange
from tidetable.engine import parts
from tidetable.engine.arrange import OWN_TASK_BYTES_MIN, Arrangement, arrange
from tidetable.engine.updater import Updater
from tidetable.table.files import DataFile
from tidetable.table.log import open_log

pytestmark = pytest.mark.spark

MB = 1024 * 1024


def groups(number: int, rows: int = 10) -> list[KeyRange]:
    """Row groups of one key each: 1, 2, ..., number."""
    return [KeyRange(key, key, rows) for key in range(1, number + 1)]


def no_ranges() -> list[KeyRange]:
    raise AssertionError("footers were read although nothing is split")


# -- tasks -----------------------------------------------------------------------------------------


def test_one_large_cell_keeps_all_cores_busy() -> None:
    """Below the target size, but worth more than one task."""
    cell = Cell(0, 0)
    found = arrange({cell: 40 * MB}, 64 * MB, 4, lambda: groups(100))
    assert found == Arrangement(4, {cell: (0, [25, 50, 75])})


def test_a_cell_past_the_target_size_is_split_even_on_one_core() -> None:
    found = arrange({Cell(0, 0): 10 * MB}, 2 * MB, 1, lambda: groups(100))
    assert found.tasks == 5
    assert found.cells[Cell(0, 0)] == (0, [20, 40, 60, 80])


def test_small_cells_share_tasks_evenly_and_need_no_split_points() -> None:
    sizes = {Cell(0, e): (e + 1) * 1000_000 for e in range(8)}
    found = arrange(sizes, 64 * MB, 2, no_ranges)
    assert found.tasks == 2
    loads = [0, 0]
    for cell, (task, points) in found.cells.items():
        assert not points
        loads[task] += sizes[cell]
    assert loads == [18_000_000, 18_000_000]
    # Of so little a second task would cost more than it saves.
    assert arrange({Cell(0, e): 1000 for e in range(8)}, 64 * MB, 2, no_ranges).tasks == 1
    assert arrange({Cell(0, 0): 10}, 64 * MB, 8, no_ranges).tasks == 1
    assert arrange({}, 64 * MB, 8, no_ranges).tasks == 1


def test_small_cells_go_into_the_tasks_of_large_ones_while_all_of_them_run_at_once() -> None:
    large, smaller = Cell(0, 0), [Cell(0, e) for e in range(1, 5)]
    sizes = {large: 100 * MB} | dict.fromkeys(smaller, 7 * MB)
    found = arrange(sizes, 128 * MB, 2, lambda: groups(90))
    assert found.tasks == 2
    assert found.cells[large] == (0, [45])
    assert sorted(found.cells[cell][0] for cell in smaller) == [0, 0, 1, 1]
    # One core more: the large one has a part for it too, and the small ones spread over all three.
    found = arrange(sizes | {large: 70 * MB}, 128 * MB, 3, lambda: groups(90))
    assert found.tasks == 3
    assert found.cells[large] == (0, [30, 60])


def test_small_cells_have_tasks_of_their_own_beside_more_large_ones_than_cores() -> None:
    """They fill the cores that are done first."""
    large = [Cell(0, e) for e in range(3)]
    small = [Cell(1, e) for e in range(3)]
    sizes = dict.fromkeys(large, OWN_TASK_BYTES_MIN) | dict.fromkeys(small, MB)
    found = arrange(sizes, 64 * MB, 2, no_ranges)
    assert [found.cells[cell][0] for cell in large] == [0, 1, 2]
    assert sorted(found.cells[cell][0] for cell in small) == [3, 3, 4]
    assert found.tasks == 5


@given(
    st.lists(st.integers(0, 300 * MB), max_size=30),
    st.integers(1, 16),
    st.sampled_from([2 * MB, 64 * MB, 128 * MB]),
)
def test_every_cell_has_tasks_and_every_task_something_to_write(
    sizes: list[int], cores: int, target: int
) -> None:
    wanted = {Cell(0, e): size for e, size in enumerate(sizes)}
    found = arrange(wanted, target, cores, lambda: groups(1000))
    assert found.cells.keys() == wanted.keys()
    used = [task + part for task, points in found.cells.values() for part in range(len(points) + 1)]
    assert set(used or [0]) == set(range(found.tasks))


# -- files -----------------------------------------------------------------------------------------


def random_rows(slot: int, number: int) -> Iterator[dict[str, Any]]:
    """About 100 bytes each that do not compress; a key comes several times."""
    random = Random(slot)
    for n in range(number):
        key = f"key-{random.randrange(20_000):06d}"
        text = random.randbytes(45).hex()
        yield dict(row(n, slot - 0.5, slot + random.randint(1, 5), key=key, text=text))


def test_files_are_sorted_disjoint_and_near_the_target_size(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first load, whose split points are sampled, and after a rewrite of everything.

    The rewrite moves new rows between tasks once, and stored ones not at all.
    """
    schema = SCHEMA.append(pa.field("text", pa.string()))
    workspace.add(random_rows(0, 80_000), schema=schema)
    workspace.add(random_rows(1, 20_000), schema=schema)
    index = workspace.index(scheme={"name": "sweep", "groups": 1}, target_file_size="1MB")
    updater = Updater(spark, index)
    list(updater.catch_up(0))
    check_files(index, files_min=4)

    plans: list[str] = []
    read: list[str] = []
    run = parts._job

    def noted(frame: DataFrame, *more: Any) -> list[dict[str, Any]]:
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        read.extend(frame.inputFiles())
        return run(frame, *more)

    monkeypatch.setattr(parts, "_job", noted)
    (report,) = updater.catch_up(1)
    assert report.rewritten_rows > 50_000
    check_files(index, files_min=4)

    (plan,) = plans
    assert plan.count("Exchange") == 1, plan
    assert read
    assert all(str(workspace.source) in file for file in read)
    assert str(workspace.table) not in plan  # stored rows do not pass through Spark


@pytest.mark.parametrize(
    "scheme",
    [
        {"name": "sweep", "groups": 3},
        {"name": "sweep", "groups": 3, "deletion_vectors": True},
        {"name": "rebuild", "insertion": 2, "expiration": 2},
        {"name": "rebuild", "insertion": 1, "expiration": 3},
        {"name": "no_rebuild", "insertion": 2, "expiration": 2},
        {"name": "no_rebuild", "insertion": 3, "expiration": 1, "placement": "chronological"},
        {"name": "tiers", "groups": 2, "fan_in": 2},
    ],
    ids=lambda scheme: "-".join(map(str, scheme.values())),
)
def test_every_file_is_sorted_by_key_and_expiration(
    spark: SparkSession, workspace: Workspace, scheme: dict[str, Any]
) -> None:
    """Of a load and of updates, whether or not cells are written again, in several tasks or one.

    Spark drops a sort whose first columns are constants as soon as a write needs one of its own.
    """
    schema = SCHEMA.append(pa.field("text", pa.string()))
    for slot, number in ((0, 60_000), (1, 300), (2, 300), (3, 300)):
        workspace.add(random_rows(slot, number), schema=schema)
    index = workspace.index(scheme=scheme, target_file_size="1MB")
    for slot in range(4):
        list(Updater(spark, index).catch_up(slot))
        for _, pairs in stored_pairs(index):
            assert pairs == sorted(pairs)


@pytest.mark.parametrize("first", [0, 1])
def test_wide_rows_do_not_make_larger_files(
    spark: SparkSession, workspace: Workspace, first: int
) -> None:
    """As a load, and as the first rows of a table that was empty: no file tells their size yet."""
    schema = SCHEMA.append(pa.field("text", pa.binary()))
    random = Random(1)
    wide = [
        dict(row(n, first - 0.5, first + 3, key=f"key-{n % 500:03d}", text=random.randbytes(2000)))
        for n in range(2000)
    ]
    workspace.add(wide, schema=schema)
    index = workspace.index(scheme={"name": "sweep", "groups": 1}, target_file_size="1MB")
    list(Updater(spark, index).catch_up(first))
    check_files(index, files_min=4)


def stored_pairs(index: Index) -> Iterator[tuple[DataFile, list[tuple[str, int]]]]:
    """Each file of the table with the keys and expirations of its rows."""
    log = open_log(index.table)
    assert log is not None
    for file in log.files:
        with log.storage.open_input_file(file.path) as stream:
            stored = pq.read_table(stream, columns=["key", "expires_at"])
        keys = stored.column("key").to_pylist()
        expirations = stored.column("expires_at").cast(pa.int64()).to_pylist()
        yield file, list(zip(keys, expirations, strict=True))


def check_files(index: Index, *, files_min: int) -> None:
    ranges = []
    for file, pairs in stored_pairs(index):
        assert pairs == sorted(pairs)
        ranges.append((pairs[0][0], pairs[-1][0]))
        assert 0.3 * MB < file.bytes < 1.6 * MB
    assert len(ranges) >= files_min
    for (_, last), (first, _) in pairwise(sorted(ranges)):
        assert last < first


# -- cells -----------------------------------------------------------------------------------------


def schemes() -> list[Scheme]:
    grids = [
        kind(7, parts, other, placement)
        for kind in (Rebuild, NoRebuild)
        for placement in Placement
        for parts, other in ((3, 2), (1, 4), (4, 1), (7, 7))
    ]
    sweeps = [Sweep(7, 3), Sweep(7, 1)]
    logs = [Sweep(7, e, m, deletion_vectors=True) for e, m in ((1, 1), (3, 1), (2, 2), (1, 3))]
    return [*grids, *sweeps, *logs]


def plans(scheme: Scheme) -> list[Plan | None]:
    return [None, scheme.plan(1), scheme.plan(2), scheme.fold(3, 8), scheme.fold(-4, 30)]


def test_spark_finds_the_same_cell_as_the_planner(spark: SparkSession) -> None:
    """For every scheme, loads, single updates and folds, also for slots below zero."""
    cases = [(scheme, plan) for scheme in schemes() for plan in plans(scheme)]
    expressions = [
        f"struct({', '.join(scheme.cell_sql(plan, 'ins', 'exp'))}) AS c{number}"
        for number, (scheme, plan) in enumerate(cases)
    ]
    slots = (
        spark.range(-10, 12)
        .selectExpr("id AS ins")
        .crossJoin(spark.range(0, 8).selectExpr("id AS lives"))
    )
    lines = slots.selectExpr("ins", "ins + lives AS exp").selectExpr("ins", "exp", *expressions)
    for line in lines.collect():
        for (scheme, plan), cell in zip(cases, line[2:], strict=True):
            pair = line["ins"], line["exp"]
            wanted = scheme.initial_cell(*pair) if plan is None else scheme.cell_of(*pair, plan)
            assert tuple(cell) == wanted, (scheme, plan, pair)
