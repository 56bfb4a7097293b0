"""What is usual, and what is far from it: from what earlier updates read, without a JVM."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.workspace import Workspace
from tidetable.config import Index, Volume, parse_duration
from tidetable.quality.volume import Judgement, history_of, judged, rows_by_slot
from tidetable.table.history import Turn

Rate = Callable[[float], float]
"""Rows for a slot, by the hours since the start, which is a midnight."""


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Workspace(tmp_path).index(update_every="30m", longest_lifetime="12h")


def hourly(index: Index, **volume: Any) -> Index:
    quality = replace(index.quality, volume=Volume(**volume))
    return replace(index, update_every=timedelta(hours=1), quality=quality)


def stream(index: Index, rate: Rate, days: float) -> dict[int, float]:
    """What each slot brought, with the accidents of counting."""
    chance = random.Random(days)
    found = {}
    for slot in range(1, int(timedelta(days=days) / index.update_every) + 1):
        mean = rate(slot * index.update_every / timedelta(hours=1))
        found[slot] = max(0, round(chance.gauss(mean, mean**0.5)))
    return found


def judge(index: Index, by_slot: Mapping[int, float], rows: float) -> Judgement:
    return judged(max(by_slot) + 1, rows, by_slot, index)


def alarms(index: Index, rate: Rate, days: int) -> list[int]:
    """The slots at which such a stream warns, from the first one on."""
    by_slot, number = stream(index, rate, days), history_of(index)
    return [
        slot
        for slot, rows in by_slot.items()
        if not judged(
            slot, rows, {s: by_slot[s] for s in range(max(1, slot - number), slot)}, index
        ).holds
    ]


def by_day(hours: float) -> float:
    return 1000 if 7 <= hours % 24 < 19 else 0


def weekdays(hours: float) -> float:
    return by_day(hours) if hours // 24 % 7 < 5 else 0


RATES: dict[str, Rate] = {
    "steady": lambda _: 1000,
    "few": lambda _: 2,
    "by day, nothing at night": by_day,
    "growing": lambda hours: 100 + 10 * hours,
    "nothing ever": lambda _: 0,
    "one slot a day has all": lambda hours: 100_000 if hours % 24 == 3 else 0,
    "steep mornings": lambda hours: 5 * 4 ** (5 - abs(hours % 24 - 12) / 2),
}


@pytest.mark.parametrize("name", RATES)
def test_a_source_that_does_what_it_always_does_warns_of_nothing(index: Index, name: str) -> None:
    assert alarms(hourly(index), RATES[name], 8) == []


def test_weekends_are_learned_in_a_week(index: Index) -> None:
    """The first free Saturday may be told; the second is known."""
    found = alarms(hourly(index), weekdays, 14)
    assert found
    assert all(120 <= slot <= 168 for slot in found)


@pytest.mark.parametrize("days", [1.5, 3.5, 7.5])
def test_a_source_that_stops_is_told_and_stays_told_for_days(index: Index, days: float) -> None:
    steady = stream(index, lambda _: 1000, days)
    stopped = judge(index, steady, 0)
    assert (stopped.is_low, stopped.holds) == (True, False)
    assert stopped.low == pytest.approx(100, rel=0.2)
    for slot in range(max(steady) + 1, max(steady) + 24):  # half a day on
        steady[slot] = 0
    assert judge(index, steady, 0).is_low


def test_a_source_that_stops_at_noon_is_told_though_its_nights_are_empty(index: Index) -> None:
    by_slot = stream(hourly(index), by_day, 4.5)
    assert judge(hourly(index), by_slot, 0).is_low
    assert judge(hourly(index), by_slot, 500).holds


def test_a_new_index_has_nothing_to_compare_with(index: Index) -> None:
    young = judge(index, stream(index, lambda _: 1000, 0.8), 0)
    assert young.holds
    assert young.why_not == "too few updates came before to tell what is usual"


def test_far_more_than_ever(index: Index) -> None:
    by_slot = stream(index, by_day, 4.5)
    assert judge(index, by_slot, 9_000).holds
    burst = judge(index, by_slot, 30_000)
    assert burst.is_high
    assert burst.found.startswith("30,000 rows; the last 4 days brought at least ")


def test_limits_are_the_users(index: Index) -> None:
    by_slot = stream(hourly(index), lambda _: 1000, 4)
    tight = hourly(index, min_share=0.8, max_share=1.2)
    assert judge(tight, by_slot, 700).is_low
    assert judge(tight, by_slot, 1500).is_high
    assert judge(tight, by_slot, 1000).holds
    assert judge(hourly(index, min_share=0), by_slot, 0).holds


def test_few_updates_are_compared_whatever_the_time_of_day(index: Index) -> None:
    short = hourly(index, over=5)
    assert history_of(short) == 5
    found = judge(short, {1: 900, 2: 1000, 3: 1100, 4: 0, 5: 1000}, 10)
    assert found.is_low
    assert found.found == "10 rows; the last 5 updates brought 1,000, by the median"
    assert judge(short, {1: 1000, 2: 1000}, 0).why_not


@pytest.mark.parametrize(
    ("every", "expected"), [("1s", 10_000), ("10m", 1152), ("1h", 192), ("1d", 28), ("7d", 28)]
)
def test_eight_days_are_looked_at(index: Index, every: str, expected: int) -> None:
    r = parse_duration(every)
    assert history_of(replace(index, update_every=r, longest_lifetime=10 * r)) == expected


def test_an_index_of_one_update_a_day(tmp_path: Path) -> None:
    index = Workspace(tmp_path).index(update_every="1d", longest_lifetime="14d")
    assert alarms(index, lambda _: 1000, 60) == []
    assert judge(index, dict.fromkeys(range(1, 3), 1000), 0).why_not
    assert judge(index, dict.fromkeys(range(1, 4), 1000), 0).is_low


def test_what_counts_of_a_fold_a_replay_and_late_rows() -> None:
    turns = [
        Turn(0, "load", 500, 0),
        Turn(1, "update", 100, 0),
        Turn(3, "update", 300, 0),  # a fold of two
        Turn(4, "update", 130, 30),  # with late rows
        Turn(5, "update", 0, 0),
        Turn(4, "restore", 0, 0),
        Turn(5, "update", 90, 0),
        Turn(5, "rebuild", 0, 0),
        Turn(6, "update", 80, 0),
    ]
    assert rows_by_slot(turns) == {1: 100, 3: 150, 4: 100, 5: 90, 6: 80}
    assert rows_by_slot(turns[1:3]) == {3: 150}  # the first has no one before it
