"""What all tests share: one Spark session for the run, a workspace for each test."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.durations import Durations
from tests.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]

# Whoever starts the tests in the background makes them, and all they start, deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A zone far from UTC: whatever depends on the machine's zone fails everywhere, not only at home.
os.environ["TZ"] = "Pacific/Auckland"
time.tzset()
# pytest-xdist tells its workers the width of our terminal, which rich would take for theirs.
os.environ.pop("COLUMNS", None)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# Airflow reads these when it is imported; its own default would be a folder in the user's home.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="tidetable-airflow-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(ROOT / "dags")
atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)

# Programs that the tests start end soon: half the work for Java if it does not optimize them.
os.environ.setdefault("TIDETABLE_JAVA_OPTIONS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")

_SMALL_PLANS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""To compile a plan takes longer than to run it once over a few rows. What the tests start through
spark-submit, Spark Connect and the command line runs compiled, as in production."""

_HEAVY_TO_IMPORT = {"page", "pipeline", "quality", "rig"}
"""Airflow and Great Expectations take seconds to import: not for the fast tests."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Durations(ROOT / ".cache" / "durations"), "durations")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of which no test is wanted are not even imported: what they import takes seconds, in
    every worker. So it is with PySpark where every test of a file starts a JVM."""
    wanted = config.getoption("-m")
    if "not slow" in wanted and collection_path.name in _HEAVY_TO_IMPORT:
        return True
    if collection_path.suffix != ".py" or "not spark" not in wanted:
        return None
    whole_file = re.search(r"(?m)^pytestmark = .*\bspark\b", collection_path.read_text())
    return True if whole_file else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the session starts a JVM, and is marked so; these run last."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if item.path.relative_to(ROOT / "tests").parts[0] in _HEAVY_TO_IMPORT:
            item.add_marker("slow")
    with_jvm = [item for item in items if item.get_closest_marker("spark")]
    rank = _in_turns(with_jvm)
    without = [item for item in items if not item.get_closest_marker("spark")]
    items[:] = without + sorted(with_jvm, key=lambda item: rank[item.path])


def _in_turns(items: list[pytest.Item]) -> dict[Path, int]:
    """The files in the order in which workers take them: a whole Airflow waits most of the time,
    so files that start one take turns with files that compute."""
    waits = {item.path: False for item in items}
    for item in items:
        waits[item.path] |= any(item.get_closest_marker(mark) for mark in ("e2e", "cluster"))
    computing = [path for path, does in waits.items() if not does]
    waiting = [path for path, does in waits.items() if does]
    turns = [path for pair in zip_longest(computing, waiting) for path in pair if path]
    return {path: place for place, path in enumerate(turns)}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from tidetable.engine.session import spark_session

    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("TIDETABLE_JAVA_OPTIONS")  # this one has much to do
        session = spark_session(ROOT, "tidetable tests", _SMALL_PLANS)
    yield session
    session.stop()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)
