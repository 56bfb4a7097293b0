"""The parts of docker-compose.yaml on this machine, without Docker: `make cluster`.

PostgreSQL for Airflow, a Spark master with a worker, and Airflow on them, with a login. Every
update is an application of its own that is submitted to the master. What it makes is in
.airflow-cluster/, apart from what `make run` makes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.embedded import chosen_port
from rig.home import ADDRESS, Airflow, own_environment
from rig.postgres import Postgres, find_programs
from rig.running import Options, Pipeline, main, options_of
from rig.services import Service, answers, free_port, listens
from tidetable.config import project_root

HOME = Path(".airflow-cluster")
WORKER_CORES = 2
WORKER_MEMORY = "3g"


@dataclass(frozen=True)
class SparkCluster:
    """A standalone master and one worker, from the pip package."""

    folder: Path
    port: int
    page: int
    """The port of the master's own web page."""

    @property
    def master(self) -> str:
        return f"spark://{ADDRESS}:{self.port}"

    def services(self) -> list[Service]:
        return [self._master(), self._worker()]

    def _master(self) -> Service:
        arguments = ["--host", ADDRESS, "--port", str(self.port), "--webui-port", str(self.page)]
        return self._program(
            "spark-master", "master.Master", arguments, stage=0, ready=lambda: listens(self.port)
        )

    def _worker(self) -> Service:
        arguments = [
            "--host", ADDRESS, "--webui-port", str(free_port()), "-c", str(WORKER_CORES),
            "-m", WORKER_MEMORY, "-d", str(self.folder / "spark-work"), self.master,
        ]  # fmt: skip
        return self._program(
            "spark-worker", "worker.Worker", arguments, stage=1, ready=self._has_worker
        )

    def _program(
        self, name: str, what: str, arguments: Sequence[str], stage: int, ready: object
    ) -> Service:
        environment = own_environment(self.folder) | {
            "SPARK_DAEMON_MEMORY": "512m",
            # Applications that have ended leave their jars and logs behind.
            "SPARK_WORKER_OPTS": "-Dspark.worker.cleanup.enabled=true "
            "-Dspark.worker.cleanup.interval=600 -Dspark.worker.cleanup.appDataTtl=3600",
        }
        command = [
            str(Path(sys.executable).with_name("spark-class")),
            f"org.apache.spark.deploy.{what}",
            *arguments,
        ]
        return Service(
            name, command, environment, cwd=self.folder, stage=stage, ready=ready,  # type: ignore[arg-type]
            stop_within_s=8,
        )  # fmt: skip

    def _has_worker(self) -> bool:
        return answers(
            f"http://{ADDRESS}:{self.page}/json/", lambda found: found.get("aliveworkers", 0) > 0
        )


def cluster(options: Options) -> Pipeline:
    """What `make cluster` runs."""
    programs = find_programs()
    root = project_root()
    home = root / HOME
    project = mirror(root, home / "project")
    postgres = Postgres(home, free_port(), programs)
    spark = SparkCluster(home, free_port(7077), free_port(8081))
    airflow = Airflow(
        home=home,
        project=project,
        port=chosen_port(options),
        database=postgres.url,
        # An application waits for the cores of the worker, and two would wait for each other.
        parallel=2,
        connections={
            "spark_default": {
                "conn_type": "spark",
                "host": f"spark://{ADDRESS}",
                "port": spark.port,
                "extra": {"deploy-mode": "client"},
            }
        },
    )
    return Pipeline(
        name="cluster",
        airflow=airflow,
        first=[postgres.service(), *spark.services()],
        before_airflow=["postgres"],
        prepare=postgres.make_database,
        hints=[
            ("Spark", f"http://{ADDRESS}:{spark.page} (master {spark.master})"),
        ],
    )


def mirror(root: Path, project: Path) -> Path:
    """A project beside the real one: the same files, but tables of its own and `engine: submit`.

    Everything is linked except the indexes, which are copied anew at each start.
    """
    indexes = project / "include" / "indexes"
    indexes.mkdir(parents=True, exist_ok=True)
    for source in (*root.iterdir(), *(root / "include").iterdir()):
        link = project / source.relative_to(root)
        if source.name.startswith(".") or source.name in ("include", "indexes"):
            continue
        if not link.is_symlink() and not link.exists():
            link.symlink_to(source)
    for old in indexes.iterdir():
        old.unlink()
    for source in (root / "include" / "indexes").iterdir():
        text = re.sub(r"^engine:.*$", "engine: submit", source.read_text(), flags=re.MULTILINE)
        text = re.sub(r"^connection:.*\n", "", text, flags=re.MULTILINE)
        (indexes / source.name).write_text(text)
    return project


if __name__ == "__main__":
    sys.exit(main(cluster, options_of("rig.cluster", __doc__ or "", None)))
