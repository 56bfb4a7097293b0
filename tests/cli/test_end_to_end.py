"""The installed command as a user runs it: a JVM of its own for updates, and none for reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workspace import Workspace, row
from tidetable.engine.jvm import JARS, not_started

COMMAND = Path(sys.executable).with_name("tidetable")
PROJECT = Path(__file__).resolve().parents[2]


def run(*arguments: object, java: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TIDETABLE_HOME": str(PROJECT)}
    if not java:
        environment |= {"JAVA_HOME": "/nonexistent", "PATH": "/nonexistent"}
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.spark
def test_an_update_with_a_jvm_of_its_own_and_reads_without_any(workspace: Workspace) -> None:
    workspace.add([row(1, -0.5, 2.5), row(2, 0.5, 3), row(3, 0.5, 0.7)])
    workspace.describe()

    update = run("update", workspace.yaml, "--slots", 1, "--json")
    assert (update.returncode, update.stderr) == (0, "")  # not a word of the JVM's either
    reports = [json.loads(line) for line in update.stdout.splitlines()]
    assert [(one["slot"], one["live"]) for one in reports] == [(0, 1), (1, 2)]

    probe = run("probe", workspace.yaml, "k1", "--json", java=False)
    assert (probe.returncode, probe.stderr) == (0, "")
    (found,) = [json.loads(line) for line in probe.stdout.splitlines()]
    assert (found["id"], found["_expiration_slot"]) == (1, 3)

    for command in (["status"], ["plan"], ["scan", "--count"]):
        name, *options = command
        assert run(name, workspace.yaml, *options, java=False).returncode == 0


@pytest.mark.spark
def test_ctrl_c_is_one_sentence_and_what_was_committed_stays(workspace: Workspace) -> None:
    workspace.add([row(number, number / 10, number / 10 + 3) for number in range(300)])
    workspace.describe()
    with subprocess.Popen(
        [COMMAND, "update", workspace.yaml, "--slots", "30"],
        env={**os.environ, "TIDETABLE_HOME": str(PROJECT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as update:  # fmt: skip
        assert update.stdout is not None
        for line in update.stdout:  # as they are committed, though it is no terminal
            if line.split()[0] == "2":
                break
        os.killpg(update.pid, signal.SIGINT)  # as a terminal does it: to all that it runs
        _, told = update.communicate(timeout=120)
    assert update.returncode == 130, told
    announced, *stopped = told.splitlines()
    assert announced == "things: 31 commits to make; each is shown once it is made."
    assert len(stopped) == 1, told
    assert stopped[0].startswith("Stopped. things stands at slot ")
    assert "nothing is half done" in stopped[0]
    again = run("status", workspace.yaml, "--json", java=False)
    assert 2 <= json.loads(again.stdout)["slot"] < 30


@pytest.mark.spark
def test_an_update_by_spark_submit(workspace: Workspace) -> None:
    """The master and the class path are those of whoever submits; the rest is ours."""
    workspace.add([row(1, -0.5, 2.5), row(2, 0.5, 3)])
    workspace.describe()
    jars = ":".join(str(jar) for jar in sorted((PROJECT / JARS).glob("*.jar")))
    submit = [
        str(COMMAND.with_name("spark-submit")), "--master", "local[2]", "--driver-class-path", jars,
        "--conf", "spark.ui.enabled=false", str(PROJECT / "spark/tidetable/jobs/update.py"),
        str(workspace.yaml), "--slots", "1", "--json",
    ]  # fmt: skip
    done = subprocess.run(
        submit,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [(one["slot"], one["live"]) for one in reports] == [(0, 1), (1, 2)]


@pytest.mark.slow
def test_without_java_an_update_says_what_to_do(workspace: Workspace) -> None:
    workspace.add([row(1, -0.5, 2.5)])
    workspace.describe()
    update = run("update", workspace.yaml, java=False)
    assert (update.returncode, update.stdout) == (2, "")
    assert "There is no Java in /nonexistent (JAVA_HOME)" in update.stderr
    assert "make setup" in update.stderr
    assert not workspace.table.exists()


@pytest.mark.spark
def test_a_jvm_that_does_not_start_is_not_passed_over(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.add([row(1, -0.5, 2.5)])
    workspace.describe()
    monkeypatch.setenv("TIDETABLE_DRIVER_MEMORY", "lots")
    update = run("update", workspace.yaml)
    assert (update.returncode, update.stdout) == (1, "")
    assert "Spark did not start" in update.stderr
    assert "Invalid maximum heap size: -Xmxlots" in update.stderr
    assert "spark.log" in update.stderr
    assert not workspace.table.exists()


@pytest.mark.parametrize(
    ("said", "told", "status"),
    [
        ("java.lang.UnsupportedClassVersionError: Main", "This Java is too old", 2),
        (":: unresolved dependency: io.delta#delta-spark", "The Delta jars are missing", 2),
        ("\n".join(["Cannot allocate memory", "\tat a.B.c(D.java:1)"]), "Spark did not start", 1),
    ],
)
def test_why_spark_did_not_start(said: str, told: str, status: int, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("of an earlier start\n")
    began = log.stat().st_size
    log.write_text(log.read_text() + said)
    error = not_started(RuntimeError("gone"), log, began)
    assert error.exit_status == status
    assert told in str(error)
    assert said.splitlines()[0] in str(error)
    assert str(log) in str(error)
    assert "earlier" not in str(error)
    assert "\tat" not in str(error)
