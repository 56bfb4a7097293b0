"""Theorem 1 (ICDE 3.3, TR-05 with proof): round-robin balances the sub-indices better.

Constant rate, lifetimes uniform over p slots, G = E = sqrt(n). "Variance" is the sum of the squared
deviations from the mean size, averaged over the cycle of states.
"""

from __future__ import annotations

from math import isqrt

import pytest

from tidetable.core.balance import (
    chronological_variance,
    imbalance,
    round_robin_variance,
    variance,
)
from tidetable.core.errors import UserError
from tidetable.core.placement import Placement
from tidetable.core.schemes import NoRebuild, Rebuild
from tidetable.core.simulate import simulate

RR, CHR = Placement.ROUND_ROBIN, Placement.CHRONOLOGICAL


def states(n: int, period: int, placement: Placement) -> list[list[int]]:
    """The sizes of the sub-indices after each update of a cycle."""
    side = isqrt(n)
    simulation = simulate(Rebuild(period, side, side, placement))
    return [[size for _, size in sorted(update.sizes.items())] for update in simulation.updates]


def simulated(n: int, period: int, placement: Placement) -> float:
    variances = [variance(sizes) for sizes in states(n, period, placement)]
    return sum(variances) / len(variances)


def test_round_robin_n4_p8_has_three_sub_indices_of_10_and_one_of_6() -> None:
    assert {tuple(sorted(sizes)) for sizes in states(4, 8, RR)} == {(6, 10, 10, 10)}


def test_chronological_n4_p8_goes_through_the_states_of_the_proof() -> None:
    """I2 and I3 grow and shrink between 0 and 16, in turn; I1 and I4 stay at 10."""
    one_half = {(10, 0, 16, 10), (10, 4, 12, 10), (10, 8, 8, 10), (10, 12, 4, 10)}
    other_half = {(a, c, b, d) for a, b, c, d in one_half}
    assert {tuple(sizes) for sizes in states(4, 8, CHR)} == one_half | other_half


@pytest.mark.parametrize(
    ("n", "period", "expected"),
    [(4, 8, 12), (9, 12, 32), (16, 16, 60), (16, 36, 303.75), (36, 36, 315), (36, 72, 1260)],
)
def test_round_robin_variance(n: int, period: int, expected: float) -> None:
    """p^2/4 (1 - 1/n)."""
    assert round_robin_variance(n, period) == pytest.approx(expected)
    assert simulated(n, period, RR) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n", "period", "expected"), [(4, 8, 52), (9, 12, 232), (16, 16, 540), (36, 36, 7665)]
)
def test_chronological_variance(n: int, period: int, expected: float) -> None:
    """With the resting cells of the grid at rest, which the papers' closed form forgets."""
    assert chronological_variance(n, period) == pytest.approx(expected)
    assert simulated(n, period, CHR) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "period"), [(4, 36), (9, 36), (25, 60), (36, 144), (64, 48)])
def test_round_robin_is_better_balanced_than_chronological(n: int, period: int) -> None:
    assert round_robin_variance(n, period) < chronological_variance(n, period)


def test_round_robin_has_sqrt_n_times_sqrt_n_plus_1_halves_larger_sub_indices() -> None:
    """n = 16, p = 36, q = 9: ten of q(q+1)/2 = 45 units and six of (q-1)q/2 = 36."""
    for sizes in states(16, 36, RR):
        assert sorted(sizes) == [36] * 6 + [45] * 10


def test_without_rebuilding_the_live_rows_are_spread_alike() -> None:
    rebuilt, appended = (simulate(scheme(8, 2, 2)).updates for scheme in (Rebuild, NoRebuild))
    assert [update.sizes for update in rebuilt] == [update.sizes for update in appended]


def test_imbalance_is_the_largest_over_the_mean() -> None:
    assert imbalance([10, 10, 10, 6]) == pytest.approx(10 / 9)
    assert imbalance([10, 0, 16, 10]) == pytest.approx(16 / 9)
    assert imbalance([3, 3]) == imbalance([0, 0]) == 1


@pytest.mark.parametrize(("n", "period"), [(0, 8), (5, 8), (9, 8), (16, 4)])
def test_theorem_1_says_for_which_numbers_it_holds(n: int, period: int) -> None:
    for formula in (round_robin_variance, chronological_variance):
        with pytest.raises(UserError, match="square number"):
            formula(n, period)
