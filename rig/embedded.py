"""Airflow and Spark on this machine, with nothing to install: `make run`.

SQLite, tasks as local processes, and one Spark Connect server that all updates share. Moves the
sample to today (`live.py`), lets the indexes catch up, says where to look, and goes on with an
update every few minutes until Ctrl-C. With --once the sample stays in 2013, and it ends when every
index that has an `end` stands there. What was done stays: a later start goes on.
"""

from __future__ import annotations

import secrets
import shutil
import sys
from pathlib import Path

from rig.home import ADDRESS, REPOSITORY, Airflow, own_environment
from rig.live import Live, live
from rig.running import Options, Pipeline, main, options_of
from rig.services import Service, free_port, listens
from tidetable.config import project_root
from tidetable.core.errors import UserError
from tidetable.engine.jvm import ARCHIVE
from tidetable.engine.session import connect_server_command, connect_server_environment

HOME = Path(".airflow")
PORT = 8080


def connections(connect_port: int, token: str) -> dict[str, dict[str, object]]:
    """To Spark on this machine, for both engines; the token is that of the Connect server."""
    return {
        "spark_default": {
            "conn_type": "spark", "host": "local[*]", "extra": {"deploy-mode": "client"},
        },
        "spark_connect_default": {
            "conn_type": "spark_connect", "host": f"sc://{ADDRESS}", "port": connect_port,
            "password": token,
        },
    }  # fmt: skip


def spark_connect(project: Path, port: int, token: str) -> Service:
    """One JVM for all updates: starting one for each would take most of their time.

    A client can run anything in it, as us: it lets nobody in without the token, which is in its
    environment and not in its command line, where everybody on this machine could read it.
    """
    return Service(
        "spark-connect",
        connect_server_command(project, port),
        {
            **own_environment(project),
            **connect_server_environment(),
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        },
        cwd=project,
        ready=lambda: listens(port),
        stage=1,
        stop_within_s=8,
    )


def embedded(options: Options) -> Pipeline:
    """What `make run` runs."""
    root = project_root()
    moved = None if options.once else live(root)
    project = root if moved is None else moved.project
    connect_port, token = free_port(15002), new_token()
    airflow = Airflow(
        home=project / HOME,
        project=project,
        port=chosen_port(options),
        connections=connections(connect_port, token),
    )
    return Pipeline(
        name="run",
        airflow=airflow,
        first=[spark_connect(project, connect_port, token)],
        live=moved,
        head_start=first_load(moved, connect_port, token),
        when_idle=[] if moved is None else [shipped_sample(root), *class_archive(root)],
    )


def first_load(moved: Live | None, port: int, token: str) -> Service | None:
    """Makes the tables of the sample while Airflow starts."""
    if moved is None:
        return None
    names = [index.name for index in moved.moved_indexes() if not index.is_auto]
    environment = {
        **own_environment(moved.project),
        "SPARK_REMOTE": f"sc://{ADDRESS}:{port}/;token={token}",
    }
    command = [sys.executable, "-m", "rig.first_load", str(port), *names]
    return Service("first-load", command, environment, cwd=REPOSITORY, stage=4, may_end=True)


def shipped_sample(root: Path) -> Service:
    """The days of 2013 that the shipped indexes are about, for the command line."""
    return _in_passing("sample", ["-m", "rig.sample"], root)


def class_archive(root: Path) -> list[Service]:
    """Spark's classes in a file, if they are not there: the next start takes some seconds less."""
    if (root / ARCHIVE).exists():
        return []
    return [_in_passing("class-archive", ["-m", "tidetable.engine.archive", str(root)], root)]


def _in_passing(name: str, arguments: list[str], root: Path) -> Service:
    """A program of ours that ends by itself, and lets all others go first."""
    nice = ["nice", "-n", "19"] if shutil.which("nice") else []
    command = [*nice, sys.executable, *arguments]
    return Service(name, command, own_environment(root), cwd=REPOSITORY, may_end=True)


def new_token() -> str:
    """For a Connect server; made at each start, kept nowhere."""
    return secrets.token_urlsafe(32)


def chosen_port(options: Options) -> int:
    """The one asked for, which must be free; otherwise 8080, or any."""
    if options.port is None:
        return free_port(PORT)
    if free_port(options.port) != options.port:
        raise UserError(f"Port {options.port} is taken. Choose another with PORT=N, or none.")
    return options.port


if __name__ == "__main__":
    sys.exit(main(embedded, options_of("rig.embedded", __doc__ or "", None)))
