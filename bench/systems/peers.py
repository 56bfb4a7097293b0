"""What people do with Delta today: append what came, delete what expired, tidy up now and then.

Each is set up as Delta's documentation recommends for it. An update is two or three commits, so
between them a reader sees rows that have expired, which is not counted against them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import SCHEMA, Rows
from bench.systems.delta import DeltaSystem
from bench.systems.optimize import FILE_SIZES
from bench.workload import end_of, sql_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Habit:
    """How a peer keeps its table."""

    deletion_vectors: bool = True
    partitioned_by: str | None = None
    """`insertion_slot` or `expiration_slot`, a column that the table then has as well."""

    clustered: bool = False
    """Liquid clustering by key."""

    optimize_every: int = 0
    zorder: bool = False
    file_bytes: int | None = None
    """What OPTIMIZE aims at; None: what the session says."""

    def create_sql(self, path: Path) -> str:
        columns = SCHEMA + (f", {self.partitioned_by} INT" if self.partitioned_by else "")
        layout = ""
        if self.partitioned_by:
            layout = f"PARTITIONED BY ({self.partitioned_by}) "
        if self.clustered:
            layout = "CLUSTER BY (key) "
        vectors = str(self.deletion_vectors).lower()
        return (
            f"CREATE TABLE delta.`{path}` ({columns}) USING delta {layout}"
            f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')"
        )

    def delete_sql(self, path: Path, slot: int) -> str:
        # By the partition column alone whole folders are dropped from the log and none is read.
        if self.partitioned_by == "expiration_slot":
            return f"DELETE FROM delta.`{path}` WHERE expiration_slot <= {slot}"
        return f"DELETE FROM delta.`{path}` WHERE expires_at <= {sql_time(end_of(slot))}"

    def optimize_sql(self, path: Path) -> str:
        return f"OPTIMIZE delta.`{path}`" + (" ZORDER BY (key)" if self.zorder else "")


class Peer(DeltaSystem):
    """A Delta table that is kept by a habit."""

    def __init__(self, spark: SparkSession, rows: Rows, folder: Path, habit: Habit) -> None:
        super().__init__(spark, rows, folder)
        self.habit = habit

    def load(self) -> None:
        self.spark.sql(self.habit.create_sql(self.path))
        history = self._placed(self.rows.read_history(self.spark), "slot")
        if not self.habit.partitioned_by:
            # A file for each slot, as appends would have left them.
            history = history.repartitionByRange(self.workload.period, "slot")
        self._append(history.drop("slot"))
        if self.habit.optimize_every:
            self._optimize()

    def update(self, slot: int) -> None:
        batch = self.rows.read(self.spark, slot)
        self._append(self._placed(batch, f"{slot}"))
        self.spark.sql(self.habit.delete_sql(self.path, slot))
        every = self.habit.optimize_every
        if every and slot % every == 0:
            self._optimize()

    def _optimize(self) -> None:
        with self._file_size():
            self.spark.sql(self.habit.optimize_sql(self.path))

    @contextmanager
    def _file_size(self) -> Iterator[None]:
        wanted = self.habit.file_bytes
        before = {name: self.spark.conf.get(name) for name in FILE_SIZES if wanted is not None}
        for name in before:
            self.spark.conf.set(name, str(wanted))
        try:
            yield
        finally:
            for name, value in before.items():
                self.spark.conf.set(name, value)

    def _placed(self, rows: DataFrame, insertion_slot: str) -> DataFrame:
        """With the partition column, and one task for each partition so that it gets one file."""
        column = self.habit.partitioned_by
        if column is None:
            return rows
        start = sql_time(end_of(0))
        value = {
            "insertion_slot": insertion_slot,
            "expiration_slot": f"int(ceil((unix_micros(expires_at) - unix_micros({start})) "
            "/ 3600000000D))",
        }[column]
        return rows.selectExpr("*", f"{value} AS {column}").repartition(column)

    def _append(self, rows: DataFrame) -> None:
        rows.write.format("delta").mode("append").save(str(self.path))
