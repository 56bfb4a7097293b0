"""Sizes: what is asked for is what is run."""

from __future__ import annotations

import pytest

from bench.sizes import SIZES, chosen
from bench.systems.catalog import DEFAULT, FOR_LONG_WINDOWS, SYSTEMS
from tidetable.core.errors import UserError


def test_small_has_three_workloads_and_medium_eight_and_a_long_window() -> None:
    assert len(SIZES["small"].systems) == 3
    assert len(SIZES["medium"].systems) == 9
    assert "uniform_720" in SIZES["medium"].systems


@pytest.mark.parametrize("size", SIZES)
def test_the_default_meets_every_workload_and_one_workload_meets_every_peer(size: str) -> None:
    pairs = SIZES[size].systems
    assert all(DEFAULT in systems for systems in pairs.values())
    if size != "large":
        assert set(SYSTEMS) - set(FOR_LONG_WINDOWS) in [set(names) for names in pairs.values()]


def test_a_choice_of_systems_and_workloads() -> None:
    choice = chosen("medium", ["zorder", "sweep"], ["zipf_36"])
    assert choice.pairs == {"zipf_36": ("sweep", "zorder")}
    assert choice.workload("zipf_36").live_bytes == 1_000_000_000
    assert choice.label == "medium"


def test_another_number_of_updates_has_results_of_its_own() -> None:
    choice = chosen("small", updates=72)
    assert choice.label == "small-72"
    assert choice.workload("uniform_36").updates == 72


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"size": "huge"}, "SIZE=huge: there is no huge. There are: tiny, mini, small"),
        ({"size": "small", "systems": ["sweep", "magic"]}, "there is no magic"),
        ({"size": "small", "workloads": ["sunday"]}, "there is no sunday"),
    ],
)
def test_what_there_is_not_is_named(given: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        chosen(**given)  # type: ignore[arg-type]
