"""Results: goals are ratios of one run, wins are told with their reason, pages are well formed."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.goals import outcomes
from bench.measured import Finished, Measured
from bench.noise import told
from bench.results import told_goals, write_results
from bench.sizes import chosen
from bench.wins import wins
from bench.workload import Workload
from tests.bench.figures import measured

SMALL = chosen("small")
UNIFORM = SMALL.workload("uniform_36")
ASKED_FOR = [
    "workload", "system", "setting", "live_bytes", "update_s_median", "update_s_max",
    "written_per_inserted", "files", "stored_per_live", "probe_ms_delta_rs", "probe_ms_spark",
    "scan_s", "expired_visible",
]  # fmt: skip


def reached(
    *others: Measured, ours: Measured | None = None, workload: Workload = UNIFORM
) -> dict[str, tuple[float, str]]:
    found = {one.system: one for one in (ours or measured(), *others)}
    return {one.goal: (one.value or 0, one.told) for one in outcomes(workload, found)}


@pytest.mark.parametrize(
    ("live_bytes", "goal", "most"),
    [
        (1_000_000_000, "update / limit, 1,000 MB live", 2),
        (1_000_000, "update / limit, 1 MB live", 6),
    ],
)
def test_an_update_is_held_against_the_quicker_of_the_limits(
    live_bytes: int, goal: str, most: float
) -> None:
    workload = replace(UNIFORM, live_bytes=live_bytes)
    seconds = 2 / most  # a sweep's median is 2
    quick = measured("limit_polars", seconds=(seconds, seconds))
    found = reached(measured("limit_pyarrow", seconds=(9.0, 9.0)), quick, workload=workload)
    assert found[goal] == (most, "reached")
    slow = measured("limit_pyarrow", seconds=(seconds * 0.9, seconds * 0.9))
    assert reached(slow, workload=workload)[goal][1] == "**not reached**"
    assert reached(workload=workload)[goal][1] == "not measured"
    assert goal not in reached(quick)  # the goals are set for these two sizes


def test_an_update_in_a_third_of_the_time_of_append_and_delete_reaches_its_goal() -> None:
    goal = "update / that of append + DELETE with deletion vectors"
    assert reached(measured("append_delete_dv", seconds=(8.0, 8.0)))[goal] == (0.25, "reached")
    assert reached(measured("append_delete_dv", seconds=(5.0, 5.0)))[goal][1] == "**not reached**"
    assert reached()[goal][1] == "not measured"


def test_a_ratio_between_two_runs_is_none() -> None:
    goal = "update / that of append + DELETE with deletion vectors"
    assert reached(measured("append_delete_dv", run="another day"))[goal][1] == "not measured"


def test_probes_are_held_against_a_table_without_deletion_vectors() -> None:
    goal = "probe / that of a freshly ZORDERed table without deletion vectors"
    fresh = measured("zorder_no_dv", probe_ms_delta_rs=40.0, probe_ms_at_once=50.0)
    ours = measured(probe_ms_delta_rs=50.0, probe_ms_at_once=50.0)
    found = reached(fresh, measured("zorder", probe_ms_delta_rs=50.0), ours=ours)
    assert found[goal] == (1.25, "**not reached**")
    assert found["the same with 8 files at once, as `tidetable probe` reads"] == (1, "reached")
    assert goal not in reached(fresh, workload=replace(UNIFORM, name="heavy_36"))


def test_clickhouse_is_met_where_it_drops_partitions() -> None:
    found = reached(measured("clickhouse_drop", seconds=(2.0, 2.0), probe_ms_delta_rs=150.0))
    assert found["update / that of ClickHouse with DROP PARTITION"] == (1, "reached")
    assert found["probe, times faster than ClickHouse with DROP PARTITION"] == (3, "reached")


def test_the_largest_update_counts_only_where_the_rate_is_constant() -> None:
    goal = "largest update / median"
    assert reached()[goal] == (1.5, "reached")
    assert goal not in reached(workload=replace(UNIFORM, swings=True))


def test_files_that_grow_no_more_meet_their_goal() -> None:
    goal = "files in the last four updates, of the most before"
    assert reached(ours=measured(seconds=(1.0,) * 8))[goal] == (1, "reached")
    assert reached()[goal][1] == "not measured"


def test_what_slows_all_systems_is_not_held_against_one() -> None:
    busy = (1.0, 1.0, 3.0)
    others = [measured(name, seconds=busy) for name in ("rebuild", "zorder", "liquid", "r_ins")]
    found = reached(*others, ours=measured(seconds=(1.0, 1.0, 2.5)))
    assert found["largest update / median"] == (2.5, "**not reached**")
    assert found["the same, without what slowed all systems alike"] == (1, "reached")
    assert told([measured(seconds=busy), *others], "sweep") == (
        "The machine was busy with something else in update 3: the systems took up to 3.0 times "
        "as long as usual then."
    )
    assert told([measured(seconds=busy), *others[:3]], "sweep") is None
    # One of them was as quick as ever: what slowed the others, an OPTIMIZE perhaps, is theirs.
    quick = measured("optimize", seconds=(1.0, 1.0, 1.0))
    assert told([measured(seconds=busy), *others, quick], "sweep") is None


def test_who_is_ahead_is_told_with_the_reason() -> None:
    found = [measured(), measured("append_delete_dv", seconds=(1.0, 1.0), probe_ms_delta_rs=90.0)]
    (win,) = wins(found)
    assert win.told.startswith("`append_delete_dv`: update, median 2.0x, update, mean 2.0x")
    assert "only marks what expired" in win.told
    assert "probe" not in win.told.split("Why:")[0]


def test_seconds_of_another_run_are_not_compared_but_counts_are() -> None:
    """The machine may have been another one, or busy."""
    other = measured("optimize", seconds=(0.1, 0.1), run="2024-01-02 00:00", live_bytes=200)
    (win,) = wins([measured(), other])
    assert list(win.by) == ["bytes stored"]


def test_the_page_says_which_rows_are_of_one_run(tmp_path: Path) -> None:
    finished = Finished(tmp_path / "finished")
    finished.keep(measured())
    finished.keep(measured("rebuild"))
    write_results(SMALL, finished, {}, tmp_path)
    assert "several runs" not in (tmp_path / "small.md").read_text()
    finished.keep(measured("zorder", run="2024-01-02 00:00"))
    write_results(SMALL, finished, {}, tmp_path)
    assert (
        "2024-01-01 00:00: `sweep`, `rebuild`; 2024-01-02 00:00: `zorder`."
        in (tmp_path / "small.md").read_text()
    )


def test_the_page_tells_how_long_those_runs_took_that_are_on_it(tmp_path: Path) -> None:
    finished = Finished(tmp_path / "finished")
    finished.keep(measured())
    runs = {"run of 2023-12-31 00:00": "long ago", "run of 2024-01-01 00:00": "1 pair in 2 minutes"}
    write_results(SMALL, finished, runs, tmp_path)
    page = (tmp_path / "small.md").read_text()
    assert "| run of 2024-01-01 00:00 | 1 pair in 2 minutes |" in page
    assert "long ago" not in page


def test_the_end_of_a_run_tells_goals_and_floors(tmp_path: Path) -> None:
    finished = Finished(tmp_path / "finished")
    finished.keep(measured())
    finished.keep(measured("limit_pyarrow", seconds=(1.0, 1.0)))
    said = told_goals(SMALL, finished)
    assert "uniform_36: largest update / median: 1.50, ≤ 1.5: reached" in said
    assert said[-1] == "uniform_36: sweep: update / limit 2.00 of limit_pyarrow"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    finished = Finished(tmp_path / "finished")
    finished.keep(measured(probe_files=4.0, probe_bytes=2e6))
    finished.keep(measured("rebuild", seconds=(2.0, 9.0), wrong="1 live row; right are 2"))
    finished.keep(measured("clickhouse", seconds=(0.1, 0.1), expired_visible=7))
    finished.keep(measured("limit_polars", seconds=(0.5, 0.5)))
    finished.keep(measured("zorder", digest="of other rows"))
    write_results(SMALL, finished, {"cores": "2"}, tmp_path)
    return tmp_path


def test_csv_has_one_line_for_each_pair_and_all_columns_asked_for(written: Path) -> None:
    with (written / "small.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["system"] for row in rows] == ["sweep", "rebuild", "clickhouse", "limit_polars"]
    assert list(rows[0])[: len(ASKED_FOR)] == ASKED_FOR
    assert rows[0]["written_per_inserted"] == "2.5"
    assert rows[0]["scan_s"] == ""
    assert rows[2]["expired_visible"] == "7"


def test_every_update_is_in_a_csv_of_its_own(written: Path) -> None:
    lines = (written / "small-updates.csv").read_text().splitlines()
    assert lines[1] == "uniform_36,sweep,1,1,10,25,9,105,,0.25"
    assert len(lines) == 1 + 4 * 2


def test_the_page_tells_goals_figures_wins_and_machine(written: Path) -> None:
    page = (written / "small.md").read_text()
    assert "| largest update / median | uniform_36 | ≤ 1.5 | 1.50 | reached |" in page
    assert "| `limit_polars` (limit: a floor, not a system) |" in page
    assert "`sweep`: update / limit 4.00 of `limit_polars`" in page
    assert "- `limit_polars`" not in page  # nobody could use it instead
    assert "`rebuild` **wrong**" in page
    assert "- `clickhouse`: update, median 20.0x" in page
    assert "| cores | 2 |" in page
    assert "for information" in page
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page):
        root = ElementTree.fromstring((written / picture).read_text())
        assert root.tag.endswith("svg")


def test_published_results_are_of_settings_that_there_are() -> None:
    from bench.systems.catalog import SYSTEMS

    folder = Path(__file__).resolve().parents[2] / "bench" / "results"
    for file in folder.glob("*.csv"):
        with file.open() as stream:
            rows = [row for row in csv.DictReader(stream) if "setting" in row]
        for row in rows:
            assert row["setting"] == SYSTEMS[row["system"]].setting, json.dumps(row)
