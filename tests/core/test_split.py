"""Where rows are cut by key, going by the bounds of row groups alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidetable.core.split import KeyRange, split_points


def single_keys(number: int, rows: int = 10) -> list[KeyRange]:
    return [KeyRange(key, key, rows) for key in range(1, number + 1)]


def row_groups(keys: list[Any], rows_max: int) -> list[KeyRange]:
    """Row groups of a file that is sorted by key."""
    ordered = sorted(keys)
    cuts = [ordered[at : at + rows_max] for at in range(0, len(ordered), rows_max)]
    return [KeyRange(cut[0], cut[-1], len(cut)) for cut in cuts]


def parts_of(keys: list[Any], points: list[Any]) -> list[int]:
    """How many of the keys fall into each part."""
    sizes = [0] * (len(points) + 1)
    for key in keys:
        sizes[sum(key > point for point in points)] += 1
    return sizes


def test_rows_are_cut_evenly() -> None:
    assert split_points(single_keys(100), 4) == [25, 50, 75]
    assert split_points(single_keys(100)[::-1], 2) == [50]


def test_a_key_with_many_rows_gets_a_part_of_its_own() -> None:
    heavy = [*single_keys(20), KeyRange(10, 10, 100)]
    assert split_points(heavy, 3) == [9, 10]


def test_no_part_is_empty() -> None:
    """A part behind the last key would hold nothing; nor would one between two equal points."""
    assert split_points(single_keys(3), 10) == [1, 2]
    assert split_points([KeyRange("same", "same", 10)] * 8, 4) == []
    assert split_points(single_keys(1), 4) == []
    assert split_points([], 4) == []
    assert split_points([KeyRange(1, 2, 0)], 4) == []
    assert split_points(single_keys(50), 1) == []


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("keys_are", ["few", "many", "zipf", "text"])
def test_small_files_over_all_keys_do_not_tip_the_scales(parts: int, keys_are: str) -> None:
    """A cell of Sweep as it is swept: one large sorted file and seven small ones of new rows.

    Each small file is one row group over all keys. Taken to lie at their end, its rows would push
    the cut towards the last keys, and one core would write nearly everything.
    """
    random = Random(keys_are)

    def key() -> Any:
        if keys_are == "zipf":
            return int(1000 ** random.random())
        number = random.randrange(100 if keys_are == "few" else 1_000_000)
        return f"key-{number:07d}" if keys_are == "text" else number

    base = [key() for _ in range(90_000)]
    waiting = [[key() for _ in range(7_000)] for _ in range(7)]
    ranges = row_groups(base, 8_000)
    for file in waiting:
        ranges += row_groups(file, 8_000)
    everything = base + [one for file in waiting for one in file]
    points = split_points(ranges, parts)
    sizes = parts_of(everything, points)
    assert len(sizes) == parts
    # Twelve row groups tell the spread: a cut may be off by half of one on either side.
    assert max(sizes) <= len(everything) * (1 / parts + 1 / 12)


def test_with_wide_ranges_only_the_cut_is_between_their_bounds() -> None:
    assert split_points([KeyRange(1, 9, 100), KeyRange(2, 10, 100)], 2) in ([2], [9])


KEYS = st.integers(-20, 20)
RANGES = st.lists(
    st.builds(
        lambda a, b, rows: KeyRange(min(a, b), max(a, b), rows), KEYS, KEYS, st.integers(0, 10**9)
    ),
    max_size=40,
)


@given(RANGES, st.integers(1, 12))
def test_points_rise_are_bounds_and_leave_something_on_both_sides(
    ranges: list[KeyRange], parts: int
) -> None:
    points = split_points(ranges, parts)
    assert points == sorted(set(points))
    assert len(points) < parts or not points
    bounds = {bound for found in ranges for bound in (found.first, found.last)}
    assert set(points) <= bounds
    if points:
        assert points[-1] < max(bounds)
