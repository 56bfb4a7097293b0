"""How many sub-indices an update accesses (ICDE 3.2, 4.2)."""

from __future__ import annotations

from math import isqrt

import pytest

from tidetable.core.placement import Placement
from tidetable.core.schemes import NoRebuild, Rebuild


@pytest.mark.parametrize("scheme", [Rebuild, NoRebuild])
@pytest.mark.parametrize("placement", Placement)
@pytest.mark.parametrize(
    ("insertion", "expiration", "touched"),
    [(2, 2, 3), (3, 3, 5), (4, 4, 7), (2, 8, 9), (8, 2, 9), (6, 6, 11), (5, 7, 11)],
)
def test_an_update_accesses_g_plus_e_minus_1_sub_indices(
    scheme: type[Rebuild] | type[NoRebuild],
    placement: Placement,
    insertion: int,
    expiration: int,
    touched: int,
) -> None:
    """Four of sixteen take new rows, four of them lose rows, and one of these is the same."""
    grid = scheme(36, insertion, expiration, placement)
    assert len(grid.cells()) == insertion * expiration
    for slot in range(1, 73):
        assert len(grid.plan(slot).touched) == insertion + expiration - 1 == touched


@pytest.mark.parametrize("scheme", [Rebuild, NoRebuild])
@pytest.mark.parametrize("n", [2, 4, 9, 12])
def test_partitioned_on_one_side_only_an_update_accesses_all_n(
    scheme: type[Rebuild] | type[NoRebuild], n: int
) -> None:
    """R-ins, R-exp, D-ins and D-exp: why the index is doubly partitioned."""
    for one_sided in (scheme.by_insertion(36, n), scheme.by_expiration(36, n)):
        for slot in range(1, 73):
            assert len(one_sided.plan(slot).touched) == n


@pytest.mark.parametrize("n", [4, 9, 16, 36])
def test_as_many_insertion_as_expiration_partitions_access_least(n: int) -> None:
    """Minimize G + E given that G x E = n: G = E = sqrt(n)."""
    accessed = {
        g: len(Rebuild(36, g, n // g).plan(1).touched) for g in range(1, n + 1) if n % g == 0
    }
    assert min(accessed, key=accessed.__getitem__) == isqrt(n)
