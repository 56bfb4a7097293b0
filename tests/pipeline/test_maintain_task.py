"""Maintenance is seldom due; a run in which it is not must look like a good run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.page.pages import Project
from tests.pipeline.tasks import logged
from tests.workspace import row

pytestmark = pytest.mark.slow  # Airflow takes seconds to import


def maintained(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[str]]:
    """The task's result, and what it has logged."""
    from tidetable.pipeline.tasks import Maintain

    said = logged(monkeypatch, Maintain)
    task = Maintain(task_id="maintain", index_name="things")
    return task.execute({}), said  # type: ignore[typeddict-item]


def test_a_maintenance_that_is_not_due_succeeds_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project(tmp_path).make("things", [row(1, 0, 5)])
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    result, said = maintained(monkeypatch)
    assert (result["done"], result["due"]) == (False, [])
    assert "Not due at slot 0: nothing was done." in said


def test_a_maintenance_that_is_due_says_why_and_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project(tmp_path).make("things", [row(1, 0, 5)])
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    monkeypatch.setattr("tidetable.table.upkeep.COMMITS_MAX", 0)
    result, said = maintained(monkeypatch)
    assert result["done"] is True
    assert any(line.startswith("due: 1 commits of table") for line in said), said
