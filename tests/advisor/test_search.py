"""The advisor's model and search: known answers, limits, and the direction of every price."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest

from tidetable.advisor import (
    Calibration,
    Machine,
    Prediction,
    Wishes,
    Workload,
    advise,
    candidates,
    predict,
)
from tidetable.advisor.candidates import RUNS_FREE, RUNS_MAX, runs_allowed
from tidetable.advisor.workload import SLOTS_MAX
from tidetable.config import SchemeConfig
from tidetable.core.errors import UserError
from tidetable.core.schemes import NoRebuildConfig, RebuildConfig, SweepConfig

MB = 1024**2
FREE = Calibration(
    machine=Machine(2, {"tidetable": "x"}),
    **dict.fromkeys((one.name for one in fields(Calibration) if one.name != "machine"), 0.0),
)
USUAL = replace(
    FREE, commit_s=1.0, vectors_s=2.0, insert_s_per_byte=2e-8, rewrite_s_per_byte=2e-8,
    file_s=0.02, probe_s=0.02, probe_s_per_file=0.002, probe_s_per_marked_file=0.004,
    probe_s_per_byte=1e-10, scan_s=0.02, scan_s_per_byte=1e-9, scan_s_per_file=0.001,
)  # fmt: skip
NO_READS = Wishes(probes_per_update=0, scans_per_update=0)


def uniform(period: int = 12, live_bytes: float = 400 * MB, row: float = 1000.0) -> Workload:
    """Theorem 1's lifetimes, in a table of this size."""
    rows = live_bytes / row / ((period + 1) / 2)
    return Workload(
        lifetimes=(rows / period,) * period,
        bytes_per_row=row,
        update_every=timedelta(minutes=10),
        keep_versions_for=timedelta(hours=24),
    )


def sweep(groups: int, every: int = 1, *, log: bool = False) -> SweepConfig:
    return SweepConfig(groups=groups, every=every, deletion_vectors=log)


# -- the workload ----------------------------------------------------------------------------------


def test_a_workload_knows_how_many_rows_are_alive() -> None:
    workload = replace(uniform(), lifetimes=(10.0, 0.0, 5.0))
    assert workload.rows_per_slot == 15
    assert workload.live_rows == 10 * 1 + 5 * 3
    assert workload.live_bytes == 25_000
    assert workload.period == 3


def test_a_workload_without_rows_is_refused() -> None:
    with pytest.raises(UserError, match="needs rows"):
        replace(uniform(), lifetimes=(0.0, 0.0))


def test_a_window_at_the_start_is_full() -> None:
    workload = uniform(6)
    units = sum(workload.window().values())
    per_slot = sum(workload.arrivals()(1).values())
    # In units of a slot: (p + 1) / 2 less the rows of slot 0 that are gone with it; see Theorem 1.
    assert units / per_slot == pytest.approx((6 + 1) / 2, rel=0.01)


def test_a_long_window_is_made_coarser_and_stays_as_full() -> None:
    coarse, factor = uniform(720).coarse()
    assert coarse.period <= SLOTS_MAX
    assert factor == 2
    assert coarse.period * factor >= 720
    assert coarse.rows_per_slot == pytest.approx(factor * uniform(720).rows_per_slot)
    assert coarse.live_rows * 1.0 == pytest.approx(uniform(720).live_rows, rel=0.01)


# -- the model -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "period", "written"),
    [
        (RebuildConfig(insertion=4, expiration=4), 36, 8.00),
        (sweep(8), 36, 2.78),
        (sweep(9, log=True), 36, 2.50),
        (sweep(4, 2, log=True), 36, 3.00),
        (NoRebuildConfig(insertion=4, expiration=4), 36, 1.00),
        (sweep(8), 144, 9.50),
        (sweep(24), 720, 15.50),  # made coarser
        (sweep(24), 7200, 150.5),
    ],
    ids=str,
)
def test_rows_written_are_those_of_the_tables_of_sweep(
    setting: SchemeConfig, period: int, written: float
) -> None:
    found = predict(setting, uniform(period), USUAL)
    assert found.written_per_inserted == pytest.approx(written, rel=0.02)


@pytest.mark.parametrize(
    ("setting", "runs", "dead"),
    [(sweep(8), 36, 0), (sweep(9, log=True), 17, 0.14), (sweep(4, 4, log=True), 17.1, 0.37)],
    ids=str,
)
def test_runs_and_dead_rows_are_those_of_the_tables_of_sweep(
    setting: SchemeConfig, runs: float, dead: float
) -> None:
    found = predict(setting, uniform(36), USUAL)
    assert found.runs == pytest.approx(runs, rel=0.02)
    assert found.dead == pytest.approx(dead, abs=0.01)


def test_without_deletion_vectors_bytes_stay_as_long_as_versions_do() -> None:
    assert predict(sweep(8), uniform(36), USUAL).purge_within == timedelta(hours=24)


def test_a_log_keeps_bytes_for_as_many_updates_as_it_has_files() -> None:
    found = predict(sweep(4, 2, log=True), uniform(36), USUAL)
    slots = (found.purge_within - timedelta(hours=24)) / timedelta(minutes=10)
    assert 4 * 2 - 2 <= slots <= 4 * 2


def test_lifetimes_that_are_all_equal_make_the_groups_of_sweep_cheap() -> None:
    # With p a multiple of the groups all new rows go into the group that is being swept.
    equal = replace(uniform(12), lifetimes=(0.0,) * 11 + (1000.0,))
    assert predict(sweep(12), equal, USUAL).written_per_inserted == pytest.approx(1.0)
    assert predict(sweep(4), equal, USUAL).written_per_inserted == pytest.approx(3.0)


def test_a_swinging_source_has_larger_updates_and_the_same_average() -> None:
    even, uneven = uniform(24), replace(uniform(24), rates=(0.4, 1.6))
    one, other = (predict(sweep(6), workload, USUAL) for workload in (even, uneven))
    assert other.update_s == pytest.approx(one.update_s, rel=0.03)
    assert other.update_s_max > 1.05 * one.update_s_max


PRICES = [one.name for one in fields(Calibration) if one.name != "machine"]


@pytest.mark.parametrize("price", PRICES)
def test_no_price_makes_anything_cheaper_and_each_tells_somewhere(price: str) -> None:
    cheap = USUAL
    dear = replace(USUAL, **{price: getattr(USUAL, price) * 2 + 1e-6})
    dearer = []
    for setting in (sweep(4), sweep(4, 2, log=True)):
        before, after = predict(setting, uniform(), cheap), predict(setting, uniform(), dear)
        assert costs(before) <= costs(after)
        dearer.append(Wishes().total_s(after) > Wishes().total_s(before))
    assert any(dearer)


def costs(found: Prediction) -> tuple[float, float, float]:
    return found.update_s, found.probe_s, found.scan_s


@pytest.mark.parametrize("more", [{"probes_per_update": 20.0}, {"scans_per_update": 5.0}])
def test_more_reads_take_more_time(more: dict[str, float]) -> None:
    found = predict(sweep(4), uniform(), USUAL)
    assert Wishes(**more).total_s(found) > Wishes().total_s(found)  # type: ignore[arg-type]


def test_more_rows_take_more_time() -> None:
    small, large = (predict(sweep(4), uniform(live_bytes=n * MB), USUAL) for n in (100, 400))
    assert small.update_s < large.update_s
    assert small.scan_s < large.scan_s


# -- the search ------------------------------------------------------------------------------------


def best(
    calibration: Calibration, wishes: Wishes, workload: Workload | None = None
) -> SchemeConfig:
    found = advise(uniform(), calibration, wishes)
    return found.best[0].setting


def groups(setting: SchemeConfig) -> int:
    assert isinstance(setting, SweepConfig)
    return setting.groups


def test_where_only_bytes_cost_nothing_is_ever_written_twice() -> None:
    found = advise(uniform(), replace(FREE, rewrite_s_per_byte=1e-8), NO_READS)
    assert found.best[0].prediction.written_per_inserted == pytest.approx(1.0)


def test_where_only_files_cost_there_is_one() -> None:
    found = advise(uniform(), replace(FREE, file_s=0.1), NO_READS).best[0]
    assert found.prediction.runs == 1


def test_dear_bytes_want_many_cells_and_dear_probes_want_few() -> None:
    dear_bytes = best(replace(USUAL, rewrite_s_per_byte=2e-7), NO_READS)
    many_probes = best(USUAL, Wishes(probes_per_update=5000, scans_per_update=0))
    assert groups(dear_bytes) > groups(many_probes)


def test_dear_deletion_vectors_are_not_used() -> None:
    assert not groups_with_log(best(replace(USUAL, vectors_s=60.0), NO_READS))
    assert groups_with_log(best(replace(USUAL, vectors_s=0.0, file_s=0.2), NO_READS))


def groups_with_log(setting: SchemeConfig) -> bool:
    return setting.build(12).uses_deletion_vectors


def test_the_best_are_in_order_and_none_is_better() -> None:
    found = advise(uniform(), USUAL, Wishes())
    totals = [one.total_s for one in found.best]
    assert totals == sorted(totals)
    every = [Wishes().total_s(predict(one, uniform(), USUAL)) for one in candidates(12)]
    assert totals[0] == pytest.approx(min(every))


@pytest.mark.parametrize(
    "limits",
    [{"update_seconds_max": 2.8}, {"files_max": 12}, {"purge_within": timedelta(hours=24)}],
    ids=str,
)
def test_limits_are_kept(limits: dict[str, object]) -> None:
    wishes = replace(Wishes(), **limits)  # type: ignore[arg-type]
    found = advise(uniform(), USUAL, wishes)
    assert found.best
    for one in found.best:
        assert [limit for limit in wishes.limits(one.prediction) if limit[1] > limit[2]] == []


def test_a_limit_never_makes_the_best_better() -> None:
    free = advise(uniform(), USUAL, Wishes()).best[0].total_s
    bound = advise(uniform(), USUAL, Wishes(files_max=9)).best[0].total_s
    assert bound >= free


def test_a_limit_that_nothing_keeps_is_named() -> None:
    found = advise(uniform(), USUAL, Wishes(update_seconds_max=0.5))
    assert found.best == ()
    assert len(found.nearest) == 5
    assert "--update-seconds-max is 0.5, and the least that any setting reaches" in found.why


def test_limits_that_do_not_go_together_are_named() -> None:
    prices = replace(USUAL, rewrite_s_per_byte=2e-7)
    alone = advise(uniform(), prices, Wishes(files_max=9)).best[0].prediction.update_s_max
    found = advise(uniform(), prices, Wishes(files_max=9, update_seconds_max=alone / 2))
    assert found.best == ()
    assert found.why == "--files-max and --update-seconds-max can each be kept, but not together"


def test_the_reason_says_where_the_time_goes() -> None:
    found = advise(uniform(), USUAL, Wishes())
    assert found.best[0].label in found.why
    assert "on the commit itself" in found.why
    assert f"{found.best[1].label} would take" in found.why


@pytest.mark.parametrize(
    ("live_mb", "allowed"), [(1, RUNS_FREE), (64, 64), (400, 400), (10_000, RUNS_MAX)]
)
def test_the_rule_for_the_number_of_runs(live_mb: int, allowed: int) -> None:
    workload = uniform(live_bytes=live_mb * MB * 1.0001)
    assert runs_allowed(workload) == allowed


def test_settings_with_too_many_runs_are_left_out() -> None:
    found = advise(uniform(36, live_bytes=1 * MB), FREE, NO_READS, shown=100)
    assert found.too_many_runs > 0
    assert len(found.best) + found.too_many_runs == found.looked_at
    assert all(one.prediction.runs <= RUNS_FREE for one in found.best)


def test_a_choice_is_written_as_in_a_yaml_file() -> None:
    found = advise(uniform(), replace(FREE, file_s=0.1), NO_READS).best
    assert {"name": "sweep", "groups": 1} in [one.scheme for one in found]


def test_the_search_is_bounded_for_a_window_of_a_million_slots() -> None:
    long = replace(uniform(100), lifetimes=(1.0,) * 10_000)
    assert predict(sweep(8), long, USUAL).runs == pytest.approx(36)
    slots = long.coarse()[0].period
    assert not any(one.name == "no_rebuild" for one in candidates(slots, coarse=True))


# -- the calibration -------------------------------------------------------------------------------


def test_a_calibration_is_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "calibration.json"
    USUAL.save(path)
    assert Calibration.read(path) == USUAL
    assert Calibration.read(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 2}', USUAL.dumps().replace("commit_s", "comit_s"),
     USUAL.dumps().replace('"commit_s": 1.0', '"commit_s": -1')],
)  # fmt: skip
def test_what_is_no_calibration_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(UserError, match="--recalibrate"):
        Calibration.loads(text)
