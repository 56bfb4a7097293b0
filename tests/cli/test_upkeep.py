"""maintain, purge, validate and rebuild --dry-run: what they say, and that they start no JVM."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.handmade import make_table, make_update, version
from tests.cli.runner import tidetable
from tests.workspace import Workspace, row
from tidetable.config import Index
from tidetable.table.history import Updates


@pytest.fixture
def index(workspace: Workspace) -> Index:
    """At slot 1; all files of slot 0 were replaced three hours ago."""
    index = make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 4)], keep_versions_for="2h")
    make_update(workspace, index, [row(3, 1, 5)], 1, overwrite=True)
    make_older(workspace, timedelta(hours=3))
    Updates(index).record()
    return index


def make_older(workspace: Workspace, by: timedelta) -> None:
    """As if all that was done to the table had been done earlier."""
    log = workspace.table / "_delta_log"
    for path in log.glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] -= int(by.total_seconds() * 1000)
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    then = (datetime.now(UTC) - by).timestamp()
    for path in workspace.table.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def data_files(workspace: Workspace) -> set[Path]:
    return set(workspace.table.rglob("*.parquet"))


def test_purge_shows_and_deletes_only_when_told(workspace: Workspace, index: Index) -> None:
    before = data_files(workspace)
    shown = tidetable("purge", workspace.yaml)
    assert shown.status == 0
    assert shown.out.startswith("2 files can be deleted, ")
    assert "--yes deletes them" in shown.out
    assert "files stay for 2h after they were replaced" in shown.out
    assert data_files(workspace) == before

    gone = tidetable("purge", workspace.yaml, "--yes")
    assert gone.out.startswith("2 files deleted, ")
    assert "--yes" not in gone.out
    assert len(before - data_files(workspace)) == 2
    assert workspace.ids() == [3]
    assert tidetable("purge", workspace.yaml).out.startswith("0 files can be deleted, 0 B")


def test_purge_for_programs(workspace: Workspace, index: Index) -> None:
    (shown,) = tidetable("purge", workspace.yaml, "--json").objects
    (gone,) = tidetable("purge", workspace.yaml, "--yes", "--json").objects
    assert list(shown) == ["files", "bytes", "paths", "retention", "skipped", "deleted"]
    assert (shown.pop("deleted"), gone.pop("deleted")) == (False, True)
    assert shown == gone
    assert shown["files"] == len(shown["paths"]) == 2


def test_maintain_does_nothing_before_it_is_due(workspace: Workspace, index: Index) -> None:
    before = data_files(workspace)
    found = tidetable("maintain", workspace.yaml)
    assert (found.status, found.out) == (0, "things, slot 1: nothing is due\n")
    (found_json,) = tidetable("maintain", workspace.yaml, "--json").objects
    assert found_json == {"index": "things", "slot": 1, "due": [], "done": False}
    assert data_files(workspace) == before


def test_maintain_says_what_is_due(workspace: Workspace, index: Index) -> None:
    before = data_files(workspace)
    Updates(index).set_mark("maintained", -11)
    for options in ([], ["--purge"], ["--force", "--purge"]):
        found = tidetable("maintain", workspace.yaml, *options, "--dry-run")
        assert found.out.splitlines()[0] == (
            "things, slot 1: 12 updates since the last maintenance; it is due after 12"
        )
        assert "2 files can be deleted" in found.out
        assert "table/_g=0/" in found.out
    (found_json,) = tidetable("maintain", workspace.yaml, "--dry-run", "--json").objects
    assert (found_json["done"], found_json["deletable_files"]) == (False, 2)
    assert len(found_json["paths"]) == 2
    assert data_files(workspace) == before


def test_maintain_deletes_no_file_unless_told(workspace: Workspace, index: Index) -> None:
    before = data_files(workspace)
    Updates(index).set_mark("maintained", -11)
    found = tidetable("maintain", workspace.yaml)
    assert "checkpoints: " in found.out
    assert "2 files can be deleted" in found.out
    assert "--purge deletes them" in found.out
    assert before <= data_files(workspace)
    # What is left to do stays due.
    (gone,) = tidetable("maintain", workspace.yaml, "--purge", "--json").objects
    assert (len(gone["due"]), gone["deleted_files"]) == (1, 2)
    assert len(before - data_files(workspace)) == 2
    assert tidetable("maintain", workspace.yaml, "--purge").out.endswith("nothing is due\n")


def test_maintain_forced(workspace: Workspace, index: Index) -> None:
    found = tidetable("maintain", workspace.yaml, "--force", "--purge")
    assert "2 files deleted" in found.out
    assert "checkpoints: table, table_updates" in found.out
    assert workspace.ids() == [3]
    # What was deleted had been announced in the table's log; nothing is left to announce.
    for checkpoints in (["table", "table_updates"], ["table_updates"]):
        (again,) = tidetable("maintain", workspace.yaml, "--force", "--purge", "--json").objects
        assert (again["done"], again["deleted_files"], again["checkpoints"]) == (
            True, 0, checkpoints
        )  # fmt: skip


@pytest.mark.parametrize("command", ["maintain", "purge", "rebuild", "validate"])
def test_without_a_table_they_say_how_to_make_one(workspace: Workspace, command: str) -> None:
    workspace.describe()
    found = tidetable(command, workspace.yaml)
    assert found.status == 2
    assert "has no table yet" in found.sentence


def test_a_rebuild_can_be_looked_at_first(workspace: Workspace, index: Index) -> None:
    before = version(workspace)
    found = tidetable("rebuild", workspace.yaml, "--dry-run")
    assert found.sentence.startswith("Would write 1 row again: 1 file in 1 cell, ")
    (found_json,) = tidetable("rebuild", workspace.yaml, "--dry-run", "--json").objects
    assert list(found_json) == ["slot", "cells", "rows", "files", "bytes"]
    assert (found_json["slot"], found_json["rows"]) == (1, 1)
    assert version(workspace) == before


@pytest.mark.slow  # imports Great Expectations
def test_validate_tells_and_leaves_a_report(workspace: Workspace, index: Index) -> None:
    reports = workspace.folder / "reports"
    found = tidetable("validate", workspace.yaml, "--json", TIDETABLE_REPORTS=str(reports))
    (outcome,) = found.objects
    assert (outcome["index"], outcome["slot"]) == ("things", 1)
    assert Path(outcome["report"]).is_relative_to(reports)
    assert Path(outcome["report"]).exists()
    assert found.status == (0 if outcome["success"] else 2)


@pytest.mark.slow  # imports Great Expectations
def test_validate_fails_when_an_update_is_missing(workspace: Workspace, index: Index) -> None:
    reports = workspace.folder / "reports"
    found = tidetable("validate", workspace.yaml, "--due-slot", 2, TIDETABLE_REPORTS=str(reports))
    assert found.status == 2
    assert "failed" in found.sentence
