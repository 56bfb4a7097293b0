"""The advisor on a real source, a real machine and a real table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.advisor.test_search import USUAL
from tests.workspace import Workspace, row
from tidetable.advisor import Calibration, trial
from tidetable.advisor import calibrate as calibrating
from tidetable.advisor import choose as choosing
from tidetable.advisor.calibrate import Progress, calibrated, calibration_path, machine_of
from tidetable.advisor.choose import Chosen
from tidetable.advisor.drift import drift
from tidetable.advisor.histogram import read_workload
from tidetable.config import Index
from tidetable.core.errors import UserError
from tidetable.core.schemes import SweepConfig
from tidetable.engine import updater as update
from tidetable.engine.commit import write_commit
from tidetable.engine.rebuild import rebuild
from tidetable.engine.updater import Updater
from tidetable.table.history import Updates
from tidetable.table.state import PROPERTY_CHOSEN, IndexTable
from tidetable.table.status import status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def updater_of(spark: SparkSession, index: Index) -> Updater:
    """As the command line makes one for an index that says auto."""
    return Updater(spark, index, choose=lambda *given: choosing.choose_scheme(*given))


def fill(workspace: Workspace, last: int = 8) -> None:
    """In every slot from -5 on, two rows of one slot's lifetime and one that lives for five."""
    rows = []
    for slot in range(-5, last + 1):
        for number, lifetime in enumerate((1, 1, 5)):
            rows.append(row(100 * slot + number, slot - 0.5, slot - 0.5 + lifetime))
    rows.append(row(9_999, 0.5, 0.7))  # dead on arrival: no part of the histogram
    workspace.add(rows)


def test_the_histogram_is_that_of_the_source(spark: SparkSession, workspace: Workspace) -> None:
    fill(workspace)
    found = read_workload(spark, workspace.index(scheme="auto"))
    assert found.lifetimes == pytest.approx((2, 0, 0, 0, 1, 0))
    assert found.rates == (1.0,)
    assert 20 < found.bytes_per_row < 500


def test_a_source_without_rows_is_told(spark: SparkSession, workspace: Workspace) -> None:
    workspace.add([row(1, -50, -49)])
    with pytest.raises(UserError, match="holds no row"):
        read_workload(spark, workspace.index(scheme="auto"))


def test_a_calibration_is_measured_kept_and_used_again(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"WIDE_ROWS": 200, "NARROW_ROWS": 400, "PROBES": 2}.items():
        monkeypatch.setattr(trial, name, value)
    monkeypatch.setattr(calibrating, "ROUNDS_MAX", 2)
    index = workspace.index(scheme="auto")
    said: list[str] = []
    made = calibrated(spark, index, said.append)
    assert made.machine == machine_of(spark)
    assert made.commit_s > 0
    assert made.probe_s > 0
    assert said[0] == "calibrating: making rows"
    # Nothing is left behind but the file, and with it nothing is measured again.
    assert {path.name for path in workspace.folder.iterdir()} == {
        "source", "things.yaml", "calibration.json",
    }  # fmt: skip
    said.clear()
    assert calibrated(spark, index, said.append) == made
    assert said == []


def test_of_two_that_make_the_table_one_has_chosen_for_both(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace)
    index = workspace.index(scheme="auto")
    of_the_quicker: list[int] = []

    def choose(spark: SparkSession, index: Index, say: Progress) -> Chosen:
        monkeypatch.setattr(choosing, "choose_scheme", choose_sooner)
        of_the_quicker.extend(report.slot for report in updater_of(spark, index).catch_up(0))
        return Chosen(SweepConfig(groups=2), {"why": "too late"})

    def choose_sooner(spark: SparkSession, index: Index, say: Progress) -> Chosen:
        return Chosen(SweepConfig(groups=4), {"why": "first"})

    monkeypatch.setattr(choosing, "choose_scheme", choose)
    of_the_slower = [report.slot for report in updater_of(spark, index).catch_up(2)]
    assert (of_the_quicker, of_the_slower) == ([0], [1, 2])
    table = IndexTable(index)
    state = table.required_state()
    assert table.index.scheme == SweepConfig(groups=4)
    assert json.loads(state.log.properties[PROPERTY_CHOSEN]) == {"why": "first"}
    live = [slot for slot in range(-5, 3) for lifetime in (1, 1, 5) if slot + lifetime > 2]
    assert state.log.rows == len(live)
    assert {cell.e for cell in state.log.cells} <= set(range(4))


def test_a_choice_made_by_another_after_the_start_is_followed(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is there when it is first looked at, but was not when the writer began."""
    fill(workspace)
    index = workspace.index(scheme="auto")
    choosing_one, loading, going_on, rebuilding = (updater_of(spark, index) for _ in range(4))
    first = Chosen(SweepConfig(groups=4), {"why": "first"})
    monkeypatch.setattr(choosing, "choose_scheme", lambda *_: first)
    loaded: list[int] = []

    def write(*arguments: Any) -> None:
        """Until one has made the table and is to load it, another has done so."""
        monkeypatch.setattr(update, "write_commit", write_commit)
        loaded.extend(report.slot for report in loading.catch_up(0))
        write_commit(*arguments)

    monkeypatch.setattr(update, "write_commit", write)
    assert [report.slot for report in choosing_one.catch_up(1)] == [1]
    assert loaded == [0]
    assert [report.slot for report in going_on.catch_up(2)] == [2]
    assert rebuild(rebuilding).slot == 2
    for one in (choosing_one, loading, going_on, rebuilding):
        assert one.index.scheme == first.scheme
        assert one.updates.index.scheme == first.scheme


def test_a_table_is_made_with_what_the_advisor_chooses(
    spark: SparkSession, workspace: Workspace
) -> None:
    fill(workspace)
    index = workspace.index(scheme={"name": "auto", "files_max": 20})
    prices = replace(USUAL, machine=machine_of(spark))
    prices.save(calibration_path(index))
    reports = list(updater_of(spark, index).catch_up(6))
    assert [report.slot for report in reports] == [0, 1, 2, 3, 4, 5, 6]
    table = IndexTable(index)
    state = table.required_state()
    scheme = table.index.scheme
    assert isinstance(scheme, SweepConfig)
    about = json.loads(state.log.properties[PROPERTY_CHOSEN])
    assert about["workload"]["rows_per_slot"] == 3
    assert about["wishes"]["files_max"] == 20
    assert status(index).scheme == scheme.build(6).label
    # Predicted and actual stand side by side.
    predicted = about["predicted"]["update_s"]
    assert [report.predicted_s for report in reports] == [None, *[predicted] * 6]
    assert state.note.predicted_s == predicted
    told = Updates(table.index).last(10)
    assert [one.predicted_s for one in told] == [None, *[predicted] * 6]
    assert all(one.seconds for one in told)
    found = drift(table.index, state)
    assert found is not None
    assert found.figures["inserted"] == pytest.approx(1.0)
    # The table's own slots are the histogram now, and its files tell the size of a row.
    workload = read_workload(spark, index)
    assert workload.rows_per_slot == pytest.approx(3)
    assert workload.bytes_per_row > 100


def test_without_rows_to_choose_by_it_is_sweep(spark: SparkSession, workspace: Workspace) -> None:
    workspace.add([row(1, -50, -49)])
    index = workspace.index(scheme="auto")
    (report,) = updater_of(spark, index).catch_up(0)
    assert report.slot == 0
    assert IndexTable(index).required_state().predicted_s is None
    assert status(index).scheme == "Sweep(6,1) without deletion vectors"


def test_limits_that_nothing_keeps_make_no_table(
    spark: SparkSession, workspace: Workspace, tmp_path: Path
) -> None:
    fill(workspace)
    index = workspace.index(scheme={"name": "auto", "update_seconds_max": 0.001})
    Calibration.save(replace(USUAL, machine=machine_of(spark)), calibration_path(index))
    with pytest.raises(UserError, match="No setting keeps all limits: --update-seconds-max"):
        list(updater_of(spark, index).catch_up(1))
    assert not workspace.table.exists()
