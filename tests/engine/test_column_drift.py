"""Files whose columns differ: one outcome each, whichever of them comes first."""

from __future__ import annotations

from itertools import permutations

import pytest
from pyspark.sql import types as T

from tidetable.config.source import NewColumns
from tidetable.core.errors import UserError
from tidetable.engine.column_drift import Agreed, agreed, fits
from tidetable.engine.footer_schema import FileColumns


def schema(text: str) -> T.StructType:
    """`id int, key string`, without asking a JVM."""
    kinds = {
        "tinyint": T.ByteType(), "smallint": T.ShortType(), "int": T.IntegerType(),
        "bigint": T.LongType(), "float": T.FloatType(), "double": T.DoubleType(),
        "string": T.StringType(), "date": T.DateType(), "timestamp": T.TimestampType(),
        "dec5_2": T.DecimalType(5, 2), "dec10_2": T.DecimalType(10, 2),
        "dec10_0": T.DecimalType(10, 0), "dec21_2": T.DecimalType(21, 2),
    }  # fmt: skip
    pairs = (part.split() for part in text.split(", "))
    return T.StructType([T.StructField(name, kinds[kind]) for name, kind in pairs])


def file(name: str, text: str) -> FileColumns:
    return FileColumns(name, {field.name: field.dataType for field in schema(text)})


def met(files: list[FileColumns], table: str | None, new: NewColumns = NewColumns.IGNORE) -> Agreed:
    """The same outcome in any order."""
    known = None if table is None else schema(table)
    outcomes = []
    for order in permutations(files):
        try:
            outcomes.append(agreed(order, known, frozenset({"at"}), new))
        except UserError as error:
            outcomes.append(error)
    kinds = {type(one) for one in outcomes}
    assert len(kinds) == 1
    if isinstance(outcomes[0], UserError):
        raise outcomes[0]
    first = outcomes[0]
    assert all(set(one.names) == set(first.names) for one in outcomes)
    assert all(one.types == first.types and one.new == first.new for one in outcomes)
    return first


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("tinyint", "smallint"), ("int", "bigint"), ("float", "double"), ("int", "double"),
        ("dec5_2", "dec10_2"), ("int", "dec10_0"), ("bigint", "dec21_2"),
    ],
)  # fmt: skip
def test_a_narrower_type_is_widened_and_a_wider_one_refused(narrow: str, wide: str) -> None:
    both = [file("a", f"id {narrow}"), file("b", f"id {wide}")]
    assert met(both, f"id {wide}").types == {"id": schema(f"id {wide}")["id"].dataType}
    assert met(both, None).types == {"id": schema(f"id {wide}")["id"].dataType}
    assert len(met(both, None).groups) == 2
    with pytest.raises(UserError, match=r"'id' of the file b is of type .*the table has"):
        met(both, f"id {narrow}")


@pytest.mark.parametrize(
    ("one", "other"),
    [("bigint", "double"), ("string", "int"), ("date", "timestamp"), ("dec10_2", "dec10_0")],
)
def test_types_of_which_neither_holds_the_other(one: str, other: str) -> None:
    assert not fits(schema(f"x {one}")["x"].dataType, schema(f"x {other}")["x"].dataType)
    assert not fits(schema(f"x {other}")["x"].dataType, schema(f"x {one}")["x"].dataType)
    for table in (f"id {one}", None):
        with pytest.raises(UserError, match=r"'id' of the file [ab] is of type"):
            met([file("a", f"id {one}"), file("b", f"id {other}")], table)


def test_a_column_that_a_file_lacks_is_never_made_up() -> None:
    files = [file("a", "id int, key string"), file("b", "id int")]
    with pytest.raises(UserError, match="file b has no column 'key', which the table has"):
        met(files, "id int, key string")
    with pytest.raises(UserError, match="file b has no column 'key', which the file a has"):
        met(files, None)


def test_a_new_column_is_left_out_or_refused() -> None:
    files = [file("a", "id int"), file("b", "id int, more string")]
    found = met(files, "id int")
    assert (found.names, found.new, len(found.groups)) == (("id",), {"more": "b"}, 1)
    with pytest.raises(UserError, match=r"file b has the column 'more'.*new_columns is fail"):
        met(files, "id int", NewColumns.FAIL)


def test_times_of_a_batch_are_of_one_type() -> None:
    files = [file("a", "at string"), file("b", "at timestamp")]
    with pytest.raises(UserError, match="'at' is of type string in the file a and"):
        met(files, "at timestamp")
    assert met(files[:1], "at timestamp").types == {"at": None}


def test_names_that_differ_only_in_case() -> None:
    with pytest.raises(UserError, match="file a has the columns 'id', 'ID'"):
        met([file("a", "id int, ID int")], None)


def test_what_spark_alone_can_tell_is_left_to_it() -> None:
    odd = FileColumns("a", {"id": None})
    assert met([odd], None).types == {"id": None}
    assert met([odd], "id int").types == {"id": T.IntegerType()}
