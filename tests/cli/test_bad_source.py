"""Sources and places that do not fit: a sentence says what to do, status 2, table unchanged."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.cli.handmade import make_table, version
from tests.cli.runner import tidetable
from tests.workspace import SCHEMA, START, Workspace, row

pytestmark = pytest.mark.spark

ROWS = [row(n, 0.5, 3) for n in range(4)]


def retyped(name: str, kind: pa.DataType) -> pa.Schema:
    return SCHEMA.set(SCHEMA.get_field_index(name), pa.field(name, kind))


def without(name: str) -> pa.Schema:
    return SCHEMA.remove(SCHEMA.get_field_index(name))


BAD: dict[str, tuple[pa.Schema, dict[str, Any], str]] = {
    "no key": (without("key"), {}, "has no column 'key'"),
    "no time": (without("expires_at"), {}, "has no column 'expires_at'"),
    "a number as time": (
        retyped("arrived_at", pa.int64()), {"arrived_at": 1709251200},
        "'arrived_at' is of type bigint, which is not a time",
    ),
    "a time without zone": (
        retyped("inserted_at", pa.timestamp("us")),
        {"inserted_at": START.replace(tzinfo=None)},
        "'inserted_at' holds times without a zone",
    ),
    "an array as key": (
        retyped("key", pa.list_(pa.string())), {"key": ["a"]},
        "The key 'key' is of type array<string>, which has no order",
    ),
}  # fmt: skip


def fill(workspace: Workspace, schema: pa.Schema, changes: dict[str, Any]) -> None:
    rows = [{**one, **changes} for one in ROWS]
    workspace.add([{name: one[name] for name in schema.names} for one in rows], schema=schema)


@pytest.mark.parametrize("case", BAD)
def test_a_source_that_does_not_fit_makes_no_table(
    spark: SparkSession, workspace: Workspace, case: str
) -> None:
    schema, changes, told = BAD[case]
    fill(workspace, schema, changes)
    workspace.describe()
    for command in (["update", workspace.yaml, "--slots", 1], ["check", workspace.yaml]):
        found = tidetable(*command)
        assert (found.status, found.out) == (2, "")
        assert told in found.sentence
    assert not workspace.table.exists()


@pytest.mark.parametrize("case", ["no key", "a number as time"])
def test_a_source_that_no_longer_fits_leaves_the_table_as_it_is(
    spark: SparkSession, workspace: Workspace, case: str
) -> None:
    make_table(workspace, [row(1, 0, 4)])
    schema, changes, told = BAD[case]
    fill(workspace, schema, changes)
    found = tidetable("update", workspace.yaml, "--slots", 1)
    assert (found.status, found.out) == (2, "")
    assert told in found.sentence
    assert version(workspace) == 0


def test_a_column_that_changed_its_type(spark: SparkSession, workspace: Workspace) -> None:
    make_table(workspace, [row(1, 0, 4)])
    fill(workspace, retyped("id", pa.string()), {"id": "one"})
    found = tidetable("update", workspace.yaml, "--slots", 1)
    assert (found.status, found.out) == (2, "")
    assert "is of type string; the table has bigint" in found.sentence
    assert "part-0001.parquet" in found.sentence
    assert version(workspace) == 0


@pytest.mark.parametrize("there_is_a_table", [False, True])
def test_a_missing_source(
    spark: SparkSession, workspace: Workspace, there_is_a_table: bool
) -> None:
    changes = {"source": {"path": str(workspace.folder / "nowhere")}}
    if there_is_a_table:
        make_table(workspace, [row(1, 0, 4)], **changes)
    workspace.describe(**changes)
    found = tidetable("update", workspace.yaml, "--slots", 1)
    assert (found.status, found.out) == (2, "")
    assert "There is no source at" in found.sentence
    assert "source.path" in found.sentence
    if there_is_a_table:
        assert version(workspace) == 0


def test_a_file_that_is_damaged(spark: SparkSession, workspace: Workspace) -> None:
    """It may be half written: a retry can help. The file is named, without a Java stack."""
    workspace.add_text("no parquet at all", "parquet")
    workspace.describe()
    found = tidetable("update", workspace.yaml, "--slots", 1)
    assert (found.status, found.out) == (1, "")
    assert "part-0001.parquet" in found.sentence
    assert "at org.apache" not in found.err
    assert not workspace.table.exists()


def test_too_many_bad_rows(spark: SparkSession, workspace: Workspace) -> None:
    """Above the limit the update fails before it commits, and `check` says so beforehand."""
    limit = {"quality": {"bad_rows_max": "20%"}}
    make_table(workspace, [row(1, 0, 4)], **limit)
    workspace.add([row(2, 0.5, 3), row(3, 0.5, 0.2)])
    for command in (["update", workspace.yaml, "--slots", 1], ["check", workspace.yaml]):
        found = tidetable(*command)
        assert found.status == 2
        assert "quality.bad_rows_max allows 20%" in found.sentence
    assert version(workspace) == 0


def test_a_place_below_a_file(spark: SparkSession, workspace: Workspace) -> None:
    workspace.add(ROWS)
    file = workspace.folder / "file"
    file.write_text("precious")
    workspace.describe(table=str(file / "table"))
    found = tidetable("update", workspace.yaml, "--slots", 0)
    assert (found.status, found.out) == (2, "")
    assert "(table:)" in found.sentence
    assert "at org.apache" not in found.err
    assert file.read_text() == "precious"


def test_a_place_that_is_a_file(spark: SparkSession, workspace: Workspace) -> None:
    workspace.add(ROWS)
    file = workspace.folder / "file"
    file.write_text("precious")
    workspace.describe(table=str(file))
    found = tidetable("update", workspace.yaml, "--slots", 0)
    assert (found.status, found.out) == (2, "")
    assert "is a file, not a folder" in found.sentence
    assert file.read_text() == "precious"
