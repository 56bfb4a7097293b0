"""ICDE figures 2 and 3: lifetimes up to 16 minutes, an update every two, four sub-indices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidetable.core.cell import Cell
from tidetable.core.placement import Placement
from tidetable.core.plan import Reason
from tidetable.core.schemes import Rebuild
from tidetable.core.slot import Timeline, period

NAMES = {Cell(0, 0): "I1", Cell(0, 1): "I2", Cell(1, 0): "I3", Cell(1, 1): "I4"}
START = datetime(2006, 4, 3, tzinfo=UTC)
TWO_MINUTES = timedelta(minutes=2)
SIXTEEN_MINUTES = timedelta(minutes=16)


def update_at(minute: int, placement: Placement) -> tuple[list[str], list[str]]:
    """The sub-indices that the update inserts into, and those it expires from."""
    scheme = Rebuild(period(SIXTEEN_MINUTES, TWO_MINUTES), 2, 2, placement)
    slot = Timeline(START, TWO_MINUTES).slot_of(START + timedelta(minutes=minute))
    touched = scheme.plan(slot).touched.items()
    inserts = [NAMES[cell] for cell, touch in touched if Reason.TAKES in touch.reason]
    expires = [NAMES[cell] for cell, touch in touched if Reason.EXPIRES in touch.reason]
    return sorted(inserts), sorted(expires)


def test_the_window_rolls_over_in_eight_updates() -> None:
    assert period(SIXTEEN_MINUTES, TWO_MINUTES) == 8


def test_update_9_at_time_18_inserts_into_i1_and_i2_and_expires_from_i1_and_i3() -> None:
    assert update_at(18, Placement.ROUND_ROBIN) == (["I1", "I2"], ["I1", "I3"])


def test_update_10_at_time_20_inserts_into_i3_and_i4_and_expires_from_i2_and_i4() -> None:
    assert update_at(20, Placement.ROUND_ROBIN) == (["I3", "I4"], ["I2", "I4"])


@pytest.mark.parametrize("minute", [18, 20, 22, 24])
def test_chronologically_i4_is_not_accessed_by_updates_9_to_12(minute: int) -> None:
    assert update_at(minute, Placement.CHRONOLOGICAL) == (["I1", "I2"], ["I1", "I3"])


@pytest.mark.parametrize("minute", [26, 28, 30, 32])
def test_chronologically_i1_is_not_accessed_by_updates_13_to_16(minute: int) -> None:
    assert update_at(minute, Placement.CHRONOLOGICAL) == (["I3", "I4"], ["I2", "I4"])


def test_at_time_16_chronological_i1_holds_slots_1_to_4_expiring_in_slots_9_to_12() -> None:
    """Figure 2: inserted between times 1 and 8, to expire between times 17 and 24."""
    scheme = Rebuild(8, 2, 2, Placement.CHRONOLOGICAL)
    pairs = {(i, x) for i in range(1, 9) for x in range(9, 17)}
    in_i1 = {pair for pair in pairs if scheme.initial_cell(*pair) == Cell(0, 0)}
    assert in_i1 == {(i, x) for i in range(1, 5) for x in range(9, 13)}


def test_round_robin_never_inserts_into_a_sub_index_twice_in_a_row() -> None:
    for minute in range(2, 64, 2):
        inserts, expires = update_at(minute, Placement.ROUND_ROBIN)
        next_inserts, next_expires = update_at(minute + 2, Placement.ROUND_ROBIN)
        assert not set(inserts) & set(next_inserts)
        assert not set(expires) & set(next_expires)
