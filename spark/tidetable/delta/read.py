"""Reading an index: probes and scans, without a JVM (delta-rs) or with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import QueryBuilder

from tidetable.core.config import Index
from tidetable.delta.columns import CELL_E, CELL_G, quoted
from tidetable.delta.log import Log, arrow
from tidetable.delta.restriction import DATAFUSION, SPARK, Restriction
from tidetable.delta.table import IndexTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(frozen=True)
class View:
    """An index as of one update, ready to be read."""

    index: Index
    log: Log
    slot: int
    as_of: datetime

    @property
    def schema(self) -> pa.Schema:
        """All of the table's columns; `columns` are those a reader gets."""
        return pa.schema(self.log.table.schema().to_arrow())

    @property
    def columns(self) -> list[str]:
        """The user's columns and the two slots; the cell is nobody's business."""
        return [name for name in self.schema.names if name not in (CELL_G, CELL_E)]


def view(index: Index, slot: int | None = None) -> View:
    """The index as it stands, or as it was after an earlier update."""
    table = IndexTable(index)
    if slot is None:
        state = table.required_state()
        return View(index, state.log, state.slot, table.as_of(state.slot))
    log, note = table.log_at(slot)
    return View(index, log, note.slot, table.as_of(note.slot))


def batches(view: View, restriction: Restriction) -> Iterator[pa.RecordBatch]:
    """The rows through delta-rs, in batches as they come."""
    where = restriction.sql(view.index, view.schema, view.as_of, DATAFUSION)
    yield from arrow(view.log.table.scan(columns=view.columns, predicate=where))


def count(view: View, restriction: Restriction) -> int:
    """How many rows; unrestricted from the log alone."""
    where = restriction.sql(view.index, view.schema, view.as_of, DATAFUSION)
    if where is None:
        return view.log.rows
    query = QueryBuilder().register("t", view.log.table)
    answer = arrow(query.execute(f"SELECT count(*) AS n FROM t WHERE {where}"))
    return int(answer.read_all().column("n")[0].as_py())


def frame(spark: SparkSession, view: View, restriction: Restriction) -> DataFrame:
    """The rows as a Spark DataFrame."""
    where = restriction.sql(view.index, view.schema, view.as_of, SPARK)
    table = (
        spark.read.format("delta").option("versionAsOf", view.log.version).load(view.index.table)
    )
    if where is not None:
        table = table.where(where)
    return table.select(*[quoted(name) for name in view.columns])


def rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as Python values. (pyarrow's own conversion of times imports pandas: a second.)"""
    columns = [
        _moments(column) if pa.types.is_timestamp(column.type) else column.to_pylist()
        for column in batch.columns
    ]
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _moments(column: pa.Array) -> list[datetime | None]:
    zone = None if column.type.tz is None else UTC
    epoch = datetime(1970, 1, 1, tzinfo=zone)
    per_unit = {"s": 1_000_000, "ms": 1_000, "us": 1}[column.type.unit]
    return [
        None if since is None else epoch + timedelta(microseconds=since * per_unit)
        for since in column.cast(pa.int64()).to_pylist()
    ]


def spark_row(row: Row) -> dict[str, Any]:
    """A row of Spark's as delta-rs would give it: PySpark hands out times in the local zone."""
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value
        for name, value in row.asDict(recursive=True).items()
    }
