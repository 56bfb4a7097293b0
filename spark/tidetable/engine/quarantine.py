"""Rows that were not taken, with the reason: a Delta table of its own beside the index.

It is written before the index, and again in full for the slots of an update that is repeated: rows
of a slot replace the rows of that slot. Each commit notes the highest slot
so far: while slots only go up, which is always but after a crash or a replay, rows are appended
and nothing has to be looked for. Spark writes the files in a private table (workbench.py); the
commit is made on top of the version that the writer saw, or not at all. Having seen it, the writer
looks whether the index still stands where it started from. So of two that start from the same slot
the second replaces what the first wrote, and one that has lost already writes nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress

from deltalake.exceptions import CommitFailedError
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tidetable.config import Index
from tidetable.core.columns import INSERTION_SLOT, RAW, REASON
from tidetable.core.errors import TransientError
from tidetable.engine.sql import quoted
from tidetable.engine.staging import NO_ARRIVAL
from tidetable.engine.workbench import Workbench
from tidetable.table.append import NotTheNewest, transaction
from tidetable.table.beside import QUARANTINE_PROPERTIES, Kind, open_beside, own_table
from tidetable.table.commits import commit
from tidetable.table.forget import DIGEST, FILES_MAX, merge_files
from tidetable.table.log import Log, arrow
from tidetable.table.place import quarantine_path
from tidetable.table.storage import remove_files

SLOT, WHY, ROW, ARRIVED = "slot", "reason", "row", "arrived_at"
_MARK = "tidetable_quarantine_high"
_UNKNOWN = 2**62
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

    def write(self, bad: DataFrame, first: int, last: int, may_write: Callable[[], bool]) -> bool:
        """Makes these the quarantined rows of slots first..last. `bad` comes from `rows_of`.

        False, with nothing written, if by `may_write` the index has moved on: another update has
        handled these slots, with their bad rows, and later ones would not find them again.
        """
        for _ in range(RACES_MAX):
            log = own_table(self.index, Kind.QUARANTINE, QUARANTINE_PROPERTIES)
            # In this order: who moves the index on after this has yet to write, or has written
            # what we see.
            if not may_write():
                return False
            if self._written(log, bad, first, last):
                return True
        raise TransientError(
            f"Other writers of {self.path} committed first, {RACES_MAX} times in a row. "
            "The index was not changed.",
            remedy="Run it again, with one writer at a time.",
            code="lost_race",
        )

    def _written(self, log: Log, bad: DataFrame, first: int, last: int) -> bool:
        """Whether the rows were written on top of `log`; False if another writer was first."""
        high = _highest_slot(log)
        appends = high is None or high < first
        mark = {_MARK: last if high is None else max(high, last), "run": uuid.uuid4().hex}
        fence = transaction(f"{self.index.name}@quarantine#{log.version}")
        with Workbench(log, () if appends else None) as bench:
            replaced = None if appends else f"{SLOT} BETWEEN {first} AND {last}"
            outcome = bench.written(bad.coalesce(1), replaced)
        parameters = {"mode": "Append" if appends else "Overwrite", "partitionBy": "[]"}
        if replaced is not None:
            parameters["predicate"] = replaced
        try:
            commit(
                log,
                "WRITE",
                [fence, *outcome.actions],
                parameters=parameters,
                user_metadata=json.dumps(mark),
            )
        except NotTheNewest:
            remove_files(log.path, outcome.files)
            return False
        if len(log.table.file_uris()) > 2 * FILES_MAX:
            # Where nobody runs the maintenance: the cost must not grow with every update.
            with suppress(CommitFailedError):  # somebody else is at it; the next one does it
                merge_files(self.index)
        return True

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

    def rows_of(self, batch: DataFrame, first: int) -> DataFrame:
        """The bad rows of a staged batch as they are stored; without an arrival: in slot `first`.

        Not in the last one: all updates that start from a slot have the first in common, be they
        folded or not, so one of them replaces what another has left.
        """
        return batch.where(F.col(REASON).isNotNull()).select(
            F.coalesce(F.col(INSERTION_SLOT), F.lit(first).cast("bigint")).alias(SLOT),
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
        known = known.where((F.col(WHY) == NO_ARRIVAL) & (F.col(SLOT) < first))
        unreadable = F.col(REASON).eqNullSafe(NO_ARRIVAL)
        mine = batch.where(unreadable).withColumn("_digest", digest(F.col(RAW)))
        fresh = multiset_minus(mine, "_digest", digests(known), ROW).drop("_digest")
        return batch.where(~unreadable).unionByName(fresh)


def digest(row: Column) -> Column:
    """What a row is known by once its text is gone (see forget.py)."""
    return F.concat(F.lit(DIGEST), F.sha2(row, 256))


def digests(quarantined: DataFrame) -> DataFrame:
    """The digests of quarantined rows, of which some have no more than that."""
    row = F.col(ROW)
    return quarantined.select(F.when(row.startswith(DIGEST), row).otherwise(digest(row)).alias(ROW))


def _highest_slot(log: Log) -> int | None:
    """No row in quarantine is of a later slot than this; None if there is no row."""
    if not log.table.file_uris():
        return None
    for made in log.commits():
        if made.metadata and _MARK in made.metadata:
            return int(json.loads(made.metadata)[_MARK])
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
