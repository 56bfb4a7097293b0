"""The DAGs that Airflow sees: two for each index, and an error for a broken YAML."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.conftest import ROOT
from tests.pipeline.project import Project
from tests.workspace import at

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

pytestmark = pytest.mark.slow  # Airflow takes seconds to import

Parse = Callable[[], "DagBag"]

BY_HAND = "tidetable__things-by-hand"
FORM = {
    "action", "until", "fold", "from_slot", "from_source", "dry_run", "key", "alive_at",
    "rows_in_log", "delete",
}  # fmt: skip


def test_an_index_becomes_a_dag(project: Project, bag: Parse) -> None:
    project.describe(end=at(8).isoformat(), description="Things that go away.")
    found = bag()
    assert found.import_errors == {}
    dag = found.dags["tidetable__things"]
    assert dag.description == "Things that go away."
    assert (dag.start_date, dag.end_date) == (at(0), at(7))
    assert (dag.catchup, dag.max_active_runs) == (True, 1)
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == {
        "plan": {"update"},
        "update": {"validate"},
        "validate": {"maintain"},
        "maintain": set(),
    }
    (asset,) = dag.get_task("validate").outlets
    assert asset.name == "tidetable__things"


def test_data_intervals_are_slots(project: Project, bag: Parse) -> None:
    """Exactly the slots up to the end, from the start on, whatever o'clock it is."""
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.timetables.base import TimeRestriction

    project.describe(end=at(3).isoformat())
    dag = bag().dags["tidetable__things"]
    known = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    import pendulum

    limits = TimeRestriction(
        pendulum.instance(dag.start_date), pendulum.instance(dag.end_date), catchup=True
    )
    intervals = []
    last = None
    while info := known.timetable.next_dagrun_info(
        last_automated_data_interval=last, restriction=limits
    ):
        last = info.data_interval
        intervals.append((last.start, last.end))
    assert intervals == [(at(slot - 1), at(slot)) for slot in (1, 2, 3)]


def test_every_dag_is_documented(project: Project, bag: Parse) -> None:
    project.describe()
    for dag_id, dag in bag().dags.items():
        assert dag.doc_md, dag_id
        assert len(dag.doc_md.split()) > 10, dag_id
    docs = bag().dags["tidetable__things"].doc_md
    assert "/tidetable/reports/things/index.html" in docs
    assert "include/indexes/things.yaml" in docs


def test_the_form(project: Project, bag: Parse) -> None:
    project.describe()
    dag = bag().dags[BY_HAND]
    assert set(dag.params) == FORM
    actions = dag.params.get_param("action").schema["enum"]
    assert actions == ["update", "rebuild", "replay", "probe", "maintain"]
    assert dag.get_task("choose").downstream_task_ids == set(actions)
    assert dag.get_task("validate").upstream_task_ids == {"update", "rebuild", "replay"}
    # Whatever the installation's default: in a paused DAG a person's run would never start.
    assert dag.is_paused_upon_creation is False
    boxes = ("fold", "from_source", "dry_run", "rows_in_log", "delete")
    assert [dag.params[box] for box in boxes] == [False] * 5


def test_no_form_reaches_another_index(project: Project, bag: Parse) -> None:
    """Airflow's rights are per DAG: who may trigger that of one index reaches that one alone."""
    project.describe()
    project.yaml.with_name("secret.yaml").write_text(
        project.yaml.read_text().replace("things", "secret")
    )
    dags = bag().dags
    ours = {dag_id for dag_id in dags if dag_id.startswith("tidetable")}
    assert ours == {
        f"tidetable__{name}{kind}" for name in ("things", "secret") for kind in ("", "-by-hand")
    }
    for dag_id in ours:
        name = dag_id.removeprefix("tidetable__").removesuffix("-by-hand")
        reached = {getattr(task, "index_name", name) for task in dags[dag_id].tasks}
        assert reached == {name}, "fixed by the DAG, not by what a form or a conf says"
        assert "index" not in dags[dag_id].params


def test_a_broken_index_is_an_import_error_and_the_others_run(project: Project, bag: Parse) -> None:
    project.describe()
    text = project.yaml.read_text().replace("update_every: 10m", "update_every: soon")
    project.yaml.with_name("broken.yaml").write_text(text.replace("things", "broken", 1))
    line = text.splitlines().index("update_every: soon") + 1
    found = bag()
    assert "tidetable__things" in found.dags
    assert "tidetable__broken" not in found.dags
    ((file, error),) = found.import_errors.items()
    assert file.endswith("index_mistakes.py")
    assert f"include/indexes/broken.yaml:{line}: update_every" in error


def test_a_name_that_is_not_the_files_is_an_import_error(project: Project, bag: Parse) -> None:
    """Otherwise the command line and Airflow would mean different indexes."""
    project.describe(name="others")
    found = bag()
    (error,) = found.import_errors.values()
    assert "include/indexes/things.yaml: name: the file is called things" in error
    assert not [dag_id for dag_id in found.dags if dag_id.startswith("tidetable__")]


def test_no_index_no_error(project: Project, bag: Parse) -> None:
    found = bag()
    assert (found.import_errors, found.dags) == ({}, {})


def test_parsing_reads_yaml_and_nothing_else(project: Project) -> None:
    """The scheduler parses again and again: no Spark, no Delta, no GX, no pandas."""
    project.describe()
    code = (
        "import sys; sys.path.insert(0, 'dags'); import indexes, by_hand, example_after_update, "
        "index_mistakes; heavy = {'pyspark', 'deltalake', 'great_expectations', 'pandas', 'numpy', "
        "'pyarrow'}; print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("minutes", [0, 3, 9])
def test_the_slot_that_is_due(project: Project, minutes: int) -> None:
    """A run by hand at any time goes to the last slot that has ended, never past the end."""
    from tidetable.pipeline.preparation import slot_due

    index = project.index(end=at(5).isoformat())
    assert slot_due(index, at(2) + timedelta(minutes=minutes)) == 2
    assert slot_due(index, datetime(2030, 1, 1, tzinfo=UTC)) == 5
