"""Who warms up: one system of each sort, whatever part of a run is asked for."""

from __future__ import annotations

import pytest

from bench.systems.catalog import ENTRIES, SYSTEMS, warming_up

IN_TURNS = {entry.sort for entry in ENTRIES if entry.takes_turns}


def test_every_system_is_of_a_sort() -> None:
    assert all(entry.sort for entry in ENTRIES)


@pytest.mark.parametrize("name", ["sweep", "rebuild", "liquid", "limit_pyarrow"])
def test_a_part_of_a_run_warms_up_all_that_share_the_process(name: str) -> None:
    warming = [entry.sort for entry in warming_up([SYSTEMS[name]])]
    assert set(warming) == IN_TURNS
    assert len(warming) == len(IN_TURNS)


def test_an_engine_of_its_own_warms_up_only_where_it_is_measured() -> None:
    """By the one of them that need not wait for a clock."""
    names = [entry.name for entry in warming_up([SYSTEMS["clickhouse"]])]
    assert "clickhouse_drop" in names
    assert "clickhouse" not in names
    assert "iceberg" not in names
