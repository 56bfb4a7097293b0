"""`scheme: auto` before and after the table is made, and drift: all without a JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.advisor.test_search import USUAL
from tests.cli.handmade import make_table
from tests.cli.runner import tidetable
from tests.workspace import Workspace, row
from tidetable.advisor.drift import _falling, compared, drift, workload_now
from tidetable.config import AutoConfig, Index
from tidetable.core.errors import UserError
from tidetable.table.history import Turn, Updates
from tidetable.table.history_row import SCHEMA, UpdateRow
from tidetable.table.place import updates_path
from tidetable.table.state import PROPERTY_CHOSEN, IndexTable, resolved

# Each slot has a row of every lifetime: the forecast falls from slot to slot.
ROWS = [
    row(10 * came + life, arrived=-came + 0.0, expires=-came + life)
    for came in range(6)
    for life in range(came + 1, 7)
]


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("This must not start Spark.")

    monkeypatch.setattr("tidetable.cli.running.start_spark", started)


def chosen(**predicted: float) -> dict[str, Any]:
    usual = {"update_s": 2.0, "rows_written": 12.0}
    return {
        "why": "it is",
        "predicted": {**usual, **predicted},
        "workload": {"rows_per_slot": 6.0, "live_rows": 21},
        "wishes": {"probes_per_update": 10, "scans_per_update": 1},
        "calibration": asdict(USUAL),
    }


def made(workspace: Workspace, about: Mapping[str, Any] | None = None) -> Index:
    """A table that was made with three groups of Sweep, and a YAML that says auto."""
    make_table(workspace, ROWS)
    first = workspace.table / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "metaData" in action and about is not None:
            action["metaData"]["configuration"][PROPERTY_CHOSEN] = json.dumps(about)
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return workspace.index(scheme="auto")


# -- the YAML --------------------------------------------------------------------------------------


def test_auto_is_a_word_or_a_mapping(workspace: Workspace) -> None:
    assert workspace.index(scheme="auto").scheme == AutoConfig()
    asked = {"name": "auto", "probes_per_update": 3, "purge_within": "2h"}
    found = workspace.index(scheme=asked).scheme
    assert isinstance(found, AutoConfig)
    assert found.probes_per_update == 3


def test_a_wish_that_is_none_is_named(workspace: Workspace) -> None:
    workspace.describe(scheme={"name": "auto", "probes": 3})
    found = tidetable("check", workspace.yaml, "--yaml-only")
    assert found.status == 2
    assert "scheme.probes: unknown field; allowed are name, probes_per_update" in found.err


# -- before the table is made ----------------------------------------------------------------------


def test_before_the_table_is_made_nothing_is_chosen(workspace: Workspace) -> None:
    workspace.describe(scheme="auto")
    found = tidetable("check", workspace.yaml, "--yaml-only")
    assert found.status == 0
    assert "auto, not chosen yet" in found.out


def test_before_the_table_is_made_only_the_load_can_be_planned(workspace: Workspace) -> None:
    workspace.describe(scheme="auto")
    assert "There is no table yet" in tidetable("plan", workspace.yaml).out
    later = tidetable("plan", workspace.yaml, "--slot", "3")
    assert later.status == 2
    assert "not chosen yet" in later.err


# -- after it is made ------------------------------------------------------------------------------


def test_the_scheme_is_what_the_table_was_made_with(workspace: Workspace) -> None:
    index = made(workspace)
    assert resolved(index) == workspace.index()
    workspace.index(scheme="auto")
    assert "Sweep(3,1)" in tidetable("status", workspace.yaml).out
    assert tidetable("plan", workspace.yaml).status == 0
    assert tidetable("scan", workspace.yaml, "--count").out.startswith("21 rows")


def test_a_named_scheme_is_not_looked_up(workspace: Workspace) -> None:
    index = workspace.index()
    assert resolved(index) is index


def test_what_else_has_changed_is_still_refused(workspace: Workspace) -> None:
    made(workspace)
    with pytest.raises(UserError, match="longest_lifetime was"):
        IndexTable(workspace.index(scheme="auto", longest_lifetime="50m")).log()


# -- advise ----------------------------------------------------------------------------------------


def test_a_calibration_that_is_not_there_is_told_before_spark_starts(workspace: Workspace) -> None:
    workspace.describe()
    found = tidetable("advise", workspace.yaml, "--calibration", "none.json")
    assert found.status == 2
    assert "there is no file none.json" in found.err


def test_a_duration_that_is_none_is_told_before_spark_starts(workspace: Workspace) -> None:
    workspace.describe()
    found = tidetable("advise", workspace.yaml, "--purge-within", "soon")
    assert found.status == 2
    assert "--purge-within: 'soon' is not a duration" in found.err


# -- drift -----------------------------------------------------------------------------------------


def update_row(slot: int, **changes: Any) -> UpdateRow:
    usual: dict[str, Any] = {
        "index": "things", "slot": slot, "as_of": None, "committed_at": None, "version": slot,
        "kind": "update", "read": 6, "inserted": 6, "expired": 6, "dead_on_arrival": 0,
        "quarantined": 0, "live": 21, "late": 0, "missing": 0, "rewritten_rows": 6,
        "written_bytes": 1, "files": 6, "bytes": 1, "cells": 3, "imbalance": 1.0, "seconds": 2.0,
        "reasons": {}, "touched": [], "checks": None,
    }  # fmt: skip
    return UpdateRow(**usual | changes)


def updated(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    rows = [update_row(slot, **changes) for slot in range(1, 7)]
    monkeypatch.setattr(Updates, "last", lambda self, number: rows[-number:])


def test_what_the_advisor_did_not_choose_does_not_drift(workspace: Workspace) -> None:
    index = made(workspace)
    assert drift(index, IndexTable(index).required_state()) is None


def test_as_predicted_is_no_drift(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    index = made(workspace, chosen())
    updated(monkeypatch)
    found = drift(resolved(index), IndexTable(index).required_state())
    assert found is not None
    assert found.sentences == ()
    assert found.figures == {"inserted": 1.0, "seconds": 1.0}
    assert "drift" not in tidetable("status", workspace.yaml).out


def test_a_slower_machine_is_to_be_measured_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(workspace, chosen())
    updated(monkeypatch, seconds=5.0)
    found = tidetable("status", workspace.yaml).out
    assert "drift: Updates take 2.5 times the time" in found
    assert f"tidetable advise {workspace.yaml} --recalibrate" in found


def test_other_rows_are_searched_for_another_setting(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(workspace, chosen())
    updated(monkeypatch, inserted=18)
    (found,) = tidetable("status", workspace.yaml, "--json").objects
    assert found["drift"]["sentences"] == [
        "Updates insert 3 times the rows that the advisor reckoned with."
    ]
    # Twenty rows want no more than one cell: a file costs more than writing all of them again.
    assert found["drift"]["better"] is None or found["drift"]["better"]["name"] == "sweep"
    assert found["drift"]["advice"]


def test_written_and_live_rows_count_once_the_window_is_full() -> None:
    rows = [update_row(1, rewritten_rows=30, live=63)]
    found = compared(chosen(), rows, full=True)
    assert found == {"inserted": 1.0, "seconds": 1.0, "written": 3.0, "live": 3.0}


def test_the_forecast_tells_the_lifetimes(workspace: Workspace) -> None:
    index = made(workspace)
    workload = workload_now(resolved(index), IndexTable(index).required_state())
    assert workload is not None
    assert workload.lifetimes == (1.0,) * 6


def test_a_forecast_that_rises_is_evened_out() -> None:
    assert _falling([5, 1, 3, 2]) == [5, 2, 2, 2]
    assert _falling([1, 2, 3]) == [2, 2, 2]


def test_a_table_of_updates_of_an_older_version_gets_its_columns(workspace: Workspace) -> None:
    index = make_table(workspace, ROWS)
    added = ("predicted_s", "folders", "against_source")
    old = pa.schema([field for field in SCHEMA if field.name not in added])
    DeltaTable.create(updates_path(index), old)
    assert Updates(index).last(1) == []
    assert Updates(index).turns(1) == []
    assert Updates(index).record() == 1
    (row,) = Updates(index).last(5)
    assert row.kind == "load"
    assert (row.predicted_s, row.folders, row.against_source) == (None, None, None)
    assert Updates(index).turns(5) == [Turn(0, "load", row.read, 0)]
