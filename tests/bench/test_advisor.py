"""The benchmark of the advisor: the workload it is told, and how the outcome is judged."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bench.advisor import Line, asked_of, line, name_of, settings_for, table
from bench.measured import Measured, UpdateFigures
from bench.sizes import SIZES
from tests.advisor.test_search import USUAL
from tidetable.advisor import Wishes, advise
from tidetable.core.schemes import SweepConfig

MEDIUM = SIZES["medium"]


@pytest.mark.parametrize("name", ["uniform_36", "bimodal_36", "equal_36", "heavy_36", "swing_36"])
def test_the_advisor_is_told_the_workload_that_is_measured(name: str) -> None:
    workload = MEDIUM.workload(name)
    asked = asked_of(workload, 1000.0)
    assert asked.live_bytes == pytest.approx(workload.live_bytes, rel=0.01)
    assert asked.mean_lifetime == pytest.approx(workload.mean_lifetime)
    assert (len(asked.rates) > 1) == workload.swings


def measured(system: str, update_s: float, probe_ms: float) -> Measured:
    updates = [UpdateFigures(1, update_s, 1, 1, 1, 1)]
    return Measured("w", system, system.upper(), "", "", 1, 0.0, updates,
                    probe_ms_at_once=probe_ms, scan_s_delta_rs=0.5)  # fmt: skip


def test_the_best_is_by_the_seconds_of_an_update_interval() -> None:
    asked = asked_of(MEDIUM.workload("uniform_36"), 1000.0)
    advice = advise(asked, USUAL, Wishes())
    own = name_of(advice.best[0].setting)
    found = line("w", advice, {own: measured(own, 2.0, 50), "other": measured("other", 1.0, 100)})
    assert found.advised_s == pytest.approx(2.0 + 0.5 + 0.5)
    assert found.best_s == pytest.approx(1.0 + 1.0 + 0.5)
    assert found.best == "OTHER"
    assert found.ratio == pytest.approx(1.2)
    assert not found.within


def test_the_advised_setting_is_always_measured() -> None:
    advice = advise(asked_of(MEDIUM.workload("uniform_36"), 1000.0), USUAL, Wishes())
    settings = settings_for(advice, 36)
    assert advice.best[0].setting == settings[0]
    assert len(settings) == len(set(settings))


def test_the_table_counts_what_is_within() -> None:
    lines = [Line("a", "X", 1, 1.1, "Y", 1.0), Line("b", "X", 1, 1.3, "Y", 1.0)]
    text = table(lines, {"cores": 2})
    assert "On 1 of 2 workloads" in text
    assert "| a | X | 1.00 | 1.10 | Y | 1.00 | 1.10 | yes |" in text


def test_a_setting_has_a_name_for_files() -> None:
    assert name_of(SweepConfig(groups=8)) == "sweep-groups-8"
    assert timedelta(hours=1) == asked_of(MEDIUM.workload("equal_36"), 1.0).update_every
