"""Files whose columns differ from the table's, or from each other's: one outcome, in any format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.cli.handmade import make_table
from tests.cli.runner import tidetable
from tests.hostile.harness import STORED, Case, Refused, Taken, lines, meet, put
from tests.workspace import SCHEMA, Workspace, at, row
from tidetable.engine.updater import Updater

pytestmark = pytest.mark.spark

TABLE = SCHEMA.append(pa.field("value", pa.int64()))
MORE = TABLE.append(pa.field("extra", pa.string()))
ONE, TWO = row(1, 0.1, 4, value=1), row(2, 0.2, 4, value=2, extra="x")
LACKS = Refused("file .*bad.* has no column 'value', which the table has")
BOTH = Taken([0, 1, 2])
T, LATER = at(0.5).isoformat(), at(4).isoformat()
MINUTES = "{%Y%m%d-%H%M}"


def typed(name: str, kind: pa.DataType, schema: pa.Schema = TABLE) -> pa.Schema:
    return schema.set(schema.get_field_index(name), pa.field(name, kind))


def pair(
    kind: str, schema: pa.Schema, *, first: bool = False, **value: Any
) -> Callable[[Workspace], object]:
    """A good file, and one with other columns that sorts before or after it."""

    def write(workspace: Workspace) -> None:
        if kind == "delta":  # a table for each minute
            put(workspace, "20240301-0001", [ONE], TABLE)
            put(workspace, "20240301-0002/", [TWO | value], schema)
            return
        put(workspace, f"m.{kind}", [ONE], TABLE)
        put(workspace, f"{'a' if first else 'z'}_bad.{kind}", [TWO | value], schema)

    return write


def case(name: str, kind: str, schema: pa.Schema, outcome: Taken | Refused, **how: Any) -> Case:
    """A line: `kind` is the format, `schema` the columns of the file that differs."""
    table = how.pop("table", TABLE)
    source = {"format": kind, **how.pop("source", {})}
    if kind == "delta":
        source["path"] = "source/" + MINUTES
        if isinstance(outcome, Refused):
            outcome = Refused(outcome.sentence.replace(".*bad.*", ".*"))
    return Case(f"{kind}: {name}", pair(kind, schema, **how), outcome, {"source": source}, table)


FAIL = {"new_columns": "fail"}
NEW = Refused("has the column 'extra', which the table does not have, and source.new_columns")

CASES = [
    line
    for kind in ("parquet", "orc", "csv", "delta")
    for line in (
        case("a file lacks a column", kind, SCHEMA, LACKS),
        case("a file has a new column", kind, MORE, BOTH),
        case("a new column is to fail", kind, MORE, NEW, source=FAIL),
    )
]
CASES += [
    line
    for kind in ("parquet", "orc", "delta")
    for line in (
        case("int for bigint", kind, typed("value", pa.int32()), BOTH),
        case(
            "double for bigint", kind, typed("value", pa.float64()),
            Refused("'value' of the file .* is of type double; the table has bigint"), value=2.5,
        ),
    )
]  # fmt: skip
CASES += [
    case("the first file lacks a column", "parquet", SCHEMA, LACKS, first=True),
    case("the first file has a new column", "parquet", MORE, BOTH, first=True),
    case("the first csv file has a new column", "csv", MORE, BOTH, first=True),
    case(
        "bigint for int", "parquet", TABLE,
        Refused("'value' of the file .* is of type bigint; the table has int"),
        table=typed("value", pa.int32()),
    ),
    case(
        "text for bigint", "parquet", typed("value", pa.string()),
        Refused("'value' of the file .*bad.* is of type string"), value="two",
    ),
    case("columns in another order", "parquet", pa.schema(list(TABLE)[::-1]), BOTH),
    case("columns in another order", "csv", pa.schema(list(TABLE)[::-1]), BOTH),
    case(
        "a time as text in one file", "parquet", typed("expires_at", pa.string()),
        Refused("'expires_at' is of type string in the file .*bad.* and of type timestamp"),
        expires_at=at(4).isoformat(),
    ),
    case("nanoseconds", "parquet", typed("inserted_at", pa.timestamp("ns", "UTC")), BOTH),
    case("milliseconds", "parquet", typed("inserted_at", pa.timestamp("ms", "UTC")), BOTH),
    case(
        "a name in other letters", "parquet",
        TABLE.set(5, pa.field("VALUE", pa.int64())), LACKS, VALUE=2,
    ),
    # JSON says no types and may leave out what is null: a value that does not fit is a bad row.
    case("a file lacks a column", "json", SCHEMA, BOTH),
    case("a file has a new column", "json", MORE, BOTH),
    case("a new column is to fail", "json", MORE, NEW, source=FAIL),
    case(
        "text for bigint", "json", TABLE, Taken([0, 1], {2: "not readable as a record"}),
        value="two",
    ),
]  # fmt: skip
XML = {"options": {"rowTag": "row"}}
CASES += [
    # In XML too a record may leave out what is null.
    case("a file lacks a column", "xml", SCHEMA, BOTH, source=XML),
    case("a file has a new column", "xml", MORE, BOTH, source=XML),
    case("a new column is to fail", "xml", MORE, NEW, source=FAIL | XML),
    case("a whole number for double", "xml", TABLE, BOTH, source=XML,
         table=typed("value", pa.float64())),
    case(
        "text for bigint", "xml", TABLE, Taken([0, 1], {2: "not readable as a record"}),
        value="two", source=XML,
    ),
    # Options that choose files leave no file out that is read, and take in none that is not.
    case("a chosen file lacks a column", "parquet", SCHEMA, LACKS,
         source={"options": {"pathGlobFilter": "*_bad.parquet"}}),
    case("a file that is not chosen", "parquet", SCHEMA, Taken([0, 1]),
         source={"options": {"pathGlobFilter": "m.*"}}),
    case("a file that is too new", "parquet", SCHEMA, Taken([0]),
         source={"options": {"modifiedBefore": "2024-03-01T00:00:00"}}),
    case("a commented csv file lacks a column", "csv", SCHEMA, LACKS,
         source={"options": {"comment": "#"}}),
    Case(
        "csv without headers goes by position, and a short line is bad",
        lambda workspace: (
            (workspace.source / "a.csv").write_text(f"1,k,{T},{T},{LATER},1\n"),
            (workspace.source / "b.csv").write_text(f"2,k,{T},{T},{LATER}\n"),
        ),
        Taken([0, 1], {2: "not readable as a record"}),
        {"source": {"format": "csv", "options": {"header": "false"}}}, TABLE,
    ),
]  # fmt: skip


@lines(CASES)
def test_columns_that_differ(spark: SparkSession, workspace: Workspace, case: Case) -> None:
    meet(spark, workspace, case)


def test_what_was_widened_and_left_out_is_committed(
    spark: SparkSession, workspace: Workspace
) -> None:
    """One update that meets a new column, an int for a bigint, nanoseconds and another order."""
    put(workspace, "a.parquet", [row(1, 0.1, 4, value=1, extra="x")], MORE)
    put(workspace, "b.parquet", [row(2, 0.1, 4, value=2)], typed("value", pa.int32()))
    put(workspace, "c.parquet", [row(3, 0.1, 4, value=3)], pa.schema(list(TABLE)[::-1]))
    late = row(4, 0.1, 4, value=4)
    nanoseconds = typed("inserted_at", pa.timestamp("ns", "UTC"))
    put(workspace, "d.parquet", [late], nanoseconds)
    index = make_table(workspace, [STORED | {"value": None}], TABLE)
    assert Updater(spark, index).preview()["new_columns"] == ["extra"]
    assert "left out (source.new_columns): extra" in tidetable("check", workspace.yaml).out
    list(Updater(spark, index).catch_up(1))
    stored = {one["id"]: one for one in workspace.stored()}
    assert {number: one["value"] for number, one in stored.items()} == {
        0: None,
        1: 1,
        2: 2,
        3: 3,
        4: 4,
    }
    assert stored[4]["inserted_at"] == late["inserted_at"]


def test_where_only_spark_looks_check_says_so(spark: SparkSession, workspace: Workspace) -> None:
    put(workspace, "a.parquet", [ONE], TABLE)
    odd = {"options": {"modifiedBefore": "2999-01-01", "pathGlobFilter": "*.parquet"}}
    make_table(workspace, [STORED | {"value": None}], TABLE, source=odd)
    said = tidetable("check", workspace.yaml).sentence
    assert "warning: Not every file is asked for its columns" in said
    assert "warning" not in tidetable("check", workspace.describe()).err


FIRST = [
    Case(
        "a file lacks a column that another one has",
        pair("parquet", SCHEMA),
        Refused("bad.parquet has no column 'value', which the file .*m.parquet has"), table=None,
    ),
    Case("int and bigint", pair("parquet", typed("value", pa.int32())), Taken([1, 2]), table=None),
    Case(
        "names that differ in case only",
        pair("parquet", TABLE.append(pa.field("VALUE", pa.int64()))),
        Refused("has the columns 'value', 'VALUE': names must differ"), table=None,
    ),
    Case(
        "a name with a blank",
        pair("parquet", TABLE.append(pa.field("my value", pa.int64()))),
        Refused("has no column 'my value'"), table=None,
    ),
]  # fmt: skip


@lines(FIRST)
def test_files_that_differ_before_there_is_a_table(
    spark: SparkSession, workspace: Workspace, case: Case
) -> None:
    meet(spark, workspace, case)
