"""What all tests share: one Spark session for the run, a workspace for each test."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]

# A zone far from UTC: whatever depends on the machine's zone fails everywhere, not only at home.
os.environ["TZ"] = "Pacific/Auckland"
time.tzset()
# pytest-xdist tells its workers the width of our terminal, which rich would take for theirs.
os.environ.pop("COLUMNS", None)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the session starts a JVM, and is marked so; these run last."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from tidetable.delta.session import spark_session

    session = spark_session(ROOT, "tidetable tests")
    yield session
    session.stop()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)
