"""One real Airflow for all end-to-end tests: scheduler, server, Spark Connect, two indexes."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rig.airflow_api import AirflowApi
from rig.embedded import connections, new_token, spark_connect
from rig.home import Airflow
from rig.services import Services, free_port
from tests.pipeline.project import Project
from tests.steady import LAST, rows_of_every_slot
from tests.workspace import at
from tidetable.config import Index, load_index

MENDED_UNTIL = 2
"""The index `mended` ends here at first, so that a test can damage it at rest."""


@dataclass(frozen=True)
class Running:
    """A running Airflow, its project, and its REST interface."""

    project: Project
    airflow: Airflow
    api: AirflowApi

    def index(self, name: str) -> Index:
        return load_index(self.project.indexes / f"{name}.yaml", self.project.folder)

    def wait(self, what: str, ready: Callable[[], Any], within_s: float = 480) -> Any:
        """Asks again and again until there is an answer; what the tasks say if there is none."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if found := ready():
                return found
            time.sleep(1)
        raise AssertionError(f"not within {within_s:.0f} s: {what}\n{self.task_states()}")

    def trigger(self, dag_id: str, **params: Any) -> str:
        """Triggers a DAG as the form does; the id of the run."""
        body = json.dumps({"logical_date": None, "conf": params}).encode()
        request = urllib.request.Request(
            f"{self.airflow.url}/api/v2/dags/{dag_id}/dagRuns", body, self.headers()
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(json.load(answer)["dag_run_id"])

    def get(self, path: str) -> Any:
        request = urllib.request.Request(
            f"{self.airflow.url}/api/v2/{path}", headers=self.headers()
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.api.token()}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }

    def runs(self, dag_id: str) -> dict[str, str]:
        """The state of every run, by its id."""
        found = self.get(f"dags/{dag_id}/dagRuns?limit=100")["dag_runs"]
        return {one["dag_run_id"]: one["state"] for one in found}

    def tasks(self, dag_id: str, run_id: str) -> dict[str, str]:
        quoted = urllib.parse.quote(run_id, safe="")
        found = self.get(f"dags/{dag_id}/dagRuns/{quoted}/taskInstances")["task_instances"]
        return {one["task_id"]: one["state"] for one in found}

    def task_states(self) -> str:
        lines = []
        for name in ("things", "mended"):
            for run_id in self.runs(f"tidetable__{name}"):
                lines.append(f"{name} {run_id}: {self.tasks(f'tidetable__{name}', run_id)}")
        return "\n".join(lines)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Airflow with two indexes that it has begun to catch up."""
    folder: Path = tmp_path_factory.mktemp("project")
    project = Project(folder)
    project.add(rows_of_every_slot())
    # Half of the updates read all their rows, so that this part of the report is seen as well.
    common = {"engine": "connect", "quality": {"bad_rows_max": "0%", "check_rows_every": 2}}
    described = project.describe(
        name="mended", end=at(MENDED_UNTIL).isoformat(), table=str(folder / "mended"), **common
    )
    described.rename(described.with_name("mended.yaml"))
    project.describe(end=at(LAST).isoformat(), **common)
    connect_port, token = free_port(), new_token()
    airflow = Airflow(
        home=folder / ".airflow",
        project=folder,
        port=free_port(),
        connections=connections(connect_port, token),
        more={
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        },
    )
    with Services(folder / "services") as services:
        services.start(spark_connect(folder, connect_port, token))
        migration = airflow.migration()
        assert migration is not None
        services.run(migration)
        for service in airflow.services():
            services.start(service)
        services.wait_ready(*(one.name for one in airflow.services()), "spark-connect")
        yield Running(project, airflow, AirflowApi(airflow.url, airflow.password()))
