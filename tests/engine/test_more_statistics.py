"""`statistics:` in the YAML: more columns of which the log has bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.steady import expected, rows_of_every_slot
from tests.workspace import SCHEMA, Row, Workspace, log_of
from tidetable.core.errors import UserError
from tidetable.engine.updater import Updater
from tidetable.table.log import Log

pytestmark = pytest.mark.spark

DEFAULT = {"key", "inserted_at", "expires_at", "_insertion_slot", "_expiration_slot"}
COLUMNS = pa.schema(
    [*SCHEMA, ("price", pa.decimal128(9, 2)), ("day", pa.date32()), ("photo", pa.binary())]
)
KINDS = pytest.mark.parametrize("vectors", [False, True], ids=["plain", "deletion vectors"])


def rows() -> Iterator[Row]:
    for one in rows_of_every_slot():
        number = one["id"]
        day = date(2024, 3, 1) + timedelta(days=number)
        yield {**one, "price": Decimal(number) / 4, "day": day, "photo": b"\xff"}


def updated(spark: SparkSession, workspace: Workspace, slot: int, **changes: Any) -> Log:
    """The log after the update of this slot."""
    index = workspace.index(**changes)
    list(Updater(spark, index).catch_up(slot))
    return log_of(index)


def bounds(log: Log, version: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Least and greatest values of each file that this version added."""
    stats = [json.loads(one["add"]["stats"]) for one in log.actions(version) if "add" in one]
    return [(one["minValues"], one["maxValues"]) for one in stats]


def told_of(log: Log, version: int) -> set[str]:
    """The columns of which all files of this version have bounds."""
    least = [set(low) for low, _ in bounds(log, version)]
    assert least
    return set.intersection(*least)


@KINDS
def test_a_table_is_made_with_them(
    spark: SparkSession, workspace: Workspace, vectors: bool
) -> None:
    workspace.add(rows(), schema=COLUMNS)
    scheme = {"name": "sweep", "groups": 3, "deletion_vectors": vectors}
    log = updated(spark, workspace, 2, scheme=scheme, statistics=["price", "day"])
    assert told_of(log, log.version) == DEFAULT | {"price", "day"}
    for low, high in bounds(log, log.version):
        assert low["price"] <= high["price"]
        assert low["day"] <= high["day"]
    assert workspace.ids() == expected(2)


@KINDS
def test_a_change_counts_for_files_that_are_written_later(
    spark: SparkSession, workspace: Workspace, vectors: bool
) -> None:
    workspace.add(rows(), schema=COLUMNS)
    scheme = {"name": "sweep", "groups": 3, "deletion_vectors": vectors}
    before = updated(spark, workspace, 1, scheme=scheme)
    assert told_of(before, before.version) == DEFAULT

    after = updated(spark, workspace, 3, scheme=scheme, statistics=["price"])
    versions = range(before.version + 1, after.version + 1)
    operations = [commit.operation for commit in after.commits()][: len(versions)]
    assert operations == ["WRITE", "SET TBLPROPERTIES", "WRITE"]
    assert told_of(after, versions[0]) == DEFAULT
    assert told_of(after, versions[2]) == DEFAULT | {"price"}

    back = updated(spark, workspace, 5, scheme=scheme)
    assert told_of(back, back.version) == DEFAULT
    assert workspace.ids() == expected(5)


def test_readers_skip_files_by_them_and_miss_no_row(
    spark: SparkSession, workspace: Workspace
) -> None:
    workspace.add(rows(), schema=COLUMNS)
    log = updated(spark, workspace, 3, statistics=["day"])
    frame = spark.read.format("delta").load(log.path)
    for one in workspace.stored():
        assert frame.where(frame.day == one["day"]).count() == 1
    assert frame.where(frame.day < date(2020, 1, 1)).count() == 0


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("photo", "statistics names 'photo' of type binary, of which Delta keeps no bounds"),
        ("colour", "has no column 'colour'; it has id, key, "),
    ],
)
def test_a_column_that_cannot_have_them_is_refused_with_the_table_as_it_was(
    spark: SparkSession, workspace: Workspace, column: str, told: str
) -> None:
    workspace.add(rows(), schema=COLUMNS)
    with pytest.raises(UserError, match=told):
        updated(spark, workspace, 1, statistics=[column])
    assert not workspace.table.exists()
    before = updated(spark, workspace, 1)
    with pytest.raises(UserError, match=told):
        updated(spark, workspace, 2, statistics=[column])
    assert log_of(workspace.index()).version == before.version
