"""Whatever the source's format, the same rows make the same table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.workspace import SCHEMA, Row, Workspace, at, row
from tidetable.core.errors import TransientError, UserError
from tidetable.engine.updater import Updater
from tidetable.table import read
from tidetable.table.restriction import Restriction

pytestmark = pytest.mark.spark


def rows() -> Iterator[Row]:
    yield row(1, -0.5, 2.5)
    yield row(2, 0, 1.25)
    yield row(3, 0.123456, 3)
    yield row(4, 1, 4.000001, key='with, comma and "quotes"')


def test_every_format_gives_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
    """CSV (all text), JSON (inferred), Delta and Parquet."""
    tables = {}
    for name in ("parquet", "csv", "json", "delta"):
        folder = tmp_path / name
        folder.mkdir()
        workspace = Workspace(folder)
        if name == "parquet":
            workspace.add(rows())
        elif name == "json":
            workspace.add_json(rows())
        elif name == "csv":
            workspace.add_csv(rows())
        else:
            table = pa.Table.from_pylist([dict(one) for one in rows()], schema=SCHEMA)
            write_deltalake(str(workspace.source), table)
        source = {"format": name}
        if name == "csv":
            source["schema"] = "id bigint"
            source["options"] = {"escape": '"'}
        index = workspace.index(source=source)
        assert [report.live for report in Updater(spark, index).catch_up(1)] == [2, 4]
        tables[name] = sorted(workspace.stored(), key=lambda one: one["id"])
    assert [one["id"] for one in tables["parquet"]] == [1, 2, 3, 4]
    assert all(table == tables["parquet"] for table in tables.values())


def test_csv_columns_get_the_types_of_the_yaml(spark: SparkSession, workspace: Workspace) -> None:
    """Text where the YAML says nothing; the types stay when the table is there."""
    names = ("id", "key", "arrived_at", "inserted_at", "expires_at", "price", "day", "code")
    workspace.add_csv(
        [row(n, n - 0.5, 5, price="12.50", day="2024-03-01", code="007") for n in (0, 1)], names
    )
    schema = "id int, price decimal(10,2), day date"
    index = workspace.index(source={"format": "csv", "schema": schema})
    list(Updater(spark, index).catch_up(1))
    fields = {f.name: f.dataType.simpleString() for f in _schema(spark, workspace)}
    assert fields["id"] == "int"
    assert fields["price"] == "decimal(10,2)"
    assert fields["day"] == "date"
    assert fields["code"] == "string"
    assert fields["expires_at"] == "timestamp"
    assert {(one["id"], str(one["price"]), str(one["day"]), one["code"])
            for one in workspace.stored()} == {
        (0, "12.50", "2024-03-01", "007"), (1, "12.50", "2024-03-01", "007"),
    }  # fmt: skip
    # Columns in another order are not taken by position: the header says where they are.
    other = ("key", "id", *names[2:])
    workspace.add_csv([row(2, 1.5, 5, price="1", day="2024-03-01", code="8")], other)
    list(Updater(spark, index).catch_up(2))
    assert {(one["id"], one["code"]) for one in workspace.stored()} == {
        (0, "007"), (1, "007"), (2, "8"),
    }  # fmt: skip


def _schema(spark: SparkSession, workspace: Workspace) -> Any:
    return spark.read.format("delta").load(str(workspace.table)).schema


def test_iso_text_with_a_zone_is_the_moment_it_says(
    spark: SparkSession, workspace: Workspace
) -> None:
    """A naive text is no moment, and so the row is quarantined."""
    moment = datetime(2024, 3, 1, 0, 5, 30, 120_000, tzinfo=UTC)
    texts = [
        "2024-03-01T00:05:30.12Z",
        "2024-03-01T00:05:30.12z",
        "2024-03-01 00:05:30.120+00:00",
        "2024-03-01T02:05:30.120000+02:00",
        "2024-03-01T02:05:30.120000000+0200",
        "2024-02-29T23:05:30.12-01",
    ]
    naive = ["2024-03-01T00:05:30", "2024-03-01", "1709251530", "", "2024-03-01T25:00:00Z"]
    workspace.add_json(
        row(n, 0.9, 0) | {"inserted_at": text, "expires_at": "2024-03-01T00:40Z"}
        for n, text in enumerate([*texts, *naive])
    )
    index = workspace.index(source={"format": "json"})
    load, first = Updater(spark, index).catch_up(1)
    assert load.quarantined == 0
    assert first.reasons["no readable insertion time"] == len(naive)
    found = {one["id"]: one["inserted_at"] for one in workspace.stored()}
    assert found == dict.fromkeys(range(len(texts)), moment)
    assert {one["expires_at"] for one in workspace.stored()} == {at(4)}


def test_naive_times_need_a_zone_in_the_yaml(spark: SparkSession, workspace: Workspace) -> None:
    """Typed ones are refused, since no row could be right; with a zone both give the moment.

    On 31 March 2024 clocks in Paris went from 2 to 3: 03:30 there is 01:30 UTC, 01:30 is 00:30.
    """
    naive = pa.timestamp("us")
    schema = pa.schema(
        [(f.name, naive if pa.types.is_timestamp(f.type) else f.type) for f in SCHEMA]
    )

    def local(number: int, hour: int) -> dict[str, Any]:
        arrived = datetime(2024, 3, 31, hour, 30)  # noqa: DTZ001 (without a zone on purpose)
        return {
            "id": number, "key": "k", "arrived_at": arrived, "inserted_at": arrived,
            "expires_at": arrived.replace(hour=hour + 3),
        }  # fmt: skip

    workspace.add([local(1, 1), local(2, 3)], schema=schema)
    day = {"start": "2024-03-31T00:00:00Z", "update_every": "1h", "longest_lifetime": "4h"}
    with pytest.raises(UserError, match=r"without a zone .*timezone: Europe/Paris"):
        list(Updater(spark, workspace.index(**day)).catch_up(0))
    index = workspace.index(**day, source={"timezone": "Europe/Paris"})
    list(Updater(spark, index).catch_up(2, fold=True))
    typed = {one["id"]: (one["arrived_at"], one["expires_at"]) for one in workspace.stored()}

    (workspace.folder / "text").mkdir()
    text = Workspace(workspace.folder / "text")
    text.add_json([local(1, 1), local(2, 3)])
    index = text.index(**day, source={"timezone": "Europe/Paris", "format": "json"})
    list(Updater(spark, index).catch_up(2, fold=True))
    assert typed == {one["id"]: (one["arrived_at"], one["expires_at"]) for one in text.stored()}

    def utc(hour: int) -> datetime:
        return datetime(2024, 3, 31, hour, 30, tzinfo=UTC)

    assert typed == {1: (utc(0), utc(2)), 2: (utc(1), utc(4))}
    assert text.slots() == {1: (1, 3), 2: (2, 5)}


def test_a_key_of_bytes_can_be_probed(spark: SparkSession, workspace: Workspace) -> None:
    """Delta keeps no statistics for bytes; without them a probe reads more, and finds the same."""
    schema = SCHEMA.set(1, pa.field("key", pa.binary()))
    workspace.add([row(n, n - 0.5, 3) | {"key": b"k%d" % n} for n in range(2)], schema=schema)
    index = workspace.index()
    list(Updater(spark, index).catch_up(1))
    probe = Restriction(keys=(b"k1".hex(),))
    found = [one for batch in read.batches(read.view(index), probe) for one in read.rows(batch)]
    assert [(one["id"], one["key"]) for one in found] == [(1, b"k1")]


def test_only_the_paths_of_the_slots_asked_for_are_read(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Folders by day and hour. A row exactly at midnight may lie in the folder of the new day."""

    def put(folder: str, one: Row) -> None:
        place = workspace.source / folder
        place.mkdir(parents=True, exist_ok=True)
        workspace.add([one]).rename(place / "rows.parquet")

    start = {"start": "2024-03-01T22:00:00Z", "update_every": "1h", "longest_lifetime": "6h"}
    hour = 6  # in slots of the workspace
    put("2024-03-01/22", row(1, 22.5 * hour, 26 * hour))
    put("2024-03-01/23", row(2, 23.5 * hour, 26 * hour))
    put("2024-03-02/00", row(3, 24 * hour, 26 * hour))
    put("2024-03-02/04", row(4, 28.5 * hour, 30 * hour))
    # Never asked for: whoever reads it fails.
    broken = workspace.source / "2024-03-02/09"
    broken.mkdir(parents=True)
    (broken / "rows.parquet").write_text("no Parquet at all")
    path = str(workspace.source / "{%Y-%m-%d}/{%H}")
    index = workspace.index(**start, source={"path": path})
    reports = list(Updater(spark, index).catch_up(2))
    assert [(report.slot, report.live) for report in reports] == [(0, 0), (1, 1), (2, 3)]
    assert workspace.slots() == {1: (1, 4), 2: (2, 4), 3: (2, 4)}
    # Slots 3 to 6 have no folder at all; slot 7 has one.
    reports = list(Updater(spark, index).catch_up(7, fold=True))
    assert [(report.inserted, report.expired) for report in reports] == [(1, 3)]


def test_a_source_that_is_not_there_is_said_so(spark: SparkSession, workspace: Workspace) -> None:
    """So is one without files: the table could have no columns."""
    index = workspace.index(source={"path": str(workspace.folder / "nowhere" / "{%Y}")})
    with pytest.raises(UserError, match=r"no source at .*nowhere"):
        list(Updater(spark, index).catch_up(0))
    with pytest.raises(UserError, match=r"no file in .* yet, so nobody knows the columns"):
        list(Updater(spark, workspace.index()).catch_up(0))
    assert not workspace.table.exists()


def test_a_file_that_cannot_be_read_is_named(spark: SparkSession, workspace: Workspace) -> None:
    """It may be half written, so the next attempt can succeed."""
    workspace.add([row(1, -0.5, 3)])
    index = workspace.index()
    list(Updater(spark, index).catch_up(0))
    broken = workspace.add_text("PAR1, and then the disk was full", "parquet")
    with pytest.raises(TransientError, match=rf"{broken.name} of the source cannot be read"):
        list(Updater(spark, index).catch_up(1))
    broken.unlink()
    assert [report.slot for report in Updater(spark, index).catch_up(1)] == [1]


def test_alternatives_in_braces_are_found(spark: SparkSession, workspace: Workspace) -> None:
    """Braces with a comma are Spark's, not a placeholder."""
    for name in ("a", "b", "c"):
        (workspace.source / name).mkdir()
        workspace.add([row(ord(name), -0.5, 3)]).rename(workspace.source / name / "x.parquet")
    index = workspace.index(source={"path": str(workspace.source / "{a,b}")})
    list(Updater(spark, index).catch_up(0))
    assert workspace.ids() == [ord("a"), ord("b")]


def test_a_lifetime_takes_the_place_of_an_expiration_column(
    spark: SparkSession, workspace: Workspace
) -> None:
    """An SQL interval, also one made from a column of the row."""
    schema = pa.schema([*SCHEMA][:-1]).append(pa.field("minutes", pa.int32()))
    workspace.add(
        [row(1, 0.5, 0, minutes=12) | {"expires_at": None}, row(2, 0.5, 0, minutes=None)],
        schema=schema,
    )
    index = workspace.index(expires_at=None, lifetime="make_dt_interval(0, 0, minutes)")
    reports = list(Updater(spark, index).catch_up(1))
    assert reports[-1].reasons == {"no readable expiration time": 1}
    assert {one["id"]: one["_expires_at"] for one in workspace.stored()} == {1: at(1.7)}
    assert workspace.slots() == {1: (1, 2)}
