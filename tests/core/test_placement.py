"""Round-robin and chronological partition functions (ICDE 3.1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.datafusion import evaluated
from tidetable.core.errors import UserError
from tidetable.core.placement import Partitioning, Placement

RR, CHR = Placement.ROUND_ROBIN, Placement.CHRONOLOGICAL


def dealt(placement: Placement, parts: int, period: int) -> list[int]:
    return [Partitioning(placement, parts, period).part_of(j) for j in range(1, period + 1)]


def test_round_robin_deals_one_slot_to_each_part_in_turn() -> None:
    assert dealt(RR, 3, 8) == [0, 1, 2, 0, 1, 2, 0, 1]


def test_chronological_gives_neighbouring_slots_to_one_part() -> None:
    assert dealt(CHR, 2, 8) == [0, 0, 0, 0, 1, 1, 1, 1]


def test_chronological_makes_the_first_parts_wider_if_the_period_does_not_divide() -> None:
    assert dealt(CHR, 3, 8) == [0, 0, 0, 1, 1, 1, 2, 2]


@given(slot=st.integers(-1000, 1000), parts=st.integers(1, 12), width=st.integers(1, 12))
def test_with_a_divisible_period_chronological_is_the_papers_function(
    slot: int, parts: int, width: int
) -> None:
    """g(j) = ((j-1) div (p/G)) mod G."""
    chronological = Partitioning(CHR, parts, parts * width)
    assert chronological.part_of(slot) == ((slot - 1) // width) % parts


@pytest.mark.parametrize("placement", Placement)
@given(period=st.integers(1, 60), data=st.data())
def test_every_part_has_its_turn_within_a_period(
    placement: Placement, period: int, data: st.DataObject
) -> None:
    parts = data.draw(st.integers(1, period))
    slots = dealt(placement, parts, period)
    assert set(slots) == set(range(parts))
    sizes = [slots.count(part) for part in range(parts)]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("placement", Placement)
@pytest.mark.parametrize(
    ("parts", "period"), [(1, 1), (1, 7), (2, 8), (3, 8), (7, 7), (5, 36), (12, 36)]
)
def test_sql_is_the_same_function(placement: Placement, parts: int, period: int) -> None:
    """For slots before the start too, where % is negative and / is not floor."""
    partitioning = Partitioning(placement, parts, period)
    slots = range(-2 * period - 3, 3 * period + 3)
    expected = [(partitioning.part_of(slot),) for slot in slots]
    assert evaluated([partitioning.sql("ins")], [(slot, 0) for slot in slots]) == expected
    shifted = evaluated([partitioning.sql("ins - 1")], [(slot + 1, 0) for slot in slots])
    assert shifted == expected


@pytest.mark.parametrize("parts", [0, -1, 9])
def test_there_is_at_least_one_part_and_at_most_one_per_slot(parts: int) -> None:
    with pytest.raises(UserError, match="from 1 to 8"):
        Partitioning(RR, parts, 8)
