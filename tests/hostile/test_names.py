"""Names and keys that mean something to SQL, to Spark or to Java: they are only text here."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.cli.handmade import make_table
from tests.workspace import SCHEMA, Workspace, row
from tidetable.config import Index
from tidetable.core.errors import UserError
from tidetable.engine import reading
from tidetable.engine.sql import delta_table, quoted, sql_text
from tidetable.table import read
from tidetable.table.restriction import Restriction, value_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [
    "x`y", "a[b", "a]b", "a%20b", "a\\b", "a.b", "a:b", 'a"b', "a'b", "a#b", "a/b", "*", "münchen",
    "select", "$x", "a--b", "_x", "a${b", "-1",
]  # fmt: skip
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "variables": (
        pa.string(),
        ["${spark.app.name}", "${env:HOME}", "${system:user.dir}", "${x:-y}", "$${x}", "plain"],
    ),
    "dates": (
        pa.date32(),
        [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 5), date(1582, 10, 10),
         date(1582, 10, 14), date(1582, 10, 15), date(1899, 12, 31), date(9999, 12, 31)],
    ),
    "times": (
        pa.timestamp("us", "UTC"),
        [datetime(year, 1, 2, 3, 4, 5, 6, tzinfo=UTC) for year in (2, 1500, 1676, 1678, 9998)]
        + [datetime(1582, 10, 10, tzinfo=UTC)],
    ),
    "times without a zone": (
        pa.timestamp("us"),
        [datetime(year, 1, 2, 3, 4, 5, 6) for year in (1, 1500, 1678, 9999)]  # noqa: DTZ001
        + [datetime(1582, 10, 10)],  # noqa: DTZ001
    ),
    "numbers": (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
}  # fmt: skip


def keyed(workspace: Workspace, kind: str) -> Index:
    """An index whose key is of that kind, with a row for each key."""
    data_type, keys = KEYS[kind]
    schema = SCHEMA.set(SCHEMA.get_field_index("key"), pa.field("key", data_type))
    return make_table(workspace, [row(n, 0, 3, key=key) for n, key in enumerate(keys)], schema)


def typed(key: Any) -> str:
    return key.isoformat() if isinstance(key, date) else str(key)


# -- without a JVM ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_finds_its_own_row_through_delta_rs(workspace: Workspace, kind: str) -> None:
    seen = read.view(keyed(workspace, kind))
    keys = KEYS[kind][1]
    for number, key in enumerate(keys):
        found = read.sorted_rows(seen, Restriction(keys=(typed(key),)))
        assert [(one["id"], one["key"]) for one in found] == [(number, key)], key
    middle = sorted(keys)[len(keys) // 2]
    assert read.count(seen, Restriction(key_from=typed(middle))) == sum(
        key >= middle for key in keys
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_key_column_of_any_name_is_read_through_delta_rs(workspace: Workspace, name: str) -> None:
    schema = SCHEMA.set(SCHEMA.get_field_index("key"), pa.field(name, pa.string()))
    good = {**row(1, 0, 3), name: "k"}
    index = make_table(workspace, [good], schema, key=name)
    (found,) = read.sorted_rows(read.view(index), Restriction(keys=("k",)))
    assert found[name] == "k"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("1e400", pa.decimal128(9, 2)),
        ("0000-01-01", pa.date32()),
        ("10000-01-01", pa.date32()),
        ("1500-01-01T00:00:00Z", pa.timestamp("us")),
        ("\udcff", pa.string()),
    ],
)
def test_what_no_key_can_be_is_a_sentence(key: str, kind: pa.DataType) -> None:
    with pytest.raises(UserError, match="is not a value of the key 'k'"):
        value_of(key, kind, "k")


def test_a_number_beyond_the_column_finds_no_key_and_bounds_all(workspace: Workspace) -> None:
    seen = read.view(keyed(workspace, "numbers"))
    beyond, keys = "1" * 39, KEYS["numbers"][1]
    for number in (beyond, f"-{beyond}"):
        assert read.count(seen, Restriction(keys=(number,))) == 0
    assert read.count(seen, Restriction(key_to=beyond)) == len(keys)
    assert read.count(seen, Restriction(key_from=beyond)) == 0


def test_names_and_texts_are_quoted_at_one_place() -> None:
    assert quoted("x`y") == "`x``y`"
    assert delta_table("/a `b/${c}") == "delta.`/a ``b/${c}`"
    assert sql_text("it's \\") == "'it\\'s \\\\'"


# -- with Spark ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_finds_its_own_row_through_spark(
    spark: SparkSession, workspace: Workspace, kind: str
) -> None:
    """Each alone, in one query: what filters on statistics get wrong shows only with one key."""
    seen = read.view(keyed(workspace, kind))
    frames = [
        reading.frame(spark, seen, Restriction(keys=(typed(key),))).select("id")
        for key in KEYS[kind][1]
    ]
    found = frames[0]
    for frame in frames[1:]:
        found = found.union(frame)
    assert sorted(one["id"] for one in found.collect()) == list(range(len(frames)))


def test_an_index_with_odd_names_at_an_odd_place_lives(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Made, updated and read by both engines."""
    from tidetable.engine.updater import Updater

    taken = [name for name in NAMES if "{" not in name]
    extra = {name: pa.string() for name in taken}
    nested = pa.struct([("o`dd.n[ame", pa.int64())])
    schema = pa.schema([*SCHEMA, *extra.items(), ("deep", nested)])
    values: dict[str, Any] = {**dict.fromkeys(taken, "v"), "deep": {"o`dd.n[ame": 1}}
    workspace.add([row(1, 0, 3, **values), row(2, 1, 4, **values)], schema=schema)
    workspace.add([row(3, 2, 4, **values), row(4, 2, 5, **{**values, "x`y": None})], schema=schema)
    place = workspace.folder / "a `b' #1 50% $x;=," / "t"
    index = workspace.index(table=str(place), key="x`y", quality={"bad_rows_max": 1})
    list(Updater(spark, index).catch_up(2, fold=True))
    assert (place / "_delta_log").is_dir()
    seen = read.view(index)
    probe = Restriction(keys=("v",))
    found = read.sorted_rows(seen, probe)
    assert sorted(one["id"] for one in found) == [1, 2, 3]
    assert found == sorted(
        reading.spark_rows(reading.frame(spark, seen, probe)),
        key=lambda one: [other["id"] for other in found].index(one["id"]),
    )
    assert [reason for _, reason in workspace.reasons(index)] == ["no key"]


def test_spark_puts_no_variables_into_what_it_parses(spark: SparkSession) -> None:
    (found,) = spark.range(1).selectExpr("'${spark.app.name}' AS text").collect()
    assert found["text"] == "${spark.app.name}"
