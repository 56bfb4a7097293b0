"""A project for each test, and Airflow's own database for those that run tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.project import Project

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    return Project(tmp_path)


@pytest.fixture
def bag(project: Project) -> Callable[[], DagBag]:
    """Parses dags/ as the scheduler does, for the indexes that the project has by then."""

    def parse() -> DagBag:
        from airflow.dag_processing.dagbag import DagBag

        return DagBag(ROOT / "dags", collect_dags=True, bundle_path=ROOT / "dags")

    return parse


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """Airflow's tables in the temporary AIRFLOW_HOME of this run."""
    airflow = Path(sys.executable).with_name("airflow")
    subprocess.run([airflow, "db", "migrate"], check=True, capture_output=True, text=True)


@pytest.fixture
def connect_server(one_connect_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A Spark Connect server, and Airflow's connection to it; its address.

    Other tests may have started a JVM in this process, and no process can be a client as well: the
    one that Airflow starts for a task has no JVM.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    return one_connect_server


@pytest.fixture(scope="session")
def one_connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same for all tests of this process."""
    from rig.embedded import connections, new_token, spark_connect
    from rig.services import Services, free_port

    port, token = free_port(), new_token()
    known = connections(port, token)["spark_connect_default"]
    with (
        Services(tmp_path_factory.mktemp("services")) as services,
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("AIRFLOW_CONN_SPARK_CONNECT_DEFAULT", json.dumps(known))
        services.start(spark_connect(ROOT, port, token))
        services.wait_ready("spark-connect")
        yield f"sc://127.0.0.1:{port}"
