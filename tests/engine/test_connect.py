"""The same updates through a Spark Connect server: a client without a JVM of its own.

Clients are processes of their own, as the pipeline starts them: in one process PySpark is either a
client of such a server or has a JVM.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.advisor.test_search import USUAL
from tests.steady import expected, rows_of_every_slot
from tests.workspace import Workspace, at, row
from tidetable import __version__
from tidetable.advisor import Machine
from tidetable.advisor.calibrate import calibration_path
from tidetable.core.errors import TransientError, UserError
from tidetable.engine.session import (
    _sendable,
    connect_server_command,
    connect_server_environment,
    connect_session,
)
from tidetable.table.history import Updates
from tidetable.table.log import open_log
from tidetable.table.state import IndexTable

ROOT = Path(__file__).resolve().parents[2]
STARTS_WITHIN_S = 120


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


# -- without a server ------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    port = free_port()
    began = time.monotonic()
    with pytest.raises(TransientError, match=f"No Spark Connect server answers at .*:{port}"):
        connect_session(f"sc://127.0.0.1:{port}/;token=secret")
    assert time.monotonic() - began < 15


def test_a_token_is_not_told() -> None:
    with pytest.raises(TransientError) as told:
        connect_session(f"sc://127.0.0.1:{free_port()}/;token=secret")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("sc://127.0.0.1:1", "sc://127.0.0.1:1"),
        ("sc://127.0.0.1:1/;token=a", "sc://127.0.0.1:1/;authorization=Bearer%20a"),
        ("sc://[::1]:1/;user_id=b;token=a", "sc://[::1]:1/;user_id=b;authorization=Bearer%20a"),
        ("sc://spark:1/;token=a", "sc://spark:1/;token=a"),
        (
            "sc://spark:1/;token=a;use_ssl=False",
            "sc://spark:1/;use_ssl=False;authorization=Bearer%20a",
        ),
        ("sc://127.0.0.1:1/;token=a;use_ssl=true", "sc://127.0.0.1:1/;token=a;use_ssl=true"),
        ("sc://localhost.example:1/;token=a", "sc://localhost.example:1/;token=a"),
    ],
)
def test_a_token_goes_without_tls_only_on_this_machine_or_where_the_url_says_so(
    url: str, sent: str
) -> None:
    assert _sendable(url) == sent


@pytest.mark.parametrize("url", ["127.0.0.1:15002", "local[2]", "sc://", "http://127.0.0.1"])
def test_what_is_no_address_of_a_server(url: str) -> None:
    with pytest.raises(UserError, match=r"such as sc://127\.0\.0\.1:15002"):
        connect_session(url)


def test_the_server_listens_to_this_machine_only(tmp_path: Path) -> None:
    command = connect_server_command(tmp_path, 15999)
    settings = dict(one.split("=", 1) for one in command if "=" in one)
    assert settings["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert settings["spark.connect.grpc.binding.port"] == "15999"
    assert "DeltaSparkSessionExtension" in settings["spark.sql.extensions"]
    assert Path(command[0]).is_file()


# -- with one --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs as long as these tests."""
    port = free_port()
    log = tmp_path_factory.mktemp("connect") / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            connect_server_command(ROOT, port),
            env={**os.environ, **connect_server_environment()},
            cwd=log.parent,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(port, process, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, log.read_text()
        time.sleep(0.2)
    raise AssertionError(f"no server within {STARTS_WITHIN_S} s: {log.read_text()}")


class Client:
    """Runs a job against the server."""

    def __init__(self, server: str, workspace: Workspace) -> None:
        self.server = server
        self.workspace = workspace

    def start(self, verb: str, *arguments: object) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "SPARK_REMOTE": self.server,
            "TIDETABLE_HOME": str(self.workspace.folder),
            "JAVA_HOME": "/nonexistent/a-client-needs-no-jvm",
        }
        job = ROOT / "spark" / "tidetable" / "jobs" / f"{verb}.py"
        return subprocess.Popen(
            [sys.executable, str(job), str(self.workspace.yaml), *map(str, arguments), "--json"],
            env=environment,
            cwd=self.workspace.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, verb: str, *arguments: object) -> list[dict[str, Any]]:
        process = self.start(verb, *arguments)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def client(server: str, workspace: Workspace) -> Client:
    return Client(server, workspace)


@pytest.mark.spark
@pytest.mark.slow
def test_load_update_rebuild_fold_and_replay(client: Client, workspace: Workspace) -> None:
    workspace.add([*rows_of_every_slot(), row(500, 0.5, -0.5)])
    quality = {"bad_rows_max": "100%", "check_rows_every": 2}
    scheme = {"name": "sweep", "groups": 3, "deletion_vectors": True}
    index = workspace.index(scheme=scheme, quality=quality)

    reports = client.run("update", "--until", at(1).isoformat())
    assert [one["slot"] for one in reports] == [0, 1]
    assert [one["quarantined"] for one in reports] == [0, 1]
    assert [one["checks"] is not None for one in reports] == [True, False]
    assert workspace.ids() == expected(1)
    assert workspace.reasons(index) == [(1, "expires before it was inserted")]

    (report,) = client.run("rebuild")
    assert (report["slot"], report["live"]) == (1, len(expected(1)))
    assert workspace.ids() == expected(1)

    (report,) = client.run("update", "--until", at(3).isoformat(), "--fold")
    assert report["slot"] == 3
    assert workspace.ids() == expected(3)

    assert [one["slot"] for one in client.run("replay", "--from", 2)] == [2, 3]
    assert workspace.ids() == expected(3)
    kinds = [one.kind for one in Updates(index).last(100)]
    assert kinds == ["load", "update", "rebuild", "update", "restore", "update", "update"]


@pytest.mark.spark
@pytest.mark.slow
def test_two_clients_at_once_make_each_update_once(client: Client, workspace: Workspace) -> None:
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    client.run("update", "--slots", 0)
    both = [client.start("update", "--until", at(2).isoformat()) for _ in range(2)]
    told = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    slots = sorted(json.loads(line)["slot"] for out, _ in told for line in out.splitlines())
    assert slots == [1, 2]
    assert workspace.ids() == expected(2)
    log = open_log(index.table)
    assert log is not None
    assert [note.slot for _, note in log.notes()] == [2, 1, 0]
    assert [one.slot for one in Updates(index).last(100)] == [0, 1, 2]


@pytest.mark.spark
@pytest.mark.slow
def test_two_clients_at_once_make_a_table_whose_scheme_is_chosen(
    client: Client, workspace: Workspace
) -> None:
    """Both choose; what one of them has written into the table is what both go by."""
    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme="auto")
    packages = ("delta-spark", "deltalake")
    versions = {"tidetable": __version__, "spark": version("pyspark")}
    versions |= {name: version(name) for name in packages}
    prices = replace(USUAL, machine=Machine(len(os.sched_getaffinity(0)), versions))
    prices.save(calibration_path(index))  # otherwise each of them would measure for a minute
    both = [client.start("update", "--until", at(2).isoformat()) for _ in range(2)]
    told = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    slots = sorted(json.loads(line)["slot"] for out, _ in told for line in out.splitlines())
    assert slots == [0, 1, 2]
    assert workspace.ids() == expected(2)
    table = IndexTable(index)
    state = table.required_state()
    assert state.predicted_s is not None
    assert not table.index.is_auto
    assert [note.slot for _, note in state.log.notes()] == [2, 1, 0]


@pytest.mark.spark
@pytest.mark.slow
def test_text_sources_stragglers_and_unreadable_arrivals(
    client: Client, workspace: Workspace
) -> None:
    """What takes windows, joins, JSON and a schema from the YAML."""
    workspace.add_json(rows_of_every_slot())
    workspace.add_text('{"id": 600, "key": "x", "arrived_at": "soon"}\nno record\n', "json")
    index = workspace.index(
        source={
            "format": "json",
            "recount_every": 2,
            "schema": "id long, key string",
        }
    )
    client.run("update", "--until", at(1).isoformat())
    late = row(700, 0.5, 5)
    workspace.add_json([late])
    reports = client.run("update", "--until", at(2).isoformat())
    assert [(one["slot"], one["late"]) for one in reports] == [(2, 1)]
    assert workspace.ids() == sorted([*expected(2), 700])
    assert [reason for _, reason in workspace.reasons(index)] == [
        "no readable arrival time",
        "no readable arrival time",
    ]


@pytest.mark.spark
@pytest.mark.slow
def test_mistakes_are_told_as_ever(client: Client, workspace: Workspace) -> None:
    workspace.add(rows_of_every_slot())
    workspace.describe(expires_at=None, lifetime="id + 12")
    process = client.start("update", "--slots", 1)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2, err
    told = json.loads(err.splitlines()[-1])
    assert told["retry_can_help"] is False
    assert "lifetime 'id + 12' cannot be added to inserted_at" in told["error"]["found"]
    assert not workspace.table.exists()
