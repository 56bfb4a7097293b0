"""The rows of a limit in Polars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import polars as pl  # type: ignore[import-not-found, unused-ignore]

from bench.systems.limit import SCHEMA, Bounded, Form, Hand, Piece
from bench.workload import SLOT, START
from tidetable.core.columns import EXPIRATION_SLOT, INSERTION_SLOT

_START_US = int(START.timestamp() * 1_000_000)
_SLOT_US = int(SLOT.total_seconds() * 1_000_000)


class Polars(Hand[Any]):
    """Uses all cores for each step, as Polars does by itself."""

    def arrived(self, files: Sequence[Path], slot: int) -> Any:
        since = pl.col("expires_at").dt.epoch("us") - _START_US
        expires = (since + _SLOT_US - 1) // _SLOT_US
        return _read(files).with_columns(
            pl.lit(slot, pl.Int64).alias(INSERTION_SLOT),
            expires.cast(pl.Int64).alias(EXPIRATION_SLOT),
        )

    def of_group(self, rows: Any, group: int, groups: int) -> Any:
        return rows.filter((pl.col(EXPIRATION_SLOT) - 1) % groups == group)

    def alive(self, files: Sequence[Path], slot: int) -> Any:
        return _read(files).filter(pl.col(EXPIRATION_SLOT) > slot)

    def number(self, rows: Any) -> int:
        return int(rows.height)

    def cut(self, tables: Sequence[Any], pieces: int) -> list[Piece]:
        rows = pl.concat([table.select(SCHEMA.names) for table in tables])
        rows = rows.sort("key", "expires_at")
        step = ceil(rows.height / pieces)
        return [_Slice(rows.slice(at, step)) for at in range(0, rows.height, step)]


@dataclass(frozen=True)
class _Slice:
    rows: Any

    def write(self, file: Path, form: Form) -> Bounded:
        # Which columns get a dictionary, and how pages are indexed, it decides by itself.
        self.rows.write_parquet(
            file,
            compression=form.codec,
            row_group_size=max(1, form.group_bytes * self.rows.height // self._bytes),
            data_page_size=form.page_bytes,
        )
        named = pl.col(*form.bounded).to_physical()
        low, high = self.rows.select(named.min()), self.rows.select(named.max())
        bounds = dict(zip(form.bounded, zip(low.row(0), high.row(0), strict=True), strict=True))
        return Bounded(self.rows.height, bounds)

    @property
    def _bytes(self) -> int:
        return max(1, int(self.rows.estimated_size()))


def _read(files: Sequence[Path]) -> Any:
    # Without the columns that the names of the folders would make.
    return pl.read_parquet(files, hive_partitioning=False)
