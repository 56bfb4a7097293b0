"""A probe by hand: what it leaves in Airflow outlives the rows, so it leaves none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.page.pages import Project
from tests.pipeline.tasks import logged
from tests.workspace import row

pytestmark = pytest.mark.slow  # Airflow takes seconds to import


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    made.make("things", [row(4711, 0, 2, "k1"), row(4712, 0, 3, "k1"), row(4713, 0, 3, "k2")])
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    return made


def probed(monkeypatch: pytest.MonkeyPatch, **form: Any) -> tuple[dict[str, Any], str]:
    """The task's result, and all that it has logged."""
    from tidetable.pipeline.tasks import Probe

    said = logged(monkeypatch, Probe)
    task = Probe(task_id="probe", index_name="things", **form)
    return task.execute({}), "\n".join(said)  # type: ignore[typeddict-item]


def test_it_leaves_a_count_and_no_row(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    result, log = probed(monkeypatch, key="k1", rows_in_log="False")
    assert result == {
        "live_rows": 2, "slot": 0, "as_of": "2024-03-01T00:00:00Z", "cut": False,
    }  # fmt: skip
    assert "2 live rows as of 2024-03-01T00:00:00Z (slot 0)" in log
    assert "page of the index" in log
    assert "471" not in log
    assert "k1" not in log


def test_rows_go_into_the_log_if_the_box_is_ticked(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, log = probed(monkeypatch, key="k1", rows_in_log="True")
    assert result["live_rows"] == 2
    assert "rows" not in result
    lines = [line.split() for line in log.splitlines()]
    assert ["id", "=", "4711"] in lines
    assert ["id", "=", "4712"] in lines
    assert "4713" not in log
    columns = ["id", "key", "arrived_at", "inserted_at", "expires_at",
               "_insertion_slot", "_expiration_slot"]  # fmt: skip
    first = lines.index(["row", "1"])
    assert [line[0] for line in lines[first + 1 : lines.index(["row", "2"])]] == columns


def test_no_key_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="no key was given"):
        probed(monkeypatch, key="")
