"""The floor under an update of Sweep: the same files by a library alone, without Spark.

An update here reads the files that Sweep would write again, leaves out what has expired, adds the
new rows, sorts, and writes as many files in the same format. Then it commits through delta-rs, with
the same bounds. It judges no row, counts nothing, keeps no note and cannot be killed in the middle
without harm: it is what the bytes cost, and no system that anybody could use.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from bench.data import Rows
from bench.systems.delta import DeltaSystem
from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.core.plan import Action
from tidetable.core.schemes import Scheme, SweepConfig
from tidetable.core.split import SPLIT_BYTES_MIN, KeyRange
from tidetable.engine.arrange import arrange
from tidetable.engine.session import cores
from tidetable.table.bounds import statistics_json, written_bounds
from tidetable.table.log import arrow
from tidetable.table.parts import GROUP_BYTES, PAGE_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_BYTES = next(one.default for one in fields(Index) if one.name == "target_file_size")
"""What ours aims at where the YAML says nothing."""

CHECKPOINT_EVERY = 10
"""Ours asks for it too; delta-rs would wait for 100 commits."""

_LOADED_BYTES_MAX = 512 * 1024**2
"""A load takes so many groups at once that about so much is in memory."""

_DISTINCT_MIN = 3
"""A dictionary is worth it where a value comes so often on average."""

BOUNDED = {
    "key": "integer",
    "inserted_at": "timestamp",
    "expires_at": "timestamp",
    INSERTION_SLOT: "long",
    EXPIRATION_SLOT: "long",
}
"""The columns of which ours keeps bounds."""

_MOMENT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        pa.field("key", pa.int32()),
        pa.field("arrived_at", _MOMENT),
        pa.field("inserted_at", _MOMENT),
        pa.field("expires_at", _MOMENT),
        pa.field("payload", pa.string()),
        pa.field(INSERTION_SLOT, pa.int64()),
        pa.field(EXPIRATION_SLOT, pa.int64()),
    ]
)
"""The columns of a data file, as ours has them."""

_TABLE = SCHEMA.append(pa.field(CELL_G, pa.int32())).append(pa.field(CELL_E, pa.int32()))

T = TypeVar("T")


@dataclass(frozen=True)
class Form:
    """How a file is written: as ours are."""

    codec: str
    dictionary: tuple[str, ...]
    bounded: tuple[str, ...] = tuple(BOUNDED)
    page_bytes: int = PAGE_BYTES
    group_bytes: int = GROUP_BYTES


@dataclass(frozen=True)
class Bounded:
    """The rows of a file and their least and greatest values; a time is in microseconds."""

    rows: int
    bounds: Mapping[str, tuple[int, int]]


class Piece(Protocol):
    """Rows that become one file."""

    def write(self, file: Path, form: Form) -> Bounded: ...


class Hand(ABC, Generic[T]):
    """A library that reads, sorts and writes rows: all in which two limits differ."""

    @abstractmethod
    def arrived(self, files: Sequence[Path], slot: int) -> T:
        """New rows of the slot in which they arrived, with their two slots."""

    @abstractmethod
    def of_group(self, rows: T, group: int, groups: int) -> T: ...

    @abstractmethod
    def alive(self, files: Sequence[Path], slot: int) -> T:
        """The rows of stored files that outlive the slot."""

    @abstractmethod
    def number(self, rows: T) -> int: ...

    @abstractmethod
    def cut(self, tables: Sequence[T], pieces: int) -> list[Piece]:
        """All rows of the tables by key and expiration, cut into pieces of about one size."""


@dataclass(frozen=True)
class Stored:
    """A file of the table."""

    path: str
    group: int
    bytes: int
    rows: int


class Limit(DeltaSystem, Generic[T]):
    """A table that is kept as Sweep would keep it, at the price of the bytes alone."""

    def __init__(
        self, spark: SparkSession, rows: Rows, folder: Path, hand: Hand[T], groups: int
    ) -> None:
        super().__init__(spark, rows, folder)
        self.hand = hand
        self.groups = groups
        self._cores = cores(spark)

    @cached_property
    def _scheme(self) -> Scheme:
        return SweepConfig(groups=self.groups).build(self.workload.period)

    @cached_property
    def _form(self) -> Form:
        by_hour = (INSERTION_SLOT, EXPIRATION_SLOT)
        repeats = self.workload.distinct * _DISTINCT_MIN <= self.rows.expected.rows
        return Form(
            codec=str(self.spark.conf.get("spark.sql.parquet.compression.codec")),
            dictionary=("key", *by_hour) if repeats else by_hour,
        )

    def load(self) -> None:
        DeltaTable.create(
            str(self.path),
            _TABLE,
            partition_by=[CELL_G, CELL_E],
            configuration={"delta.checkpointInterval": str(CHECKPOINT_EVERY)},
        )
        added: list[AddAction] = []
        at_once = max(1, self.groups * _LOADED_BYTES_MAX // self.workload.live_bytes)
        for first in range(0, self.groups, at_once):
            tables: dict[int, list[T]] = {}
            for slot in (slot for slot in self.workload.slots if slot <= 0):
                if files := self._batch(slot):
                    rows = self.hand.arrived(files, slot)
                    for group in range(self.groups)[first : first + at_once]:
                        some = self.hand.of_group(rows, group, self.groups)
                        tables.setdefault(group, []).append(some)
            added += self._written(tables, self.rows.bytes_per_row)
        self._commit(added, [])

    def update(self, slot: int) -> None:
        stored = self._stored()
        plan = self._scheme.plan(slot)
        again = {cell.e for cell in plan.cells(Action.REWRITE)}
        leaving = [file for file in stored if file.group in again]
        tables: dict[int, list[T]] = {}
        if files := self._batch(slot):
            new = self.hand.arrived(files, slot)
            for cell in plan.cells(Action.REWRITE, Action.APPEND):
                tables[cell.e] = [self.hand.of_group(new, cell.e, self.groups)]
        for group in sorted({file.group for file in leaving}):
            paths = [self.path / file.path for file in leaving if file.group == group]
            tables.setdefault(group, []).append(self.hand.alive(paths, slot))
        per_row = sum(file.bytes for file in stored) / max(1, sum(file.rows for file in stored))
        self._commit(self._written(tables, per_row or self.rows.bytes_per_row), leaving)

    def _batch(self, slot: int) -> list[Path]:
        return sorted(self.rows.slot_folder(slot).glob("*.parquet"))

    def _stored(self) -> list[Stored]:
        actions = arrow(DeltaTable(str(self.path)).get_add_actions(flatten=True)).read_all()
        names = ("path", f"partition.{CELL_E}", "size_bytes", "num_records")
        columns = (actions.column(name).to_pylist() for name in names)
        return [Stored(str(p), int(e), int(s), int(n)) for p, e, s, n in zip(*columns, strict=True)]

    # -- writing ---------------------------------------------------------------------------------

    def _written(self, tables: Mapping[int, Sequence[T]], per_row: float) -> list[AddAction]:
        """The files of these groups: as many of each as our own tasks would make."""
        rows = {group: sum(map(self.hand.number, some)) for group, some in tables.items()}
        sizes = {Cell(0, group): round(number * per_row) for group, number in rows.items()}
        pieces: list[tuple[int, Piece]] = []
        for group, some in tables.items():
            if rows[group]:
                cut = self.hand.cut(some, self._files_of(Cell(0, group), sizes))
                pieces += [(group, piece) for piece in cut]
        with ThreadPoolExecutor(self._cores) as pool:
            return list(pool.map(self._one_file, pieces))

    def _files_of(self, cell: Cell, sizes: Mapping[Cell, int]) -> int:
        def by_key() -> list[KeyRange]:
            # Only how many parts there are counts here, not where a key lies.
            keys = range(2 + sizes[cell] // SPLIT_BYTES_MIN)
            return [KeyRange(key, key, 1) for key in keys]

        _, points = arrange(sizes, FILE_BYTES, self._cores, by_key).cells[cell]
        return len(points) + 1

    def _one_file(self, task: tuple[int, Piece]) -> AddAction:
        group, piece = task
        values = {CELL_G: "0", CELL_E: str(group)}
        folder = Path(*(f"{name}={value}" for name, value in values.items()))
        (self.path / folder).mkdir(parents=True, exist_ok=True)
        path = folder / f"part-{uuid.uuid4()}.{self._form.codec}.parquet"
        found = piece.write(self.path / path, self._form)
        return AddAction(
            path=path.as_posix(),
            size=(self.path / path).stat().st_size,
            partition_values=values,
            modification_time=_now_ms(),
            data_change=True,
            stats=_statistics(found),
        )

    def _commit(self, added: Iterable[AddAction], leaving: Iterable[Stored]) -> None:
        removed = [
            RemoveAction(
                file.path,
                data_change=True,
                deletion_timestamp=_now_ms(),
                size=file.bytes,
                partition_values={CELL_G: "0", CELL_E: str(file.group)},
            )
            for file in leaving
        ]
        table = DeltaTable(str(self.path))
        actions: list[Any] = [*added, *removed]
        table.create_write_transaction(actions, "append", _TABLE, [CELL_G, CELL_E])


def _statistics(found: Bounded) -> str:
    told = {
        name: bounds
        for name, (low, high) in found.bounds.items()
        if (bounds := written_bounds(low, high, BOUNDED[name])) is not None
    }
    return statistics_json(found.rows, told, dict.fromkeys(BOUNDED, 0))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
