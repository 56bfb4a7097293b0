"""The simulator applies plans to counted rows; any workload will do."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tidetable.core.cell import LOG, Cell
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers
from tidetable.core.simulate import Arrivals, simulate, uniform

SCHEMES: list[Scheme] = [
    Rebuild(10, 3, 3),
    Rebuild.by_insertion(10, 4),
    NoRebuild(10, 3, 4),
    Sweep(10, 4),
    Sweep(10, 3, 1, deletion_vectors=True),
    Sweep(10, 4, 3, deletion_vectors=True),
    Sweep(10, 4, 3, deletion_vectors=True, merge_log=5),
    Tiers(10, 2, 2),
    Tiers(10, 1, 3),
]
each_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.label)


def equal(lifetime: int) -> Arrivals:
    return lambda slot: {slot + lifetime: 1}


def bursts(slot: int) -> Mapping[int, int]:
    """Nothing, then much at once, with short and long lives; some rows dead on arrival."""
    return {slot: 5, slot + 1: 3, slot + 2 + slot % 9: 7} if slot % 5 == 0 else {}


def test_uniform_is_one_row_for_each_lifetime() -> None:
    assert uniform(3)(7) == {8: 1, 9: 1, 10: 1}
    assert uniform(2, rows=5)(0) == {1: 5, 2: 5}


@each_scheme
def test_a_full_window_holds_p_times_p_plus_1_halves_units(scheme: Scheme) -> None:
    for update in simulate(scheme).updates:
        assert update.live == 55
        assert sum(update.sizes.values()) == 55
        assert set(update.sizes) == set(scheme.cells())


@each_scheme
@pytest.mark.parametrize("workload", [bursts, equal(4), equal(10)])
@pytest.mark.parametrize("prune", [False, True])
def test_live_rows_are_those_that_arrived_and_have_not_expired(
    scheme: Scheme, workload: Arrivals, prune: bool
) -> None:
    simulation = simulate(scheme, workload, updates=40, warmup=0, prune=prune)
    for update in simulation.updates:
        arrived = [item for slot in range(1, update.slot + 1) for item in workload(slot).items()]
        assert update.live == sum(rows for exp, rows in arrived if exp > update.slot)
        assert update.stored >= update.live
        assert update.inserted == sum(
            rows for exp, rows in workload(update.slot).items() if exp > update.slot
        )


@each_scheme
def test_pruning_makes_no_difference_to_an_even_workload(scheme: Scheme) -> None:
    assert simulate(scheme, prune=True) == simulate(scheme)


@each_scheme
def test_pruning_spares_writing_when_lifetimes_are_equal(scheme: Scheme) -> None:
    plain, pruned = (
        simulate(scheme, equal(10), updates=60, warmup=40, prune=prune) for prune in (False, True)
    )
    assert pruned.written_avg <= plain.written_avg
    assert [u.live for u in pruned.updates] == [u.live for u in plain.updates]


def test_with_equal_lifetimes_and_pruning_r_ins_rewrites_one_cell_as_reindex_does() -> None:
    """WAVE: day i is added to the constituent from which day i - W goes; no other is touched."""
    scheme = Rebuild.by_insertion(8, 4)
    assert simulate(scheme, equal(8)).written_avg == 8
    assert simulate(scheme, equal(8), prune=True).written_avg == 2


def test_sizes_tell_what_waits_in_the_log() -> None:
    """Sweep(2, 1), p = 2, update 1: the row of group 0 is swept in, that of group 1 waits."""
    update, *_ = simulate(Sweep(2, 2, deletion_vectors=True), updates=1, warmup=0).updates
    assert update.sizes == {Cell(0, 0): 1, Cell(0, 1): 0, LOG: 1}
    assert (update.inserted, update.written, update.files) == (2, 2, 2)


def test_the_largest_update_is_measured_against_average_arrivals() -> None:
    scheme = NoRebuild(10, 2, 2)
    simulation = simulate(scheme, lambda slot: {slot + 3: 1 + 2 * (slot % 2)}, updates=10)
    assert simulation.inserted_avg == 2
    assert simulation.written_avg == 1
    assert simulation.written_max == 1.5


def test_an_idle_stream_has_figures_too() -> None:
    simulation = simulate(Sweep(10, 2), lambda slot: {}, updates=5)
    assert simulation.written_avg == simulation.files_avg == simulation.dead_avg == 0


def test_progress_is_reported_after_each_update() -> None:
    calls: list[tuple[int, int]] = []
    simulate(Rebuild(4, 2, 2), updates=2, warmup=1, progress=lambda *done: calls.append(done))
    assert calls == [(1, 3), (2, 3), (3, 3)]
