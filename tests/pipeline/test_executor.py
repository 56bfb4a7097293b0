"""What the scheduler loads before it forks the workers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.pipeline.project import Project

SAYS_WHAT_IS_LOADED = """
import os, sys
from tidetable.pipeline import executor
executor.load()
others = ("great_expectations", "pyspark", "scipy", "altair")
for name in (*executor.MODULES, *executor.CLIENT, *others):
    print(name, name in sys.modules)
print("threads", len(os.listdir("/proc/self/task")))
"""

COUNTS_THREADS = """
import os
import deltalake, numpy, pyarrow
print(len(os.listdir("/proc/self/task")))
"""


@pytest.fixture
def loaded(project: Project) -> dict[str, str]:
    """What a program that loads beforehand says, with a project of indexes that are submitted."""
    project.describe(engine="submit")
    return said(project)


def said(project: Project) -> dict[str, str]:
    lines = run(SAYS_WHAT_IS_LOADED, project).splitlines()
    return dict(line.split() for line in lines if len(line.split()) == 2)


def run(program: str, project: Project) -> str:
    return subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "TIDETABLE_HOME": str(project.folder)},
    ).stdout


def test_all_that_tasks_need_and_no_more(loaded: dict[str, str]) -> None:
    """PySpark and SciPy come with Great Expectations unless they are kept out: seconds, and memory
    in each worker."""
    from tidetable.pipeline.executor import CLIENT

    missing = {name for name, is_loaded in loaded.items() if is_loaded == "False"}
    assert loaded["great_expectations"] == "True"
    assert loaded["tidetable.quality.site"] == "True"
    assert missing == {"pyspark", "scipy", "altair", *CLIENT}


def test_the_client_of_spark_connect_where_an_index_needs_it(project: Project) -> None:
    """Without a thread of gRPC: those of a scheduler would not survive the fork of a worker."""
    project.describe(engine="connect")
    found = said(project)
    missing = {name for name, is_loaded in found.items() if is_loaded == "False"}
    assert missing == {"scipy", "altair"}
    if sys.platform == "linux":
        assert int(found["threads"]) <= int(run(COUNTS_THREADS, project))
