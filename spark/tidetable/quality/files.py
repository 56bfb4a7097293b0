"""The files of a table by the statistics that the Delta log has of each, read without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, EXPIRES_AT, INSERTION_SLOT
from tidetable.table.log import Log, arrow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class File:
    """One file by its statistics. None: the statistics do not tell."""

    path: str
    cell: Cell | None
    """None if a partition value is missing, as no row of ours has it."""

    bytes: int
    rows: int | None
    """Without those that a deletion vector hides."""

    has_deletions: bool
    insertion: tuple[int, int] | None
    expiration: tuple[int, int] | None
    """Least and greatest slot. With deletions they are those of all rows that ever were in it."""

    expires_at: tuple[datetime, datetime] | None
    no_key: int | None
    no_time: int | None
    no_slot: int | None
    has_statistics: bool
    """Whether it has all that the files of this table have."""


def files_of(log: Log, index: Index) -> Iterator[File]:
    """All files of the version. One without statistics is no error here: the report tells of it."""
    actions = arrow(log.table.get_add_actions(flatten=True)).read_all()
    expires_at = index.expires_at or EXPIRES_AT
    times = {f"{bound}.{expires_at}" for bound in ("min", "max")}
    wanted = {
        "path", "size_bytes", "num_records", f"partition.{CELL_G}", f"partition.{CELL_E}",
        f"min.{INSERTION_SLOT}", f"max.{INSERTION_SLOT}", f"min.{EXPIRATION_SLOT}",
        f"max.{EXPIRATION_SLOT}", f"min.{index.key}", *times,
        *(f"null_count.{name}" for name in (
            index.key, index.inserted_at, expires_at, INSERTION_SLOT, EXPIRATION_SLOT)),
    }  # fmt: skip
    columns: dict[str, list[Any]] = {}
    for name in actions.column_names:
        if name in wanted:
            column = actions.column(name)
            if pa.types.is_timestamp(column.type):
                # As numbers: turning them into Python's times would go through pandas.
                column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
            columns[name] = column.to_pylist()
    deleted = log.deleted_rows()
    for place in range(actions.num_rows):
        told = {name: values[place] for name, values in columns.items()}
        yield _file(told, deleted.get(told["path"].rsplit("/", 1)[-1], 0), index, expires_at)


def _file(told: Mapping[str, Any], gone: int, index: Index, expires_at: str) -> File:
    def bounds(name: str) -> tuple[Any, Any] | None:
        least, greatest = told.get(f"min.{name}"), told.get(f"max.{name}")
        return None if least is None or greatest is None else (least, greatest)

    def nulls(*names: str) -> int | None:
        counts = [told.get(f"null_count.{name}") for name in names]
        return None if None in counts else sum(count for count in counts if count is not None)

    g, e = told.get(f"partition.{CELL_G}"), told.get(f"partition.{CELL_E}")
    rows = told.get("num_records")
    times = bounds(expires_at)
    no_key = nulls(index.key)
    if no_key == 0 and told.get(f"min.{index.key}") == "":
        no_key = 1  # an empty text is no key either; how many there are nobody has counted
    return File(
        path=told["path"],
        cell=None if g is None or e is None else Cell(g, e),
        bytes=told["size_bytes"],
        rows=None if rows is None else rows - gone,
        has_deletions=gone > 0,
        insertion=bounds(INSERTION_SLOT),
        expiration=bounds(EXPIRATION_SLOT),
        expires_at=None if times is None else (_moment(times[0]), _moment(times[1])),
        no_key=no_key,
        no_time=nulls(index.inserted_at, expires_at),
        no_slot=nulls(INSERTION_SLOT, EXPIRATION_SLOT),
        has_statistics=rows == 0
        or None
        not in [rows, *(count for name, count in told.items() if name.startswith("null_count."))],
    )


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
