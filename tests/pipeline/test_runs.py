"""Runs of the DAGs, task by task, as `dag.test()` does them: real tasks, real Spark, real Delta."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.project import Project
from tests.steady import expected, rows_of_every_slot
from tests.workspace import at, row
from tidetable.table.log import open_log

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("airflow_database")]

Parse = Callable[[], "DagBag"]


class Runs:
    """Runs DAGs of one project and says what became of the tasks."""

    def __init__(self, parse: Parse) -> None:
        self._parse = parse

    def interval(self, slot: int, name: str = "things") -> dict[str, str]:
        """The scheduled DAG for the interval of one slot."""
        return self._run(f"tidetable__{name}", logical_date=at(slot))

    def by_hand(self, dag_id: str, **params: Any) -> dict[str, str]:
        return self._run(dag_id, logical_date=None, run_conf=params)

    def result(self, task_id: str) -> Any:
        """What the task of the last run returned."""
        return self._last.get_task_instance(task_id).xcom_pull(task_ids=task_id)

    def _run(self, dag_id: str, **how: Any) -> dict[str, str]:
        dag = self._parse().dags[dag_id]
        for task in dag.tasks:
            task.retries = 0
        self._last = dag.test(**how)
        return {one.task_id: str(one.state) for one in self._last.get_task_instances()}


@pytest.fixture
def runs(bag: Parse) -> Runs:
    return Runs(bag)


def test_an_interval_through_spark_submit(
    project: Project, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One application, one commit for the slot; plan, validation, asset and table of updates."""
    connection = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    project.add(rows_of_every_slot())
    project.describe(engine="submit")
    states = runs.interval(1)
    assert states == {
        "plan": "success", "update": "success", "validate": "success", "maintain": "success",
    }  # fmt: skip
    assert runs.result("maintain")["done"] is False
    plan = runs.result("plan")
    assert (plan["slot"], plan["stands_at"], plan["missing"]) == (1, None, 0)
    assert [(one["kind"], one["slot"]) for one in runs.result("update")] == [
        ("load", 0), ("update", 1),
    ]  # fmt: skip
    assert runs.result("update")[1]["touched"]
    assert project.ids() == expected(1)
    assert runs.result("validate")["figures"]["live"] == len(expected(1))
    assert project.reports.joinpath("things", "site", "index.html").is_file()


def by_hand(runs: Runs, action: str, **form: object) -> set[str]:
    """What the form of the index did: the tasks that ran, all of which succeeded."""
    states = runs.by_hand("tidetable__things-by-hand", action=action, **form)
    assert set(states.values()) <= {"success", "skipped"}, states
    return {task for task, state in states.items() if state == "success"} - {"choose"}


def test_the_life_of_an_index_through_spark_connect(
    project: Project, runs: Runs, connect_server: str
) -> None:
    """Scheduled intervals, one left out, one twice; then every form."""
    project.add(rows_of_every_slot())
    project.describe(engine="connect")
    assert runs.interval(1)["validate"] == "success"

    assert runs.interval(3)["validate"] == "success"
    assert runs.result("plan")["missing"] == 1
    assert [one["slot"] for one in runs.result("update")] == [2, 3]
    assert project.ids() == expected(3)

    assert runs.interval(3)["validate"] == "success"
    assert runs.result("update") == []

    assert by_hand(runs, "update", until=at(5).isoformat(), fold=True) == {"update", "validate"}
    assert [one["slot"] for one in runs.result("update")] == [5]
    assert project.ids() == expected(5)

    assert by_hand(runs, "rebuild") == {"rebuild", "validate"}
    assert [one["kind"] for one in runs.result("rebuild")] == ["rebuild"]
    assert project.ids() == expected(5)

    assert by_hand(runs, "replay", from_slot=2, dry_run=True) == {"replay", "validate"}
    assert runs.result("replay") == []
    assert by_hand(runs, "replay", from_slot=2) == {"replay", "validate"}
    assert [one["slot"] for one in runs.result("replay")][-1] == 5
    assert project.ids() == expected(5)

    assert by_hand(runs, "probe", key="k1") == {"probe"}
    alive = [one for one in project.stored() if one["key"] == "k1"]
    assert alive
    # A count, and no row: XCom would keep it after it has expired.
    found = runs.result("probe")
    assert set(found) == {"live_rows", "slot", "as_of", "cut"}
    assert found["live_rows"] == len(alive)

    assert by_hand(runs, "maintain") == {"maintain"}
    done = runs.result("maintain")
    assert done["done"] is True
    assert "deletable_files" in done
    assert "deleted_files" not in done  # the box was not ticked


def test_a_wrong_table_stops_the_next_update_until_it_is_mended(
    project: Project, runs: Runs, connect_server: str
) -> None:
    """A lost row is seen; nothing is written on top of it; a replay puts it right."""
    from deltalake import DeltaTable

    project.add(rows_of_every_slot())
    project.describe(engine="connect")
    assert runs.interval(2)["validate"] == "success"
    DeltaTable(str(project.table)).delete(f"id = {expected(2)[0]}")
    lost = project.ids()

    states = runs.interval(3)
    assert (states["plan"], states["update"]) == ("failed", "upstream_failed")
    latest = json.loads(project.reports.joinpath("things", "latest.json").read_text())
    assert latest["success"] is False
    assert project.ids() == lost

    assert by_hand(runs, "replay", from_slot=2) == {"replay", "validate"}
    assert project.ids() == expected(2)
    assert set(runs.interval(3).values()) == {"success"}
    assert project.ids() == expected(3)


def test_too_many_bad_rows_fail_the_update_at_once(
    project: Project, runs: Runs, connect_server: str
) -> None:
    project.add([*rows_of_every_slot(), row(99, 0.5, 4, key="")])
    project.describe(engine="connect", quality={"bad_rows_max": 0})
    states = runs.interval(1)
    assert (states["update"], states["validate"]) == ("failed", "upstream_failed")
    assert project.ids() == expected(0)


def test_the_same_interval_twice_at_once_makes_one_commit(
    project: Project, runs: Runs, connect_server: str, tmp_path: Path
) -> None:
    """Two Airflows that know nothing of each other: only the Delta commit can decide."""
    project.add(rows_of_every_slot())
    project.describe(engine="connect")
    assert runs.interval(1)["validate"] == "success"
    both = [_another_airflow(tmp_path / name, slot=2) for name in ("one", "other")]
    for process, told in both:
        assert process.wait(timeout=200) == 0, told.read_text()[-3000:]
    log = open_log(str(project.table))
    assert log is not None
    assert [note.slot for _, note in log.notes()] == [2, 1, 0]
    assert project.ids() == expected(2)


def _another_airflow(home: Path, slot: int) -> tuple[subprocess.Popen[str], Path]:
    """`airflow dags test` of one interval in a home of its own, with a copy of the database."""
    home.mkdir()
    shutil.copy(Path(os.environ["AIRFLOW_HOME"]) / "airflow.db", home)
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
    }
    command = ["airflow", "dags", "test", "tidetable__things", at(slot).isoformat()]
    told = home / "output.log"
    with told.open("w") as output:
        process = subprocess.Popen(
            [Path(sys.executable).with_name(command[0]), *command[1:]],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
    return process, told
