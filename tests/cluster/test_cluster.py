"""`make cluster ONCE=1`: PostgreSQL, Airflow on it, and a Spark cluster that gets the updates."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.cluster import HOME, mirror
from rig.postgres import NoPostgres, find_programs
from tests.pipeline.project import Project
from tests.steady import expected, rows_of_every_slot
from tests.workspace import at, read_table
from tidetable.config import load_index

pytestmark = pytest.mark.cluster
SLOTS = 1


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An index for the fast path; here it is submitted all the same."""
    made = Project(tmp_path)
    made.add(rows_of_every_slot())
    made.describe(engine="connect", end=at(SLOTS).isoformat(), table="tables/things")
    yield made
    shutil.rmtree((tmp_path / HOME / "pg").resolve(), ignore_errors=True)


def test_the_mirror_has_the_same_indexes_but_tables_of_its_own(project: Project) -> None:
    (project.folder / "README").write_text("mine")
    folder = mirror(project.folder, project.folder / HOME / "project")
    index = load_index(folder / "include" / "indexes" / "things.yaml", folder)
    assert index.engine.value == "submit"
    assert index.table == str(folder / "tables" / "things")
    assert index.source.path == str(project.source)
    assert (folder / "README").read_text() == "mine"
    # A second start sees what has changed, and forgets what is gone.
    project.describe(name="others", table="tables/others")
    project.yaml.rename(project.yaml.with_name("others.yaml"))
    mirror(project.folder, folder)
    assert [file.name for file in (folder / "include" / "indexes").iterdir()] == ["others.yaml"]


@pytest.mark.slow
@pytest.mark.spark
def test_a_dag_runs_through_it(project: Project) -> None:
    try:
        find_programs()
    except NoPostgres as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-m", "rig.cluster", "--once", "--limit", "8"],
        env={**os.environ, "TIDETABLE_HOME": str(project.folder)},
        capture_output=True, text=True, check=False, timeout=560,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    home = project.folder / HOME
    stored = read_table(str(home / "project" / "tables" / "things"))
    assert sorted(row["id"] for row in stored) == expected(SLOTS)
    assert not project.table.exists()
    # It was this cluster that did it, and this database that knows of it.
    master = (home / "services" / "spark-master.log").read_text()
    assert master.count("Registered app tidetable update") == SLOTS
    assert "database system is shut down" in (home / "services" / "postgres.log").read_text()
    assert not (home / "airflow.db").exists()
