"""Workloads: as many rows as asked for are alive, and they die as their description says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from bench.workload import ROW_BYTES, Workload, end_of, sql_time

UNIFORM = Workload("w", 36)
ALL = [
    UNIFORM,
    Workload("w", 36, lifetimes="bimodal"),
    Workload("w", 36, lifetimes="equal"),
    Workload("w", 36, lifetimes="heavy"),
]


@pytest.mark.parametrize("workload", ALL, ids=lambda one: one.lifetimes)
def test_as_many_bytes_are_alive_at_the_start_as_asked_for(workload: Workload) -> None:
    alive = sum(
        workload.arrivals(slot) * workload.share_living(-slot)
        for slot in workload.slots
        if slot <= 0
    )
    assert alive * ROW_BYTES == pytest.approx(workload.live_bytes, rel=0.01)


@pytest.mark.parametrize("workload", ALL, ids=lambda one: one.lifetimes)
def test_nobody_outlives_p_slots_and_everybody_lives_one(workload: Workload) -> None:
    assert workload.share_living(0) == 1
    assert workload.share_living(workload.period) == 0


def test_mean_lifetimes() -> None:
    means = [round(workload.mean_lifetime, 2) for workload in ALL]
    assert means == [18.5, 18.5, 36, 4.17]  # (p + 1) / 2, the same, p, the 36th harmonic number


def test_a_swinging_rate_swings_by_four_and_is_the_same_on_average() -> None:
    swinging = replace(UNIFORM, swings=True)
    rates = [swinging.arrivals(slot) for slot in range(1, 13)]
    assert max(rates) / min(rates) == pytest.approx(4, rel=0.01)
    assert sum(rates) == pytest.approx(12 * UNIFORM.arrivals(1), rel=0.01)


def test_keys_follow_zipfs_law() -> None:
    zipf = replace(UNIFORM, keys="zipf")
    steps = 10_000
    shares = Counter(zipf.key_at(step / steps) for step in range(steps))
    assert set(shares) == set(range(1, 101))
    assert shares[1] / shares[2] == pytest.approx(2, rel=0.02)
    assert shares[1] / shares[10] == pytest.approx(10, rel=0.05)


def test_probed_keys_are_spread_over_the_rows() -> None:
    assert UNIFORM.probed_keys(4) == [13, 38, 63, 88]
    assert replace(UNIFORM, keys="zipf").probed_keys(4) == [1, 4, 14, 53]


def test_other_rows_have_another_digest() -> None:
    assert UNIFORM.digest != replace(UNIFORM, live_bytes=1).digest
    assert UNIFORM.digest == Workload("w", 36).digest


def test_the_end_of_a_slot_as_spark_reads_it() -> None:
    assert sql_time(end_of(25)) == "TIMESTAMP '2024-01-02 01:00:00'"
