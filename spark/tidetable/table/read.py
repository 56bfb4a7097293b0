"""Reading an index without a JVM: probes and scans through delta-rs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tidetable.config import Index
from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT
from tidetable.table.log import Log, arrow
from tidetable.table.restriction import Restriction, sql_condition, sql_name
from tidetable.table.state import IndexTable

FILES_AT_ONCE = 8
"""A probe asks each file five times for a little, one question after the other. With as many files
as cores, which is delta-rs's own habit, most of its time is waiting."""


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
    yield from reader(view, restriction)


def reader(view: View, restriction: Restriction) -> pa.RecordBatchReader:
    """The same with its schema, which is there without any rows too."""
    where = sql_condition(restriction.tests(view.index, view.schema, view.as_of))
    columns = ", ".join(map(sql_name, view.columns))
    sql = f"SELECT {columns} FROM t" + ("" if where is None else f" WHERE {where}")
    return arrow(query(view.log.table).execute(sql))


def whole(view: View, restriction: Restriction) -> pa.Table:
    """All of the rows, with the types of the table: DataFusion has text types of its own."""
    schema = pa.schema([view.schema.field(name) for name in view.columns])
    return reader(view, restriction).read_all().cast(schema)


def query(table: DeltaTable) -> QueryBuilder:
    """SQL without a JVM, in which the table is called `t`."""
    partitions = str(max(FILES_AT_ONCE, os.cpu_count() or 1))
    config = {"datafusion.execution.target_partitions": partitions}
    return QueryBuilder(config).register("t", table)


def sorted_rows(view: View, restriction: Restriction) -> list[dict[str, Any]]:
    """The same as Python values, by key and then by expiration slot: for what a probe finds."""
    found = [row for batch in batches(view, restriction) for row in rows(batch)]
    found.sort(key=lambda row: (row[view.index.key], row[EXPIRATION_SLOT]))
    return found


def count(view: View, restriction: Restriction) -> int:
    """How many rows; unrestricted from the log alone."""
    where = sql_condition(restriction.tests(view.index, view.schema, view.as_of))
    if where is None:
        return view.log.rows
    answer = arrow(query(view.log.table).execute(f"SELECT count(*) AS n FROM t WHERE {where}"))
    return int(answer.read_all().column("n")[0].as_py())


# -- Python values ---------------------------------------------------------------------------------


def rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch as Python values."""
    columns = [_values(column) for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _moments(column)  # pyarrow's own conversion imports pandas: a second
    values = column.to_pylist()
    return [_as_dicts(value, kind) for value in values] if pa.types.is_nested(kind) else values


def _moments(column: pa.Array) -> list[datetime | None]:
    zone = None if column.type.tz is None else UTC
    epoch = datetime(1970, 1, 1, tzinfo=zone)
    per_unit = {"s": 1_000_000, "ms": 1_000, "us": 1}[column.type.unit]
    return [
        None if since is None else epoch + timedelta(microseconds=since * per_unit)
        for since in column.view(pa.int64()).to_pylist()  # cast() would import pyarrow.compute
    ]


def _as_dicts(value: Any, kind: pa.DataType) -> Any:
    """pyarrow gives a map as a list of pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _as_dicts(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        return {field.name: _as_dicts(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_as_dicts(item, kind.value_type) for item in value]
    return value
