"""Tasks write in Arrow what Spark would have written: values of every type, and their bounds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tests.workspace import SCHEMA, Row, Workspace, log_of, row
from tidetable.config import Index
from tidetable.core.errors import Replay, UserError
from tidetable.engine import parts, swap
from tidetable.engine.create import create_table
from tidetable.engine.rebuild import rebuild
from tidetable.engine.updater import Updater
from tidetable.engine.workbench import Workbench
from tidetable.table.damage import DamagedTable
from tidetable.table.place import INCOMING

pytestmark = pytest.mark.spark

NESTED = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
COLUMNS = pa.schema(
    [
        *SCHEMA,
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("whole", pa.int32()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(9, 2)),
        ("amount", pa.decimal128(18, 4)),
        ("huge", pa.decimal128(38, 10)),
        ("names", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("nested", NESTED),
        ("many", pa.list_(NESTED)),
    ]
)
WITH_BOUNDS = [
    "tiny", "small", "whole", "single", "double", "text", "day", "moment", "price", "amount", "huge"
]  # fmt: skip
VALUES: list[dict[str, Any]] = [
    {
        "flag": True, "tiny": -128, "small": 32767, "whole": -(2**31), "single": 1.5,
        "double": -0.0, "text": "ä" * 300, "bytes": b"\xff\x00", "day": date(1, 1, 1),
        "moment": datetime(1500, 10, 5, 1, 2, 3, 4, UTC),
        "price": Decimal("-1234567.89"), "amount": Decimal("0.0001"),
        "huge": Decimal("1234567890123456789012345678.0000000001"),
        "names": ["x", None, ""], "counts": [("k", 1), ("l", None)],
        "nested": {"a": 1, "b": {"c": "z"}}, "many": [{"a": None, "b": None}, None],
    },
    {
        "flag": False, "tiny": 127, "small": -1, "whole": 0, "single": -0.0, "double": 2.5,
        "text": "", "bytes": b"", "day": date(2024, 2, 29),
        "moment": datetime(2024, 3, 1, tzinfo=UTC),
        "price": Decimal("0.00"), "amount": Decimal("-99999999999999.9999"),
        "huge": Decimal("-0.0000000001"), "names": [], "counts": [],
        "nested": {"a": None, "b": {"c": None}}, "many": [],
    },
    {name: None for name in COLUMNS.names if name not in SCHEMA.names},
]  # fmt: skip


def rows_of_every_type() -> Iterator[Row]:
    for number in range(24):
        arrived = number // 4 - 0.5
        yield {**row(number, arrived, arrived + 1 + number % 4), **VALUES[number % 3]}


def as_texts(frame: DataFrame) -> Counter[str]:
    """The rows as a multiset, each value as it is told apart: 0.0 is not -0.0, nor null empty."""
    names = [f"`{name}`" for name in COLUMNS.names]
    return Counter(str(line) for line in frame.selectExpr(*names).collect())


def made(spark: SparkSession, workspace: Workspace, **changes: Any) -> Index:
    workspace.add(rows_of_every_type(), schema=COLUMNS)
    index = workspace.index(statistics=WITH_BOUNDS, **changes)
    list(Updater(spark, index).catch_up(1))
    return index


@pytest.mark.parametrize("scheme", [{"name": "sweep", "groups": 3}, {"name": "rebuild"}])
def test_values_of_every_type_stay_what_they_are(
    spark: SparkSession,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    scheme: dict[str, Any],
) -> None:
    """Written new, written again several times, and rebuilt."""
    if scheme["name"] == "rebuild":
        scheme = {**scheme, "insertion": 2, "expiration": 2}
    index = made(spark, workspace, scheme=scheme)
    monkeypatch.setattr(Workbench, "written", None)  # Spark's Delta writes none of it
    for slot in (2, 3):
        list(Updater(spark, index).catch_up(slot))
    rebuild(Updater(spark, index))
    source = spark.read.parquet(str(workspace.source))
    end = index.timeline.end_of(3).isoformat()
    live = source.where(f"arrived_at <= timestamp '{end}' AND expires_at > timestamp '{end}'")
    assert live.count() > 3
    assert as_texts(spark.read.format("delta").load(index.table)) == as_texts(live)


def test_their_bounds_are_those_that_spark_finds_in_the_same_files(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Spark cuts times off below a millisecond; of texts that are cut, any end will do."""
    index = made(spark, workspace)
    list(Updater(spark, index).catch_up(2))
    log = log_of(index)
    twin = workspace.index(table=str(workspace.folder / "twin"), statistics=WITH_BOUNDS)
    create_table(spark, twin, StructType(swap.schema_of(log)[:-2]))
    ours = {}
    for action in (one["add"] for one in log.actions(log.version) if "add" in one):
        (file,) = [file for file in log.files if file.path == action["path"]]
        swap.rows_of(spark, log, [file]).write.format("delta").mode("append").save(twin.table)
        ours[file.path] = bounds(action)
        theirs = [bounds(one["add"]) for one in log_of(twin).actions(log_of(twin).version)
                  if "add" in one]  # fmt: skip
        assert [ours[file.path]] == theirs
    assert len(ours) > 1


def bounds(action: dict[str, Any]) -> dict[str, Any]:
    told = json.loads(action["stats"], parse_float=Decimal)
    told.pop("tightBounds", None)
    for side in ("minValues", "maxValues"):
        for name in ("inserted_at", "expires_at", "moment"):
            if name in told[side]:
                told[side][name] = told[side][name][:23]
        for name in ("single", "double"):  # 0.0 is -0.0 for whoever compares
            if told[side].get(name) is not None:
                told[side][name] = float(told[side][name])
        if len(text := told[side].get("text") or "") > 32:
            told[side]["text"] = text[:32]
    return told


def test_what_arrow_has_no_type_for_is_left_to_spark() -> None:
    assert not parts.is_plain_type(pa.month_day_nano_interval())
    assert not parts.is_plain_type(pa.struct([("a", pa.list_(pa.duration("us")))]))
    assert parts.is_plain_type(pa.map_(pa.string(), pa.list_(NESTED)))


def test_a_stored_file_that_holds_other_rows_than_the_log_says_is_named(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Somebody has replaced it: every stored row has to be seen once, or nothing is committed."""
    index = made(spark, workspace, scheme={"name": "sweep", "groups": 1})
    before = log_of(index)
    file = next(iter(before.files))
    path = Path(index.table) / file.path
    table = pq.ParquetFile(path).read()
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)
    with pytest.raises(DamagedTable, match=f"{file.path} .*holds {file.rows + 1} rows") as caught:
        list(Updater(spark, index).catch_up(2))
    assert isinstance(caught.value.remedy, Replay)
    assert log_of(index).version == before.version
    assert not any((Path(index.table) / INCOMING).glob("*"))


def test_what_is_refused_leaves_no_file(spark: SparkSession, workspace: Workspace) -> None:
    """Too many bad rows are known only when the files are there."""
    index = made(spark, workspace, quality={"bad_rows_max": "10%"})
    bad = [{**row(900 + n, 1.5, 3, key=""), **VALUES[2]} for n in range(9)]
    workspace.add(bad, schema=COLUMNS)
    version = log_of(index).version
    with pytest.raises(UserError, match="bad_rows_max allows 10%"):
        list(Updater(spark, index).catch_up(2))
    assert log_of(index).version == version
    assert not any((Path(index.table) / INCOMING).glob("*"))
