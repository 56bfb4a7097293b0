"""Slot j covers (t0 + (j-1)r, t0 + jr]; update j runs at t0 + jr."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidetable.core.errors import UserError
from tidetable.core.slot import Timeline, period

START = datetime(2024, 1, 1, tzinfo=UTC)
HALF_HOURS = Timeline(START, timedelta(minutes=30))
MICROSECOND = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("after_start", "slot"),
    [
        (timedelta(0), 0),
        (MICROSECOND, 1),
        (timedelta(minutes=30), 1),
        (timedelta(minutes=30) + MICROSECOND, 2),
        (timedelta(minutes=60), 2),
        (-timedelta(minutes=30) + MICROSECOND, 0),
        (-timedelta(minutes=30), -1),
        (-timedelta(minutes=60), -2),
    ],
)
def test_a_time_on_an_edge_belongs_to_the_slot_it_ends(after_start: timedelta, slot: int) -> None:
    assert HALF_HOURS.slot_of(START + after_start) == slot


def test_a_slot_begins_where_the_one_before_it_ends() -> None:
    assert HALF_HOURS.end_of(3) == START + timedelta(minutes=90)
    assert HALF_HOURS.begin_of(3) == START + timedelta(minutes=60)
    assert HALF_HOURS.begin_of(-1) == HALF_HOURS.end_of(-2)


@given(slot=st.integers(-(10**6), 10**6), every=st.integers(1, 10**9))
def test_slots_are_exact_to_the_microsecond(slot: int, every: int) -> None:
    """Whatever the interval: the edges are where integers put them, far from the start too."""
    timeline = Timeline(datetime(5000, 1, 1, tzinfo=UTC), timedelta(microseconds=every))
    assert timeline.slot_of(timeline.end_of(slot)) == slot
    assert timeline.slot_of(timeline.begin_of(slot)) == slot - 1
    assert timeline.slot_of(timeline.begin_of(slot) + MICROSECOND) == slot


def test_a_start_in_a_zone_with_summer_time_counts_real_hours() -> None:
    """The night of 31 March 2024 has 23 hours in Berlin."""
    berlin = ZoneInfo("Europe/Berlin")
    timeline = Timeline(datetime(2024, 3, 31, tzinfo=berlin), timedelta(hours=1))
    assert timeline.slot_of(datetime(2024, 4, 1, tzinfo=berlin)) == 23
    assert timeline.start.tzinfo is UTC


def test_a_time_without_a_zone_is_refused() -> None:
    naive = START.replace(tzinfo=None)
    with pytest.raises(UserError, match="no time zone"):
        HALF_HOURS.slot_of(naive)
    with pytest.raises(UserError, match="no time zone"):
        Timeline(naive, timedelta(minutes=1))


def test_an_interval_must_be_longer_than_nothing() -> None:
    with pytest.raises(UserError, match="longer than nothing"):
        Timeline(START, timedelta(0))
    with pytest.raises(UserError, match="longer than nothing"):
        period(timedelta(0), timedelta(minutes=1))


@pytest.mark.parametrize(
    ("longest", "slots"),
    [(timedelta(hours=12), 24), (timedelta(hours=12, microseconds=1), 25), (MICROSECOND, 1)],
)
def test_the_period_is_rounded_up(longest: timedelta, slots: int) -> None:
    assert period(longest, timedelta(minutes=30)) == slots


@pytest.mark.parametrize(
    ("after_start", "slot"),
    [
        (timedelta(0), 0),
        (timedelta(minutes=30) - MICROSECOND, 0),
        (timedelta(minutes=30), 1),
        (timedelta(minutes=59), 1),
        (-MICROSECOND, -1),
    ],
)
def test_the_last_slot_that_has_ended(after_start: timedelta, slot: int) -> None:
    """A slot has ended at its last moment, not before."""
    assert HALF_HOURS.ended_by(START + after_start) == slot
