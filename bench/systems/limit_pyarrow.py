"""The rows of a limit in pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.systems.limit import SCHEMA, Bounded, Form, Hand, Piece
from bench.workload import SLOT, START
from tidetable.core.columns import EXPIRATION_SLOT, INSERTION_SLOT

_START_US = int(START.timestamp() * 1_000_000)
_SLOT_US = int(SLOT.total_seconds() * 1_000_000)
_BY = [("key", "ascending"), ("expires_at", "ascending")]


class Pyarrow(Hand[pa.Table]):
    """Reads with all cores, sorts with one, and takes and writes each file in a thread."""

    def arrived(self, files: Sequence[Path], slot: int) -> pa.Table:
        rows = _read(files)
        since = pc.subtract(rows.column("expires_at").cast(pa.int64()), _START_US)
        expires = pc.divide(pc.add(since, _SLOT_US - 1), _SLOT_US)
        inserted = pa.repeat(pa.scalar(slot, pa.int64()), rows.num_rows)
        with_slots = rows.append_column(INSERTION_SLOT, inserted).append_column(
            EXPIRATION_SLOT, expires
        )
        return with_slots.cast(SCHEMA)

    def of_group(self, rows: pa.Table, group: int, groups: int) -> pa.Table:
        before = pc.subtract(rows.column(EXPIRATION_SLOT), 1)
        rest = pc.subtract(before, pc.multiply(pc.divide(before, groups), groups))
        return rows.filter(pc.equal(rest, group))

    def alive(self, files: Sequence[Path], slot: int) -> pa.Table:
        rows = _read(files)
        return rows.filter(pc.greater(rows.column(EXPIRATION_SLOT), slot))

    def number(self, rows: pa.Table) -> int:
        return int(rows.num_rows)

    def cut(self, tables: Sequence[pa.Table], pieces: int) -> list[Piece]:
        rows = pa.concat_tables(tables).combine_chunks()
        order = pc.sort_indices(rows.select([name for name, _ in _BY]), sort_keys=_BY)
        step = ceil(rows.num_rows / pieces)
        return [_Slice(rows, order.slice(at, step)) for at in range(0, rows.num_rows, step)]


@dataclass(frozen=True)
class _Slice:
    rows: pa.Table
    order: pa.Array

    def write(self, file: Path, form: Form) -> Bounded:
        rows = self.rows.take(self.order)
        per_row = max(1, rows.nbytes // rows.num_rows)
        pq.write_table(
            rows,
            file,
            row_group_size=max(1, form.group_bytes // per_row),
            compression=form.codec,
            use_dictionary=list(form.dictionary),
            data_page_size=form.page_bytes,
            # So many rows come before pyarrow looks whether a page is full.
            write_batch_size=max(1, form.page_bytes // (2 * per_row)),
            write_page_index=True,
            store_schema=False,
        )
        return Bounded(rows.num_rows, {name: _bounds(rows.column(name)) for name in form.bounded})


def _read(files: Sequence[Path]) -> pa.Table:
    # Without the columns that the names of the folders would make.
    return pq.read_table([str(file) for file in files], partitioning=None)


def _bounds(column: pa.ChunkedArray) -> tuple[int, int]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    found = pc.min_max(column)
    return found["min"].as_py(), found["max"].as_py()
