"""The code that Spark makes for an update is that of the update before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.workspace import Row, Workspace, at, row
from tidetable.engine import parts
from tidetable.engine.updater import Updater

pytestmark = pytest.mark.spark

FINE = "{%Y-%m-%dT%H-%M}"
"""A folder for each minute: all in it belongs to the batch."""


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that compiles its plans, and all of a plan before it runs."""
    changes = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.maxMetadataStringLength": "10000",  # all of the filters that are handed down
    }
    before = {name: spark.conf.get(name) for name in changes}
    for name, value in changes.items():
        spark.conf.set(name, value)
    yield spark
    for name, found in before.items():
        assert found is not None
        spark.conf.set(name, found)


class Seen:
    """The plans of the queries that updates make: one each, whose tasks count and write."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spark = spark
        self.codes: list[str] = []
        self.plans: list[str] = []
        self._run = parts._job
        monkeypatch.setattr(parts, "_job", self._seen)

    def _seen(self, frame: DataFrame, *more: Any) -> list[dict[str, Any]]:
        self._look_at(frame)
        return self._run(frame, *more)

    def _look_at(self, frame: DataFrame) -> None:
        plan = frame._jdf.queryExecution().executedPlan()
        debug = getattr(self._spark._jvm.org.apache.spark.sql.execution.debug, "package$")
        text = getattr(debug, "MODULE$").codegenString(plan)
        program = [line for line in text.splitlines() if line.startswith("/* ")]
        assert program
        self.codes.append("\n".join(program))
        self.plans.append(plan.toString())


def two_rows(slot: int) -> list[Row]:
    return [row(10 * slot + k, slot - 0.5, slot + k, key=f"k{k}") for k in (2, 4)]


def seen_of_two_updates(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, folders: str
) -> Seen:
    for slot in range(5):
        folder = workspace.source / at(slot - 0.5).strftime(folders.strip("{}"))
        folder.mkdir(parents=True, exist_ok=True)
        workspace.add(two_rows(slot)).rename(folder / f"{slot}.parquet")
    source = {"path": f"{workspace.source}/{folders}"}
    updater = Updater(spark, workspace.index(source=source))
    list(updater.catch_up(2))
    seen = Seen(spark, monkeypatch)
    list(updater.catch_up(4))
    assert len(seen.codes) == 2
    return seen


def test_two_updates_run_the_same_code(
    compiled: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = seen_of_two_updates(compiled, workspace, monkeypatch, FINE)
    assert seen.codes[0] == seen.codes[1]


def test_where_files_can_be_skipped_spark_is_told_the_bounds(
    compiled: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder for all days a batch is a small part: there skipping is worth more."""
    seen = seen_of_two_updates(compiled, workspace, monkeypatch, "")
    for plan in seen.plans:
        assert "GreaterThan(arrived_at,2024-03-01" in plan
        assert "LessThanOrEqual(arrived_at,2024-03-01" in plan
