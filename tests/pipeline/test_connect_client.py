"""A command in the process of the task: what it says, how it ends, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

import tidetable.cli
from tests.pipeline.project import Project
from tests.steady import expected, rows_of_every_slot
from tests.workspace import at
from tidetable.core.errors import UserError
from tidetable.pipeline import spark_job
from tidetable.pipeline.connect_client import run_command
from tidetable.pipeline.spark_job import Killed, SparkJob

if TYPE_CHECKING:
    import pyarrow as pa

NOWHERE = "sc://127.0.0.1:1/;token=secret"
CONNECTION = '{"conn_type": "spark_connect", "host": "sc://127.0.0.1", "port": 1}'


def test_what_a_command_says_is_told_line_by_line(tmp_path: Path) -> None:
    said: list[str] = []
    environment = dict(os.environ)
    assert run_command(["update", "nothing", "--json"], NOWHERE, tmp_path, said.append) == 2
    (line,) = said
    assert '"retry_can_help": false' in line
    assert "nothing" in line
    assert dict(os.environ) == environment


def test_both_streams_are_told_and_a_log_may_write_to_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(words: list[str]) -> None:
        print("begins", end=" ")
        print("here")
        print("beside it", file=sys.stderr)
        print("no end", end="")
        raise SystemExit(1)

    monkeypatch.setattr(tidetable.cli, "app", command)
    said: list[str] = []

    def tell(line: str) -> None:
        said.append(line)
        print("log:", line)

    assert run_command([], NOWHERE, tmp_path, tell) == 1
    assert said == ["begins here", "beside it", "no end"]
    assert capsys.readouterr().out.splitlines() == [f"log: {line}" for line in said]


def test_a_server_that_does_not_answer_may_do_so_later(project: Project) -> None:
    project.add(rows_of_every_slot())
    project.describe(engine="connect")
    said: list[str] = []
    words = ["update", "things", "--until", at(1).isoformat(), "--json"]
    assert run_command(words, NOWHERE, project.folder, said.append) == 1
    assert "No Spark Connect server answers" in said[-1]
    assert "secret" not in "\n".join(said)


# -- the task --------------------------------------------------------------------------------------


@pytest.fixture
def job(project: Project, monkeypatch: pytest.MonkeyPatch) -> SparkJob:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_CONNECT_DEFAULT", CONNECTION)
    project.describe(engine="connect")
    return SparkJob(task_id="update", verb="update", index_name="things", arguments=["--fold", ""])


@pytest.mark.parametrize(
    ("status", "ends_as"), [(2, AirflowFailException), (1, AirflowException)]
)  # fmt: skip
def test_the_exit_status_says_whether_a_retry_can_help(
    job: SparkJob, monkeypatch: pytest.MonkeyPatch, status: int, ends_as: type[Exception]
) -> None:
    words: list[list[str]] = []

    def command(given: list[str], *_: object) -> int:
        words.append(given)
        return status

    monkeypatch.setattr(spark_job, "run_command", command)
    with pytest.raises(AirflowException) as caught:
        job.execute({})
    assert type(caught.value) is ends_as
    assert words == [["update", "things", "--fold", "--json"]]


def test_a_kill_ends_the_command_and_is_no_error_of_the_update(
    job: SparkJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow calls `on_kill` from the handler of a signal, wherever the command stands."""

    def command(*_: object) -> int:
        try:
            job.on_kill()
        except Exception:
            pytest.fail("an update would take it for an error of its own, and try again")
        return 0

    monkeypatch.setattr(spark_job, "run_command", command)
    with pytest.raises(Killed):
        job.execute({})
    job.on_kill()  # nothing runs any more


# -- with a server ---------------------------------------------------------------------------------


@pytest.fixture
def server(connect_server: str) -> str:
    """Its address with the token, as a task gets it."""
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    return SparkConnectHook("spark_connect_default").get_connection_url()


@pytest.mark.spark
@pytest.mark.slow
def test_one_process_is_a_client_several_times(project: Project, server: str) -> None:
    project.add(rows_of_every_slot())
    project.describe(engine="connect")
    environment = dict(os.environ)
    for slot in (1, 2):
        said: list[str] = []
        words = ["update", "things", "--until", at(slot).isoformat(), "--json"]
        assert run_command(words, server, project.folder, said.append) == 0, said
        assert any(f'"slot": {slot}' in line for line in said)
        assert dict(os.environ) == environment
    assert project.ids() == expected(2)


@pytest.mark.spark
@pytest.mark.slow
def test_a_killed_command_ends_what_the_server_does_for_it(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server would otherwise work on, and two writers would wait for its cores."""
    heart = tmp_path / "heart"

    def beats(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(1200):
                with heart.open("a") as file:
                    file.write(".")
                time.sleep(0.1)
            yield batch

    def command(words: list[str]) -> None:
        from tidetable.engine.session import connect_session

        spark = connect_session(os.environ["SPARK_REMOTE"])
        spark.range(0, 1, 1, 1).mapInArrow(beats, "id long").collect()

    def kill(signum: int, frame: FrameType | None) -> None:
        if heart.exists():
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Killed

    monkeypatch.setattr(tidetable.cli, "app", command)
    before = signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        with pytest.raises(Killed):
            run_command([], server, tmp_path, print)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        size = heart.stat().st_size
        time.sleep(2)
        if heart.stat().st_size == size:
            return
    pytest.fail("the query goes on although its client has gone")


def test_a_process_with_a_session_of_its_own_is_no_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: object())
    with pytest.raises(UserError, match="Spark session already"):
        run_command(["update", "things"], NOWHERE, tmp_path, print)
