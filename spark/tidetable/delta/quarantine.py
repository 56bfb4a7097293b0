"""Rows that were not taken, with the reason: a Delta table of its own beside the index.

It is written before the index, and again in full for the slots of an update that is repeated, so
it needs no fence: rows of a slot replace the rows of that slot.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tidetable.core.config import Index
from tidetable.delta.columns import INSERTION_SLOT, RAW, REASON, quoted
from tidetable.delta.log import open_log
from tidetable.delta.place import quarantine_path
from tidetable.delta.staging import NO_ARRIVAL

SLOT, WHY, ROW, ARRIVED = "slot", "reason", "row", "arrived_at"


class Quarantine:
    """The quarantine of one index."""

    def __init__(self, spark: SparkSession, index: Index) -> None:
        self.spark = spark
        self.index = index
        self.path = quarantine_path(index)

    def exists(self) -> bool:
        return open_log(self.path) is not None

    def write(self, bad: DataFrame, first: int, last: int) -> None:
        """Makes these the quarantined rows of slots first..last. `bad` comes from `rows_of`."""
        if not self.exists():
            bad.coalesce(1).write.format("delta").mode("append").save(self.path)
            return
        (
            bad.coalesce(1)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", f"{SLOT} BETWEEN {first} AND {last}")
            .save(self.path)
        )

    def holds_slots(self, first: int, last: int) -> bool:
        """Whether an earlier attempt left rows for these slots, by file statistics alone."""
        log = open_log(self.path)
        if log is None:
            return False
        actions = log.table.get_add_actions(flatten=True)
        lows = actions.column(f"min.{SLOT}").to_pylist()
        highs = actions.column(f"max.{SLOT}").to_pylist()
        return any(
            low is None or (low <= last and high >= first)
            for low, high in zip(lows, highs, strict=True)
        )

    def rows_of(self, batch: DataFrame, last: int) -> DataFrame:
        """The bad rows of a staged batch as they are stored; without an arrival: in slot `last`."""
        return batch.where(F.col(REASON).isNotNull()).select(
            F.coalesce(F.col(INSERTION_SLOT), F.lit(last).cast("bigint")).alias(SLOT),
            F.col(REASON).alias(WHY),
            F.col(quoted(self.index.source.arrived_at)).alias(ARRIVED),
            F.col(RAW).alias(ROW),
        )

    def empty(self) -> DataFrame:
        return self.spark.range(0).selectExpr(
            f"id AS {SLOT}", f"'' AS {WHY}", f"cast(null AS timestamp) AS {ARRIVED}", f"'' AS {ROW}"
        )

    def without_known(self, batch: DataFrame, first: int) -> DataFrame:
        """The batch without those unreadable arrivals that an earlier slot quarantined already."""
        if not self.exists():
            return batch
        known = self.spark.read.format("delta").load(self.path)
        known = known.where((F.col(WHY) == NO_ARRIVAL) & (F.col(SLOT) < first)).select(ROW)
        unreadable = F.col(REASON).eqNullSafe(NO_ARRIVAL)
        fresh = multiset_minus(batch.where(unreadable), RAW, known, ROW)
        return batch.where(~unreadable).unionByName(fresh)


def multiset_minus(left: DataFrame, left_on: str, right: DataFrame, right_on: str) -> DataFrame:
    """Rows of `left` less one for each equal row of `right`: equal rows are different rows."""
    number = "_number"

    def numbered(frame: DataFrame, column: str) -> DataFrame:
        window = Window.partitionBy(column).orderBy(F.lit(0))
        return frame.withColumn(number, F.row_number().over(window))

    others = numbered(right.select(F.col(right_on).alias("_right")), "_right")
    others = others.withColumnRenamed(number, "_right_number")
    mine = numbered(left, left_on)
    same = (F.col(left_on) == F.col("_right")) & (F.col(number) == F.col("_right_number"))
    return mine.join(others, same, "left_anti").drop(number)
