"""The figures that the definition of Sweep promises, next to the papers' schemes.

Constant rate, lifetimes uniform over p slots, one row per (insertion slot, expiration slot), steady
state, averages over whole cycles.
"""

from __future__ import annotations

import pytest

from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep
from tidetable.core.simulate import simulate


def with_log(period: int, groups: int, every: int) -> Sweep:
    return Sweep(period, groups, every, deletion_vectors=True)


# scheme, written avg, written max, files avg, files max, dead
TABLE: list[tuple[Scheme, float, float, float, int, float]] = [
    # p = 36
    (Rebuild(36, 2, 2), 13.75, 13.75, 4, 4, 0),
    (Rebuild(36, 3, 3), 10.17, 10.17, 9, 9, 0),
    (Rebuild(36, 4, 4), 8.00, 8.00, 16, 16, 0),
    (Rebuild(36, 6, 6), 5.58, 5.58, 36, 36, 0),
    (Rebuild.by_insertion(36, 12), 18.50, 18.50, 12, 12, 0),
    (Rebuild.by_expiration(36, 12), 18.50, 18.50, 12, 12, 0),
    (NoRebuild(36, 4, 4), 1.00, 1.00, 138, 138, 0.46),
    (Sweep(36, 36), 1.00, 1.00, 666, 666, 0),  # partition by expiration slot, append, drop
    (with_log(36, 1, 8), 3.19, 18.50, 4.5, 8, 0.15),  # rewrite all every 8
    (with_log(36, 4, 1), 5.00, 5.00, 7, 7, 0.04),
    (with_log(36, 8, 1), 2.78, 2.78, 15, 15, 0.13),
    (with_log(36, 9, 1), 2.50, 2.50, 17, 17, 0.14),
    (with_log(36, 18, 1), 1.50, 1.50, 35, 35, 0.29),
    (with_log(36, 4, 2), 3.00, 5.00, 10.4, 11, 0.18),
    (with_log(36, 4, 4), 2.00, 5.00, 17.1, 19, 0.37),
    # p = 144
    (Rebuild(144, 4, 4), 31.62, 31.62, 16, 16, 0),
    (Rebuild(144, 6, 6), 22.08, 22.08, 36, 36, 0),
    (NoRebuild(144, 4, 4), 1.00, 1.00, 570, 570, 0.49),
    (Sweep(144, 144), 1.00, 1.00, 10440, 10440, 0),  # partition by expiration slot
    (with_log(144, 8, 1), 9.50, 9.50, 15, 15, 0.03),
    (with_log(144, 18, 1), 4.50, 4.50, 35, 35, 0.09),
    (with_log(144, 8, 2), 5.25, 9.50, 22.4, 23, 0.12),
    # p = 36 without deletion vectors: E(E+1)/2 files, otherwise as with a log
    (Sweep(36, 4), 5.00, 5.00, 10, 10, 0),
    (Sweep(36, 8), 2.78, 2.78, 36, 36, 0),
    (Sweep(36, 9), 2.50, 2.50, 45, 45, 0),
]


@pytest.mark.parametrize(
    ("scheme", "written_avg", "written_max", "files_avg", "files_max", "dead"),
    TABLE,
    ids=[f"p={row[0].period} {row[0].label}" for row in TABLE],
)
def test_a_row_of_the_tables(
    scheme: Scheme,
    written_avg: float,
    written_max: float,
    files_avg: float,
    files_max: int,
    dead: float,
) -> None:
    simulation = simulate(scheme)
    assert round(simulation.written_avg, 2) == written_avg
    assert round(simulation.written_max, 2) == written_max
    assert round(simulation.files_avg, 1) == files_avg
    assert simulation.files_max == files_max
    assert round(simulation.dead_avg, 2) == dead


@pytest.mark.parametrize("groups", [2, 3, 4, 6, 9, 12])
def test_sweep_writes_p_over_2e_plus_a_half_with_2e_minus_1_files(groups: int) -> None:
    """Exactly, where E divides p."""
    simulation = simulate(with_log(36, groups, 1))
    assert simulation.written_avg == simulation.written_max == 36 / (2 * groups) + 1 / 2
    assert simulation.files_avg == simulation.files_max == 2 * groups - 1


def test_sweep_1_1_rewrites_everything_at_each_update() -> None:
    everything = simulate(Rebuild(36, 1, 1))
    for scheme in (with_log(36, 1, 1), Sweep(36, 1)):
        swept = simulate(scheme, updates=36)
        assert [u.written for u in swept.updates] == [u.written for u in everything.updates]
        assert swept.files_max == 1


def test_at_36_files_sweep_without_deletion_vectors_writes_half_of_rebuild() -> None:
    sweep, rebuild = simulate(Sweep(36, 8)), simulate(Rebuild(36, 6, 6))
    assert sweep.files_avg == rebuild.files_avg == 36
    assert sweep.written_avg / rebuild.written_avg == pytest.approx(0.5, abs=0.01)


def test_at_the_same_number_of_files_sweep_with_a_log_writes_much_less_than_rebuild() -> None:
    """2.9 to 4.9 times less: 15 and 35 files against 16 and 36."""
    pairs = [(36, 8, 4), (36, 18, 6), (144, 8, 4), (144, 18, 6)]
    factors = [
        simulate(Rebuild(p, side, side)).written_avg / simulate(with_log(p, groups, 1)).written_avg
        for p, groups, side in pairs
    ]
    assert [round(factor, 1) for factor in factors] == [2.9, 3.7, 3.3, 4.9]
