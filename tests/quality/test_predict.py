"""What a scheme is expected to make of an even stream: the same as the simulator and Theorem 1."""

from __future__ import annotations

import pytest

from tidetable.core.balance import chronological_variance, round_robin_variance, variance
from tidetable.core.cell import LOG, MERGED_LOG, Cell
from tidetable.core.placement import Placement
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers
from tidetable.core.simulate import simulate, uniform
from tidetable.quality.predict import (
    ROWS_PER_CELL_ENOUGH,
    STEPS_MAX,
    chance,
    files_allowed,
    predicted_imbalance,
    rows_to_judge,
    steady_sizes,
)

CHRONOLOGICAL = Placement.CHRONOLOGICAL
SCHEMES = [
    Rebuild(24, 4, 4),
    Rebuild(24, 4, 4, CHRONOLOGICAL),
    Rebuild(25, 4, 3),
    Rebuild.by_insertion(24, 5),
    Rebuild.by_expiration(24, 12),
    NoRebuild(24, 4, 4),
    Sweep(24, 8),
    Sweep(24, 8, 1, deletion_vectors=True),
    Sweep(24, 8, 2, deletion_vectors=True),
    Sweep(24, 8, 2, deletion_vectors=True, merge_log=4),
    Tiers(24, 3, 2),
]
every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.label)


@every_scheme
def test_sizes_are_those_of_the_simulator(scheme: Scheme) -> None:
    for update in simulate(scheme).updates:
        assert steady_sizes(scheme, update.slot) == update.sizes


@every_scheme
def test_sizes_of_a_table_that_is_filling_are_those_of_the_simulator(scheme: Scheme) -> None:
    """The stream begins with slot 1."""
    for update in simulate(scheme, warmup=0, updates=scheme.period + 2).updates:
        assert steady_sizes(scheme, update.slot, 1) == update.sizes


@pytest.mark.parametrize("n", [4, 9, 16])
def test_sizes_have_the_variance_of_theorem_1(n: int) -> None:
    side, period = int(n**0.5), 36
    even = steady_sizes(Rebuild(period, side, side), 100)
    assert even is not None
    assert variance(even.values()) == pytest.approx(round_robin_variance(n, period))
    old = Rebuild(period, side, side, CHRONOLOGICAL)
    all_states = [steady_sizes(old, slot) or {} for slot in range(100, 100 + period)]
    mean = sum(variance(sizes.values()) for sizes in all_states) / period
    assert mean == pytest.approx(chronological_variance(n, period))


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [(Rebuild(24, 4, 4), 1.12), (Rebuild(24, 4, 4, CHRONOLOGICAL), 1.92), (Sweep(24, 8), 1.28)],
    ids=["round-robin", "chronological", "sweep"],
)
def test_imbalance_of_an_even_stream(scheme: Scheme, expected: float) -> None:
    assert predicted_imbalance(scheme, 240) == pytest.approx(expected)


def test_the_log_of_sweep_is_not_one_of_the_cells_to_be_alike() -> None:
    assert predicted_imbalance(Sweep(24, 8, 1, deletion_vectors=True), 240) == 1


def test_a_layout_that_takes_too_long_is_not_predicted() -> None:
    assert STEPS_MAX < 6000 * 60
    assert predicted_imbalance(Rebuild(6000, 60, 60), 240) is None


@every_scheme
def test_no_cell_is_left_with_more_files_than_predicted(scheme: Scheme) -> None:
    """Of the simulator's files only the sum is known; those of Sweep's groups come in turns."""
    predicted = {cell: scheme.files_in(cell) for cell in scheme.cells()}
    most = simulate(scheme, uniform(scheme.period)).files_max
    assert most <= sum(predicted.values())
    if isinstance(scheme, Rebuild):
        assert set(predicted.values()) == {1}


def test_files_of_sweep() -> None:
    assert Sweep(24, 8).files_in(Cell(0, 3)) == 8
    with_log = Sweep(24, 8, 2, deletion_vectors=True)
    assert (with_log.files_in(Cell(0, 3)), with_log.files_in(LOG)) == (1, 16)


def test_files_of_a_merged_log_and_of_tiers() -> None:
    merged = Sweep(24, 8, 2, deletion_vectors=True, merge_log=5)
    cells = (Cell(0, 3), LOG, MERGED_LOG)
    assert [merged.files_in(cell) for cell in cells] == [1, 7, 5]
    tiers = Tiers(24, 2, 3)  # three levels
    cells = (Cell(0, 1), Cell(1, 1), Cell(2, 1), LOG)
    assert [tiers.files_in(cell) for cell in cells] == [2, 2, 3, 2]


def test_the_levels_of_a_group_are_taken_together() -> None:
    assert predicted_imbalance(Tiers(24, 3, 2), 240) == 1


def test_a_large_cell_may_be_split() -> None:
    scheme, cell = Rebuild(24, 4, 4), Cell(0, 0)
    assert files_allowed(scheme, cell, rows=100, size=5_000) == 2
    assert files_allowed(scheme, cell, rows=100, size=64 * 1024**2) == 2 + 32


def test_accident_is_large_where_rows_are_few() -> None:
    assert chance(16, 16 * 5) == pytest.approx(1.053, abs=0.001)
    assert chance(16, 16 * 50_000) == pytest.approx(0.0105, abs=0.0001)
    assert (chance(1, 10), chance(16, 0)) == (0, 0)


def test_rows_that_a_limit_needs_to_mean_something() -> None:
    """By accident alone so many rows stay below the limit; fewer may not."""
    for cells, limit in [(3, 1.5), (16, 1.5), (16, 1.2), (100, 2.0)]:
        needed = rows_to_judge(cells, limit)
        assert 1 + chance(cells, needed) <= limit
        assert needed == cells * 5 or 1 + chance(cells, needed - cells) > limit
    assert rows_to_judge(16, 3.0) == 16 * 5
    assert rows_to_judge(16, 1.0) == 16 * ROWS_PER_CELL_ENOUGH
