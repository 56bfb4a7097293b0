"""The jobs inside spark-submit: the master comes from outside, the reports go to stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.steady import expected, rows_of_every_slot
from tests.workspace import Workspace, at
from tidetable.engine.archive import make_archive
from tidetable.engine.jvm import ARCHIVE, find_java, jars_of, spark_home
from tidetable.engine.session import SETTINGS, submit_conf

ROOT = Path(__file__).resolve().parents[2]


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "master", ["local[*]", "spark://127.0.0.1:7077", "yarn", "k8s://https://x"]
)
def test_what_the_code_relies_on_goes_to_every_master(master: str) -> None:
    assert SETTINGS.items() <= submit_conf(ROOT, master=master).items()


def test_what_suits_one_machine_stays_there() -> None:
    here, there = submit_conf(ROOT), submit_conf(ROOT, master="yarn")
    for name in ("spark.sql.shuffle.partitions", "spark.driver.memory", "spark.pyspark.python"):
        assert name in here
        assert name not in there


@pytest.mark.skipif(not jars_of(ROOT), reason="the jars are not set up")
def test_another_machine_gets_the_jars_sent() -> None:
    there = submit_conf(ROOT, master="spark://127.0.0.1:7077")
    assert [Path(jar) for jar in there["spark.jars"].split(",")] == jars_of(ROOT)
    assert "spark.executor.extraClassPath" not in there


def test_without_jars_here_they_are_fetched_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidetable.engine.session.jars_of", lambda _: [])
    there = submit_conf(tmp_path, master="yarn")
    assert there["spark.jars.packages"].startswith("io.delta:delta-spark_")


def test_a_driver_elsewhere_is_given_no_file_of_this_machine() -> None:
    conf = submit_conf(ROOT, master="yarn", deploy_mode="cluster")
    del conf["spark.jars"]  # spark-submit sends these itself
    assert [value for value in conf.values() if str(ROOT) in value] == []


# -- for real --------------------------------------------------------------------------------------


def submit(
    workspace: Workspace, conf: dict[str, str], job: str, *arguments: object, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """spark-submit as an operator calls it, from some folder."""
    find_java()
    options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    script = ROOT / "spark" / "tidetable" / "jobs" / f"{job}.py"
    return subprocess.run(
        [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", "--name", "theirs",
         *options, str(script), str(workspace.yaml), *map(str, arguments), "--json"],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
             "TIDETABLE_HOME": str(workspace.folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip


@pytest.mark.spark
@pytest.mark.slow
def test_an_update_with_our_settings(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with an archive of classes that Java cannot use: it says nothing and goes on without."""
    workspace.add(rows_of_every_slot())
    workspace.describe()
    modes = _noted_calls("chmod", tmp_path, monkeypatch)
    archive = tmp_path / "a project" / ARCHIVE
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"of another Java")
    conf = submit_conf(tmp_path / "a project")
    assert f"SharedArchiveFile={archive}" in conf["spark.driver.extraJavaOptions"]
    done = submit(workspace, conf, "update", "--until", at(1).isoformat(), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report["slot"] for report in reports] == [0, 1]
    assert workspace.ids() == expected(1)
    assert "INFO" not in done.stderr
    assert "rchive" not in done.stderr
    # A process for each file would take longer than writing it.
    assert ".parquet" not in modes.read_text()
    files = list(workspace.table.glob("**/*.parquet"))
    assert {file.stat().st_mode & 0o777 for file in files} == {0o644}  # Hadoop's own default


def _noted_calls(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lets everything started from now on note its calls of the program in the file returned."""
    calls = folder / "calls"
    calls.touch()
    instead = folder / "bin" / program
    instead.parent.mkdir()
    instead.write_text(f'#!/bin/sh\necho "$@" >>"{calls}"\nexec {which(program)} "$@"\n')
    instead.chmod(0o755)
    monkeypatch.setenv("PATH", f"{instead.parent}:{os.environ['PATH']}")
    return calls


@pytest.mark.spark
@pytest.mark.slow
def test_an_update_with_theirs(workspace: Workspace) -> None:
    """Somebody else's cluster brings Delta, an extension of its own and no setting of ours."""
    workspace.add(rows_of_every_slot())
    workspace.describe()
    jars = ":".join(map(str, jars_of(ROOT)))
    theirs = {
        "spark.driver.extraClassPath": jars,
        "spark.sql.extensions": "org.apache.spark.sql.connect.SimpleSparkConnectPlugin",
        "spark.ui.enabled": "false",
    }
    done = submit(workspace, theirs, "update", "--slots", 0)
    assert done.returncode == 0, done.stderr
    assert workspace.ids() == expected(0)


@pytest.mark.spark
@pytest.mark.slow
def test_without_delta_it_says_what_is_missing(workspace: Workspace) -> None:
    workspace.add(rows_of_every_slot())
    workspace.describe()
    done = submit(workspace, {"spark.ui.enabled": "false"}, "update", "--slots", 1)
    assert done.returncode == 2
    # spark-submit puts what a Python program says on stderr onto its own stdout.
    assert "--packages io.delta:delta-spark_" in done.stdout
    assert not workspace.table.exists()


@pytest.mark.spark
@pytest.mark.slow
def test_the_archive_of_classes_is_made_once() -> None:
    """`make test` has made it, so that all that the tests start gets it."""
    make_archive(ROOT)
    assert make_archive(ROOT) is False
    archive = ROOT / ARCHIVE
    assert b"io/delta/sql/DeltaSparkSessionExtension" in archive.read_bytes()
    unfinished = [path for path in archive.parent.glob("tmp*") if (path / "small.yaml").exists()]
    assert unfinished == []
