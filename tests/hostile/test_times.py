"""Times at every edge: what lies outside of the years 1 to 9999 is unreadable, not fatal.

All lines of one type of column are rows of one source, so that they cost one index together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.hostile.harness import reasons_by_id
from tests.workspace import SCHEMA, Workspace, at, row
from tidetable.config import Index
from tidetable.engine.updater import Updater
from tidetable.table import read
from tidetable.table.restriction import Restriction

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOWEST, HIGHEST = -(2**63), 2**63 - 1
LIVE, DEAD = "live", "dead on arrival"
NO_ARRIVAL = "no readable arrival time"
NO_INSERTION = "no readable insertion time"
NO_EXPIRY = "no readable expiration time"
OUTLIVES = "outlives the longest lifetime"
DIES_FIRST = "expires before it was inserted"

Line = tuple[str, str, Any, str]
"""What it is, the column, the value, and what becomes of the row."""


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


YEAR_1 = micros(datetime(1, 1, 1, tzinfo=UTC))
YEAR_9999 = micros(datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))

TYPED: Sequence[Line] = [
    ("arrives at the lowest integer", "arrived_at", LOWEST, NO_ARRIVAL),
    ("arrives at the highest integer", "arrived_at", HIGHEST, NO_ARRIVAL),
    ("arrives before the year 1", "arrived_at", YEAR_1 - 1, NO_ARRIVAL),
    ("inserted at the lowest integer", "inserted_at", LOWEST, NO_INSERTION),
    ("inserted in the year -290308", "inserted_at", LOWEST + 10**9, NO_INSERTION),
    ("inserted at the highest integer", "inserted_at", HIGHEST, NO_INSERTION),
    ("inserted before the year 1", "inserted_at", YEAR_1 - 1, NO_INSERTION),
    ("inserted as the year 1 begins", "inserted_at", YEAR_1, LIVE),
    ("inserted before 1582", "inserted_at", micros(datetime(1500, 2, 28, tzinfo=UTC)), LIVE),
    ("inserted before 1970", "inserted_at", -1, LIVE),
    ("inserted after the year 9999", "inserted_at", YEAR_9999 + 1, NO_INSERTION),
    ("expires at the lowest integer", "expires_at", LOWEST, NO_EXPIRY),
    ("expires near the lowest integer", "expires_at", LOWEST + 1, NO_EXPIRY),
    ("expires at the highest integer", "expires_at", HIGHEST, NO_EXPIRY),
    ("expires before the year 1", "expires_at", YEAR_1 - 1, NO_EXPIRY),
    ("expires as the year 1 begins", "expires_at", YEAR_1, DIES_FIRST),
    ("expires with the year 9999", "expires_at", YEAR_9999, OUTLIVES),
    ("expires after the year 9999", "expires_at", YEAR_9999 + 1, NO_EXPIRY),
    ("expires at the end of its slot", "expires_at", micros(at(1)), DEAD),
    ("expires a microsecond later", "expires_at", micros(at(1)) + 1, LIVE),
    ("lives as long as it may", "expires_at", micros(at(6.5)), LIVE),
    ("lives a microsecond longer", "expires_at", micros(at(6.5)) + 1, OUTLIVES),
]  # fmt: skip

TEXT: Sequence[Line] = [
    ("arrives in the year 0", "arrived_at", "0000-12-31T23:59:59Z", NO_ARRIVAL),
    ("arrives in a year of five digits", "arrived_at", "10000-01-01T00:00:00Z", NO_ARRIVAL),
    ("in the year 0 by its zone", "inserted_at", "0001-01-01T00:00:00+01:00", NO_INSERTION),
    ("inserted in the year 1", "inserted_at", "0001-01-01T00:00:00Z", LIVE),
    ("inserted in a year below zero", "inserted_at", "-290308-12-21T19:59:05Z", NO_INSERTION),
    ("inserted as a number", "inserted_at", "1709251500", NO_INSERTION),
    ("inserted on 30 February", "inserted_at", "2024-02-30T00:00:00Z", NO_INSERTION),
    ("inserted in a leap second", "inserted_at", "2016-12-31T23:59:60Z", NO_INSERTION),
    ("inserted in no zone of the earth", "inserted_at", "2024-03-01T00:00:00+19:00", NO_INSERTION),
    ("inserted with a comma", "inserted_at", "2024-03-01T00:00:00,5Z", NO_INSERTION),
    ("inserted with nine digits", "inserted_at", "2024-03-01T00:04:59.999999999Z", LIVE),
    ("inserted without seconds", "inserted_at", "2024-03-01T00:04Z", LIVE),
    ("inserted in another zone", "inserted_at", "2024-02-29T19:04:00-05:00", LIVE),
    ("in the year 10000 by its zone", "expires_at", "9999-12-31T23:59:59-01:00", NO_EXPIRY),
    ("expires at infinity", "expires_at", "infinity", NO_EXPIRY),
    ("expires now", "expires_at", "now", NO_EXPIRY),
    ("expires with blanks", "expires_at", " 2024-03-01T00:30:00Z ", NO_EXPIRY),
]  # fmt: skip


def numbered(table: Sequence[Line], *types: str) -> list[Any]:
    return [
        pytest.param(kind, number, line, id=f"{kind}: {line[0]}")
        for kind in types
        for number, line in enumerate(table)
    ]


def typed(kind: pa.DataType, table: Sequence[Line]) -> pa.Table:
    """A row for each line, with its hostile value as the number that a file holds."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for number, (_, hostile, value, _) in enumerate(table):
        good = row(number, 0.5, 3)
        for name in SCHEMA.names:
            time = micros(good[name]) if isinstance(good[name], datetime) else good[name]
            columns[name].append(value if name == hostile else time)
    arrays = {
        name: pa.array(values, pa.int64()).view(kind) if name.endswith("_at") else pa.array(values)
        for name, values in columns.items()
    }
    return pa.table(arrays)


@pytest.fixture(scope="module")
def met(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """By type of column: what became of the rows; the update after it finds nothing more."""
    outcomes = {}
    for kind in ("timestamp", "timestamp_ntz", "text"):
        folder: Path = tmp_path_factory.mktemp(kind)
        workspace = Workspace(folder)
        source: dict[str, Any] = {}
        if kind == "text":
            source = {"format": "csv", "schema": "id bigint"}
            lines = enumerate(TEXT)
            workspace.add_csv([row(n, 0.5, 3) | {line[1]: line[2]} for n, line in lines])
        else:
            zone = "UTC" if kind == "timestamp" else None
            source = {} if zone else {"timezone": "UTC"}
            table = typed(pa.timestamp("us", zone), TYPED)
            pq.write_table(table, workspace.source / "rows.parquet")
        index = workspace.index(source=source)
        first, then = list(Updater(spark, index).catch_up(1)), workspace.ids()
        outcomes[kind] = (then, reasons_by_id(workspace, index), first[-1].dead_on_arrival, index)
        list(Updater(spark, index).catch_up(2))
        assert reasons_by_id(workspace, index) == outcomes[kind][1]
    return outcomes


@pytest.mark.parametrize(
    ("kind", "number", "line"),
    [*numbered(TYPED, "timestamp", "timestamp_ntz"), *numbered(TEXT, "text")],
)
def test_a_time_at_the_edge(met: Mapping[str, Any], kind: str, number: int, line: Line) -> None:
    live, reasons, dead, _ = met[kind]
    outcome = LIVE if number in live else reasons.get(number, DEAD)
    assert outcome == line[3]
    assert dead == (kind != "text")


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "text"])
def test_what_was_taken_can_be_read_without_spark(met: Mapping[str, Any], kind: str) -> None:
    index: Index = met[kind][3]
    found = [one for b in read.batches(read.view(index), Restriction()) for one in read.rows(b)]
    assert found


def test_a_lifetime_that_leads_out_of_all_years(spark: SparkSession, workspace: Workspace) -> None:
    """Neither the interval nor the sum may overflow; a division by zero is no lifetime either."""
    values = [20, 2**62, -(2**62), 2**36, 0, None]
    schema = pa.schema([*SCHEMA][:-1]).append(pa.field("seconds", pa.int64()))
    rows = [row(n, 0.5, 0, seconds=value) for n, value in enumerate(values)]
    rows.append(row(6, 0.5, 0, seconds=20) | {"inserted_at": datetime(9999, 12, 31, tzinfo=UTC)})
    workspace.add([{name: one[name] for name in schema.names} for one in rows], schema=schema)
    lifetime = "make_dt_interval(0, 0, 0, 24000 / seconds * seconds / 20 * (seconds / 20))"
    index = workspace.index(expires_at=None, lifetime=lifetime)
    list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == [0]
    assert reasons_by_id(workspace, index) == {
        1: NO_EXPIRY, 2: NO_EXPIRY, 3: NO_EXPIRY, 4: NO_EXPIRY, 5: NO_EXPIRY,
        6: "inserted after it arrived",
    }  # fmt: skip


def test_one_column_for_arrival_and_insertion(spark: SparkSession, workspace: Workspace) -> None:
    """A time that cannot be read is quarantined once, not by every update again."""
    workspace.add(
        [row(n, 0.5, 3) for n in range(3)]
        + [row(n, 0.5, 3) | {"arrived_at": None} for n in range(3, 6)]
    )
    index = workspace.index(inserted_at="arrived_at")
    list(Updater(spark, index).catch_up(2))
    assert reasons_by_id(workspace, index) == dict.fromkeys(range(3, 6), NO_ARRIVAL)


def test_a_date_is_midnight_in_the_zone_of_the_source(
    spark: SparkSession, workspace: Workspace
) -> None:
    """On 31 March 2024 Paris went from 1 to 2 hours before UTC: that day has 23 hours."""
    names = ("arrived_at", "inserted_at", "expires_at")
    schema = pa.schema([(f.name, pa.date32() if f.name in names else f.type) for f in SCHEMA])
    days = [date(2024, 3, 31), date(2024, 3, 31), date(2024, 4, 1)]
    rows = [{"id": 1, "key": "k", **dict(zip(names, days, strict=True))}]
    workspace.add(rows, schema=schema)
    day = {"start": "2024-03-30T00:00:00Z", "update_every": "1d", "longest_lifetime": "3d"}
    index = workspace.index(**day, source={"timezone": "Europe/Paris"})
    list(Updater(spark, index).catch_up(1))
    (found,) = workspace.stored()
    assert found["arrived_at"] == datetime(2024, 3, 30, 23, tzinfo=UTC)
    assert found["expires_at"] == datetime(2024, 3, 31, 22, tzinfo=UTC)
