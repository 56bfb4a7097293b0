"""`make run ONCE=1`: catches up, tells by its exit status how it went, leaves nothing running."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.pipeline.project import Project
from tests.steady import expected, rows_of_every_slot
from tests.workspace import START, at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.e2e]

ROOT = Path(__file__).resolve().parents[2]
SLOTS = 2


def once(project: Project, limit_min: float = 5) -> subprocess.CompletedProcess[str]:
    """As `make run ONCE=1` calls it, for another project."""
    return subprocess.run(
        [
            sys.executable, "-m", "rig.embedded", "--once", "--limit",
            str(limit_min),
        ],
        env={**os.environ, "TIDETABLE_HOME": str(project.folder)},
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


def left_running(folder: Path) -> list[str]:
    """Programs that were started for this project: its folder is in what they were called with."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = [*(process.info["cmdline"] or ()), process.info["cwd"] or ""]
        if process.pid != os.getpid() and any(str(folder) in word for word in words):
            found.append(" ".join(words)[:200])
    return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.add(rows_of_every_slot())
    made.describe(engine="connect", end=at(SLOTS).isoformat())
    return made


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.spark
def test_it_catches_up_and_then_there_is_nothing_to_do(project: Project) -> None:
    first = once(project)
    assert first.returncode == 0, first.stdout + first.stderr
    assert project.ids() == expected(SLOTS)
    assert "The first picture is there" in first.stdout
    assert f"slot  {SLOTS} of {SLOTS}" in first.stdout
    assert re.search(r"longest +[\d.]+ +2 runs", first.stdout), first.stdout
    assert left_running(project.folder) == []

    second = once(project)
    assert second.returncode == 0
    assert "Nothing left to do" in second.stdout
    assert "Airflow" not in second.stdout

    # A bad row more than is allowed: the next update fails, and says why.
    project.add([{"id": 1, "key": None, "arrived_at": at(SLOTS + 0.5), "inserted_at": at(SLOTS),
                  "expires_at": at(SLOTS + 3)}])  # fmt: skip
    project.describe(
        engine="connect", end=at(SLOTS + 1).isoformat(), quality={"bad_rows_max": "0%"}
    )
    third = once(project)
    assert third.returncode == 1, third.stdout + third.stderr
    assert "The task update of scheduled__" in third.stdout
    assert "bad_rows_max" in third.stdout
    assert project.ids() == expected(SLOTS)
    assert left_running(project.folder) == []


def test_without_an_end_it_would_wait_for_ever(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.describe()
    told = once(project)
    assert told.returncode == 2
    assert "No index in" in told.stderr
    assert not (tmp_path / ".airflow").exists()


def test_an_end_before_the_first_slot_is_none(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.describe(end=START.isoformat())
    assert once(project).returncode == 2
