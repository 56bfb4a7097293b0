"""Maintenance is seldom due; a run in which it is not must look like a good run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.page.pages import Project
from tests.pipeline.tasks import logged
from tests.workspace import row

pytestmark = pytest.mark.slow  # Airflow takes seconds to import


def maintained(
    monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> tuple[dict[str, Any], list[str]]:
    """The task's result, and what it has logged."""
    from tidetable.pipeline.tasks import Maintain

    said = logged(monkeypatch, Maintain)
    task = Maintain(task_id="maintain", index_name="things", **settings)
    return task.execute({}), said  # type: ignore[typeddict-item]


def test_a_maintenance_that_is_not_due_succeeds_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project(tmp_path).make("things", [row(1, 0, 5)])
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    result, said = maintained(monkeypatch)
    assert (result["done"], result["due"]) == (False, [])
    # The first is Airflow's remark that this is no task runner.
    assert said[1:] == ["things, slot 0: nothing is due", "Nothing was done."]


def test_a_maintenance_that_is_due_says_why_and_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project(tmp_path).make("things", [row(1, 0, 5)])
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    monkeypatch.setattr("tidetable.table.upkeep.COMMITS_MAX", 0)
    result, said = maintained(monkeypatch)
    assert result["done"] is True
    assert said[1].startswith("things, slot 0: 1 commits of table"), said
    assert "0 files deleted, 0 B" in said


def test_by_hand_it_is_done_due_or_not_and_deletes_only_what_is_ticked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path)
    project.make("things", [row(1, 0, 5)])
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    # As the form's templates give the boxes.
    shown, said = maintained(monkeypatch, force=True, delete="False", dry_run="True")
    assert shown["done"] is False
    assert said[-1] == "Nothing was done."
    done, said = maintained(monkeypatch, force=True, delete="False", dry_run="False")
    assert (done["done"], done["deletable_files"]) == (True, 0)
    assert "0 files can be deleted, 0 B" in said
    gone, said = maintained(monkeypatch, force=True, delete="True", dry_run="False")
    assert (gone["done"], gone["deleted_files"]) == (True, 0)
