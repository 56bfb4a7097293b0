"""Rows that were not taken, with the reason: a Delta table of its own beside the index.

It is written before the index, and again in full for the slots of an update that is repeated: rows
of a slot replace the rows of that slot. Each commit notes the highest slot
so far: while slots only go up, which is always but after a crash or a replay, rows are appended
and nothing has to be looked for. A fence names the version that a writer saw.
"""

from __future__ import annotations

import json
import uuid

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tidetable.core.config import Index
from tidetable.core.errors import TransientError
from tidetable.delta.beside import Kind, open_beside, own_table
from tidetable.delta.columns import INSERTION_SLOT, RAW, REASON, quoted
from tidetable.delta.commit import was_lost_race
from tidetable.delta.log import Log, arrow, open_log
from tidetable.delta.place import quarantine_path
from tidetable.delta.staging import NO_ARRIVAL

SLOT, WHY, ROW, ARRIVED = "slot", "reason", "row", "arrived_at"
_MARK = "tidetable_quarantine_high"
_UNKNOWN = 2**62
_PROPERTIES = {
    # One small file an update: Delta is asked to merge them, else the log would grow.
    "delta.autoOptimize.autoCompact": "true",
}
RACES_MAX = 5


class Quarantine:
    """The quarantine of one index."""

    def __init__(self, spark: SparkSession, index: Index) -> None:
        self.spark = spark
        self.index = index
        self.path = quarantine_path(index)

    def exists(self) -> bool:
        return self._log() is not None

    def _log(self) -> Log | None:
        """The table's log; None if there is none, UserError if it is not ours."""
        return open_beside(self.index, Kind.QUARANTINE)

    def write(self, bad: DataFrame, first: int, last: int) -> None:
        """Makes these the quarantined rows of slots first..last. `bad` comes from `rows_of`."""
        for _ in range(RACES_MAX):
            if self._written(bad, first, last):
                return
        raise TransientError(
            f"Other writers of {self.path} committed first, {RACES_MAX} times in a row. "
            "The index was not changed; run it again, with one writer at a time."
        )

    def _written(self, bad: DataFrame, first: int, last: int) -> bool:
        """Whether the rows were written; False if another writer was first."""
        log = own_table(self.index, Kind.QUARANTINE, _PROPERTIES)
        high = _highest_slot(log)
        version = log.version
        run = uuid.uuid4().hex
        mark = {_MARK: last if high is None else max(high, last), "run": run}
        writer = (
            bad.coalesce(1)
            .write.format("delta")
            # Of two that saw the same version and append, one has to look again.
            .option("txnAppId", f"{self.index.name}@quarantine#{version}")
            .option("txnVersion", 1)
            .option("userMetadata", json.dumps(mark))
        )
        try:
            if high is None or high < first:
                writer.mode("append").save(self.path)
            else:
                replaced = f"{SLOT} BETWEEN {first} AND {last}"
                writer.mode("overwrite").option("replaceWhere", replaced).save(self.path)
        except Exception as error:
            if was_lost_race(error):
                return False
            raise
        after = open_log(self.path)
        return after is not None and any(
            run in (commit.metadata or "") for commit in after.commits() if commit.version > version
        )

    def holds_slots(self, first: int, last: int) -> bool:
        """Whether an earlier attempt left rows for these slots, from the log alone."""
        log = self._log()
        high = None if log is None else _highest_slot(log)
        if log is None or high is None or high < first:
            return False
        actions = arrow(log.table.get_add_actions(flatten=True)).read_all()
        lows = actions.column(f"min.{SLOT}").to_pylist()
        highs = actions.column(f"max.{SLOT}").to_pylist()
        return any(
            low is None or (low <= last and top >= first)
            for low, top in zip(lows, highs, strict=True)
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


def _highest_slot(log: Log) -> int | None:
    """No row in quarantine is of a later slot than this; None if there is no row."""
    if not log.table.file_uris():
        return None
    for commit in log.commits():
        if commit.metadata and _MARK in commit.metadata:
            return int(json.loads(commit.metadata)[_MARK])
    return _UNKNOWN


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
