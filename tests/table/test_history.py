"""The table of updates: a row for each commit, each once, whoever writes it and whenever."""

from __future__ import annotations

import json
import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.handmade import make_table, make_update
from tests.steady import rows_of_every_slot
from tests.workspace import Workspace, at, read_table, row
from tidetable.config import Index
from tidetable.table import history as module
from tidetable.table.history import Updates
from tidetable.table.history_row import UpdateRow
from tidetable.table.log import open_log
from tidetable.table.place import updates_path
from tidetable.table.report import UpdateReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def index(workspace: Workspace) -> Index:
    """Loaded with three rows, and not recorded yet."""
    return make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 4), row(3, 0, 4.5)])


def report(version: int, **changes: Any) -> UpdateReport:
    figures: dict[str, Any] = {
        "slot": 1, "as_of": "", "inserted": 1, "expired": 0, "dead_on_arrival": 0,
        "quarantined": 0, "live": 4, "rewritten_rows": 0, "written_bytes": 7, "cells": 1,
        "seconds": 1.5, "version": version,
    }  # fmt: skip
    return UpdateReport(**figures | changes)


# -- what a row says -----------------------------------------------------------------------------


def test_before_the_first_update_there_is_none(workspace: Workspace) -> None:
    index = workspace.index()
    assert Updates(index).last(10) == []
    assert Updates(index).record() == 0
    assert not Path(updates_path(index)).exists()


def test_the_row_of_a_load(workspace: Workspace, index: Index) -> None:
    assert Updates(index).record() == 1
    (found,) = Updates(index).last(10)
    log = open_log(index.table)
    assert log is not None
    assert (found.index, found.slot, found.as_of, found.version) == ("things", 0, at(0), 0)
    assert (found.kind, found.read, found.inserted, found.live) == ("load", 3, 3, 3)
    assert (found.rewritten_rows, found.written_bytes) == (0, found.bytes)
    assert (found.files, found.cells) == (len(log.files), len(log.cells))
    assert found.bytes == sum(file.bytes for file in log.files)
    assert found.imbalance == max(c.rows for c in log.cells.values()) * 3 / 3
    assert (found.seconds, found.checks, found.reasons) == (None, None, {})
    assert [(one["g"], one["e"], one["action"]) for one in found.touched] == [
        (cell.g, cell.e, "load") for cell in log.cells
    ]


def test_the_time_is_that_of_the_commit(workspace: Workspace, index: Index) -> None:
    Updates(index).record()
    (found,) = Updates(index).last(1)
    first = (workspace.table / "_delta_log" / f"{0:020d}.json").read_text()
    (info,) = [json.loads(line) for line in first.splitlines() if "commitInfo" in line]
    assert found.committed_at.timestamp() * 1000 == info["commitInfo"]["timestamp"]


def test_a_report_knows_what_the_log_does_not(workspace: Workspace, index: Index) -> None:
    Updates(index).record()
    version = make_update(workspace, index, [row(4, 1, 5)], 1)
    touched = [{"g": 0, "e": 1, "action": "append", "why": "takes new rows"}]
    told = report(version, missing=2, touched=touched, checks={"rows": 4, "expired": 0})
    assert Updates(index).record([told]) == 1
    found = Updates(index).last(1)[0]
    assert (found.seconds, found.missing, found.written_bytes) == (1.5, 2, 7)
    assert found.checks == {"rows": 4, "expired": 0}
    assert found.touched == touched


def test_a_row_for_programs(index: Index) -> None:
    Updates(index).record()
    (found,) = Updates(index).last(1)
    names = [field.name for field in fields(UpdateRow)]
    data = found.as_json()
    assert list(data) == names
    assert json.loads(json.dumps(data)) == data
    assert data["as_of"] == "2024-03-01T00:00:00Z"
    lists = {"reasons", "touched", "checks", "folders", "against_source"}
    assert {*names} - {*found.figures()} == lists


def test_anybody_can_read_the_table(index: Index) -> None:
    Updates(index).record()
    (stored,) = read_table(updates_path(index))
    assert list(stored) == [field.name for field in fields(UpdateRow)]
    assert json.loads(stored["touched"])[0]["action"] == "load"


# -- each once -----------------------------------------------------------------------------------


def test_repeated_it_adds_nothing(index: Index) -> None:
    assert [Updates(index).record() for _ in range(3)] == [1, 0, 0]
    assert len(Updates(index).last(10)) == 1


def test_what_was_not_recorded_is_made_up_for(workspace: Workspace, index: Index) -> None:
    """Two commits whose writers died right after them, and a third one."""
    Updates(index).record()
    for slot in (1, 2, 3):
        version = make_update(workspace, index, [row(10 + slot, slot, slot + 2)], slot)
    assert Updates(index).record([report(version, slot=3)]) == 3
    found = Updates(index).last(10)
    assert [(one.slot, one.seconds) for one in found] == [(0, None), (1, None), (2, None), (3, 1.5)]
    assert [(one.inserted, one.live, one.files) for one in found[1:]] == [
        (1, 4, found[0].files + 1), (1, 5, found[0].files + 2), (1, 6, found[0].files + 3)
    ]  # fmt: skip


def test_it_makes_up_for_so_many_and_no_more(
    workspace: Workspace, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEALED_MAX", 2)
    for slot in (1, 2, 3):
        make_update(workspace, index, [row(10 + slot, slot, slot + 2)], slot)
    assert Updates(index).record() == 2
    assert [one.slot for one in Updates(index).last(10)] == [2, 3]


def test_commits_of_others_get_no_row(workspace: Workspace, index: Index) -> None:
    Updates(index).record()
    log = open_log(index.table)
    assert log is not None
    log.table.alter.set_table_description("theirs")
    assert Updates(index).record() == 0
    version = make_update(workspace, index, [row(4, 1, 5)], 1)
    assert Updates(index).record() == 1
    assert [one.version for one in Updates(index).last(10)] == [0, version]


def test_of_many_writers_at_once_each_row_comes_from_one(
    workspace: Workspace, index: Index
) -> None:
    """The first makes the table; all of them see the same commits without a row."""
    for slot in (1, 2):
        make_update(workspace, index, [row(10 + slot, slot, slot + 2)], slot)
    for expected in (3, 1, 1):
        together = Barrier(6)

        def record(together: Barrier = together) -> int:
            together.wait()
            return Updates(index).record()

        with ThreadPoolExecutor(6) as pool:
            added = [one.result() for one in [pool.submit(record) for _ in range(6)]]
        assert sum(added) == expected
        slot = Updates(index).last(1)[0].slot + 1
        make_update(workspace, index, [row(20 + slot, slot, slot + 2)], slot)
    assert [one.slot for one in Updates(index).last(10)] == [0, 1, 2, 3, 4]


def test_a_table_made_anew_begins_a_new_history(workspace: Workspace, index: Index) -> None:
    for slot in (1, 2):
        make_update(workspace, index, [row(10 + slot, slot, slot + 2)], slot)
    Updates(index).record()
    shutil.rmtree(workspace.table)
    again = make_table(workspace, [row(7, 0, 3)])
    assert Updates(again).record() == 1
    assert [(one.slot, one.live) for one in Updates(again).last(10)] == [(0, 1)]
    assert Updates(again).record() == 0


def test_an_older_copy_put_back_begins_a_new_history(workspace: Workspace, index: Index) -> None:
    copy = workspace.folder / "copy"
    shutil.copytree(workspace.table, copy)
    make_update(workspace, index, [row(11, 1, 3)], 1)
    Updates(index).record()
    shutil.rmtree(workspace.table)
    copy.rename(workspace.table)
    assert Updates(index).record() == 1
    assert [one.slot for one in Updates(index).last(10)] == [0]


# -- its size ------------------------------------------------------------------------------------


@pytest.fixture
def history(workspace: Workspace, index: Index) -> Index:
    """Six rows in six files."""
    Updates(index).record()
    for slot in range(1, 6):
        make_update(workspace, index, [row(10 + slot, slot, slot + 2)], slot)
        Updates(index).record()
    return index


def test_the_last_rows_are_found_without_reading_the_others(
    history: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    found = module.lowest_of_newest

    def lowest(*arguments: Any) -> int | None:
        asked.append(found(*arguments))
        return asked[-1]

    monkeypatch.setattr(module, "lowest_of_newest", lowest)
    assert [one.slot for one in Updates(history).last(2)] == [4, 5]
    assert [one.slot for one in Updates(history).last(100)] == [0, 1, 2, 3, 4, 5]
    assert asked == [4, 0]


@pytest.mark.parametrize("number", [0, -1])
def test_no_rows_asked_for(history: Index, number: int) -> None:
    assert Updates(history).last(number) == []


def test_small_files_are_merged(history: Index) -> None:
    updates = Updates(history)
    before = updates.last(10)
    assert updates.files == 6
    assert updates.tidy(merge_above=6)["merged_files"] == 0
    assert updates.tidy(merge_above=5)["merged_files"] == 6
    assert updates.files == 1
    assert updates.last(10) == before
    assert [one.slot for one in updates.last(2)] == [4, 5]
    assert updates.record() == 0


def test_where_nobody_maintains_it_it_merges_its_files_itself(
    workspace: Workspace, history: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILES_MAX", 2)
    monkeypatch.setattr(Updates.tidy, "__kwdefaults__", {"merge_above": 2})
    make_update(workspace, history, [row(30, 6, 8)], 6)
    assert Updates(history).record() == 1
    assert Updates(history).files == 1
    assert len(Updates(history).last(10)) == 7


def test_of_too_many_rows_the_oldest_go(history: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_MAX", 4)
    assert Updates(history).tidy()["dropped_rows"] == 2
    assert [one.slot for one in Updates(history).last(10)] == [2, 3, 4, 5]
    assert Updates(history).tidy()["dropped_rows"] == 0


def test_rows_long_before_the_newest_go(workspace: Workspace, history: Index) -> None:
    """By the times of the commits, not by the clock."""
    log = workspace.table / "_delta_log"
    shutil.rmtree(updates_path(history))
    for version, days in {0: 200, 1: 91, 2: 89}.items():
        path = log / f"{version:020d}.json"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] -= days * 24 * 3600 * 1000
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert Updates(history).record() == 6
    assert Updates(history).tidy()["dropped_rows"] == 2
    assert [one.slot for one in Updates(history).last(10)] == [2, 3, 4, 5]


def test_marks_are_kept_beside_the_rows(history: Index) -> None:
    updates = Updates(history)
    assert updates.mark("swept") is None
    updates.set_mark("swept", 5)
    updates.set_mark("swept", 3)
    assert (updates.mark("swept"), updates.mark("other")) == (3, None)
    assert len(updates.last(100)) == 6


# -- with Spark ----------------------------------------------------------------------------------


def test_the_log_tells_what_the_writer_told(spark: SparkSession, workspace: Workspace) -> None:
    """Updates, a fold and a replay; then all rows are lost and made anew from the log."""
    from tidetable.engine.replay import replay
    from tidetable.engine.updater import Updater

    workspace.add(rows_of_every_slot())
    # All kinds of actions: rows are appended to its log, marked in it, and swept out of it.
    scheme = {"name": "sweep", "groups": 3, "deletion_vectors": True}
    index = workspace.index(scheme=scheme, quality={"bad_rows_max": "100%", "check_rows_every": 4})
    updater = Updater(spark, index)
    reports = [*updater.catch_up(2), *updater.catch_up(4, fold=True), *replay(updater, 3)]
    told = Updates(index).last(100)
    assert [(one.kind, one.slot) for one in told] == [
        ("load", 0), ("update", 1), ("update", 2), ("update", 4), ("restore", 2), ("update", 3),
        ("update", 4),
    ]  # fmt: skip
    assert [one.slot for one in told if one.checks is not None] == [0, 4, 4]
    assert [(one.seconds, one.version) for one in told if one.kind != "restore"] == [
        (report.seconds, report.version) for report in reports
    ]
    shutil.rmtree(updates_path(index))
    assert Updates(index).record() == len(told)
    for ours, theirs in zip(Updates(index).last(100), told, strict=True):
        assert without_secrets(ours) == without_secrets(theirs)
        if ours.kind != "restore":
            assert actions(ours).items() <= {*actions(theirs).items(), *parts(theirs)}


def without_secrets(row: UpdateRow) -> dict[str, Any]:
    """All that is in the log: not the time it took, what was checked, or what was only planned."""
    return row.as_json() | dict.fromkeys(["seconds", "checks", "touched", "cells"])


def actions(row: UpdateRow) -> dict[tuple[int, int], str]:
    return {(one["g"], one["e"]): one["action"] for one in row.touched}


def parts(row: UpdateRow) -> set[tuple[tuple[int, int], str]]:
    """A cell can be planned to take rows and to lose some, and do only one of it in the end."""
    both = [cell for cell, what in actions(row).items() if what == "append+expire"]
    return {(cell, what) for cell in both for what in ("append", "expire")}


def test_a_check_counts_the_rows_of_its_own_version(
    spark: SparkSession, workspace: Workspace
) -> None:
    from tidetable.engine.updater import Updater

    workspace.add(rows_of_every_slot())
    quality = {"bad_rows_max": "100%", "check_rows_every": 3}
    reports = list(Updater(spark, workspace.index(quality=quality)).catch_up(4))
    assert [report.checks is not None for report in reports] == [True, False, False, True, False]
    for report in reports:
        if report.checks is not None:
            assert report.checks["rows"] == report.live
            assert report.checks["expired"] == 0


def test_a_table_of_updates_that_cannot_be_written_stops_no_update(
    spark: SparkSession, workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    from tidetable.engine.updater import Updater

    workspace.add(rows_of_every_slot())
    index = workspace.index()
    Path(updates_path(index)).write_text("in the way")
    with caplog.at_level(logging.WARNING):
        assert [one.slot for one in Updater(spark, index).catch_up(1)] == [0, 1]
    assert "the next update makes up for it" in caplog.text
    Path(updates_path(index)).unlink()
    list(Updater(spark, index).catch_up(2))
    assert [one.slot for one in Updates(index).last(10)] == [0, 1, 2]
