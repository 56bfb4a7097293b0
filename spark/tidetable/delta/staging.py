"""A batch, staged: every row with its slots and, if it is bad, the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tidetable.core.config import Index
from tidetable.core.errors import UserError
from tidetable.delta.columns import (
    EXPIRATION_SLOT,
    EXPIRES_AT,
    INSERTION_SLOT,
    RAW,
    REASON,
    quoted,
)
from tidetable.delta.source import CORRUPT, SourceRows
from tidetable.delta.times import as_timestamp, slot_of, timestamp_literal

NO_ARRIVAL = "no readable arrival time"
"""Such a row belongs to no slot: it turns up in every batch and is quarantined once."""

LATE = "arrived late"


def staged(index: Index, rows: SourceRows, first: int, last: int) -> DataFrame:
    """The rows that arrived in slots first..last, and those whose arrival cannot be read.

    Columns: the user's (time columns as timestamps), the two slots, REASON (null for a good row)
    and RAW (the bad row as it came, as JSON).
    """
    source = index.source
    declared = {field.name: field.dataType for field in rows.declared}
    frame = rows.frame

    def time(name: str) -> Column:
        return as_timestamp(name, declared[name], F.col(quoted(name)), source.timezone)

    # Compared as the source has it, so that file and row-group statistics skip what is older.
    begin = timestamp_literal(index.timeline.begin_of(first))
    end = timestamp_literal(index.timeline.end_of(last))
    arrived = time(source.arrived_at)
    frame = frame.where(((arrived > begin) & (arrived <= end)) | arrived.isNull())

    times = {source.arrived_at, index.inserted_at, index.expires_at}
    typed, wrong_types = [], []
    for column in rows.declared:
        raw = F.col(quoted(column.name))
        if column.name in times:
            typed.append(time(column.name).alias(column.name))
        elif frame.schema[column.name].dataType == column.dataType:
            typed.append(raw)
        else:
            cast = raw.try_cast(column.dataType)
            typed.append(cast.alias(column.name))
            wrong_types.append(
                F.when(raw.isNotNull() & cast.isNull(), F.lit(f"wrong type: {column.name}"))
            )
    if rows.has_corrupt:
        wrong_types.insert(0, F.when(F.col(CORRUPT).isNotNull(), F.lit("not readable as a record")))
    early = F.coalesce(*wrong_types) if wrong_types else F.lit(None).cast("string")
    raw_row = F.to_json(F.struct(*[F.col(quoted(name)) for name in frame.columns]))
    frame = frame.select(*typed, early.alias(REASON), raw_row.alias(RAW))
    if index.lifetime is not None:
        frame = _with_expiry(frame, index)
    return _judged(frame, index)


def _with_expiry(frame: DataFrame, index: Index) -> DataFrame:
    try:
        expiry = F.expr(f"{quoted(index.inserted_at)} + ({index.lifetime})")
        result = frame.withColumn(EXPIRES_AT, expiry.cast("timestamp"))
        _ = result.schema
    except AnalysisException as error:
        raise UserError(
            f"lifetime {index.lifetime!r} cannot be added to {index.inserted_at}: "
            f"{str(error).splitlines()[0]} Write an interval such as 'interval 90 minutes' or "
            "'make_dt_interval(0, 0, minutes_valid)'."
        ) from error
    return result


def expiry_column(index: Index) -> str:
    return index.expires_at if index.expires_at is not None else EXPIRES_AT


def _judged(frame: DataFrame, index: Index) -> DataFrame:
    arrived = F.col(quoted(index.source.arrived_at))
    inserted = F.col(quoted(index.inserted_at))
    expires = F.col(quoted(expiry_column(index)))
    key = F.col(quoted(index.key))
    has_no_key = key.isNull()
    if isinstance(frame.schema[index.key].dataType, StringType):
        has_no_key = has_no_key | (key == "")
    longest = F.lit(index.longest_lifetime // timedelta(microseconds=1))
    lives = F.unix_micros(expires) - F.unix_micros(arrived)

    def because(condition: Column, reason: str) -> Column:
        return F.when(condition, F.lit(reason))

    reason = F.coalesce(
        because(arrived.isNull(), NO_ARRIVAL),
        F.col(REASON),
        because(has_no_key, "no key"),
        because(inserted.isNull(), "no readable insertion time"),
        because(expires.isNull(), "no readable expiration time"),
        because(expires < inserted, "expires before it was inserted"),
        because(inserted > arrived, "inserted after it arrived"),
        because(lives > longest, "outlives the longest lifetime"),
    )
    return (
        frame.withColumn(REASON, reason)
        .withColumn(RAW, F.when(F.col(REASON).isNotNull(), F.col(RAW)))
        .withColumn(INSERTION_SLOT, slot_of(arrived, index.timeline))
        .withColumn(EXPIRATION_SLOT, slot_of(expires, index.timeline))
    )


@dataclass(frozen=True)
class BatchCounts:
    """What a batch holds, from one aggregate over it."""

    good: dict[tuple[int, int], int] = field(default_factory=dict)
    """Good rows by (insertion slot, expiration slot)."""

    bad: dict[tuple[int | None, str], int] = field(default_factory=dict)
    """Bad rows by (arrival slot or None, reason)."""

    @property
    def read(self) -> int:
        return sum(self.good.values()) + self.quarantined

    @property
    def quarantined(self) -> int:
        return sum(self.bad.values())

    @property
    def dead_on_arrival(self) -> int:
        return sum(rows for (ins, exp), rows in self.good.items() if exp <= ins)

    @property
    def inserted(self) -> int:
        return sum(rows for (ins, exp), rows in self.good.items() if exp > ins)

    @property
    def reasons(self) -> dict[str, int]:
        totals: dict[str, int] = {}
        for (_, reason), rows in self.bad.items():
            totals[reason] = totals.get(reason, 0) + rows
        return totals

    def by_expiration(self, after: int) -> dict[int, int]:
        """Inserted rows by expiration slot, those that die by slot `after` left out."""
        totals: dict[int, int] = {}
        for (ins, exp), rows in self.good.items():
            if exp > max(ins, after):
                totals[exp] = totals.get(exp, 0) + rows
        return totals

    def arrivals(self) -> dict[int, int]:
        """Rows read by arrival slot."""
        totals: dict[int, int] = {}
        for (slot, _), rows in [*self.good.items(), *self.bad.items()]:
            if slot is not None:
                totals[slot] = totals.get(slot, 0) + rows
        return totals

    def plus(self, other: BatchCounts) -> BatchCounts:
        good, bad = dict(self.good), dict(self.bad)
        for pair, rows in other.good.items():
            good[pair] = good.get(pair, 0) + rows
        for why, rows in other.bad.items():
            bad[why] = bad.get(why, 0) + rows
        return BatchCounts(good, bad)


def counted(batch: DataFrame, *, earliest: int | None = None) -> BatchCounts:
    """Counts of a staged batch. Slots before `earliest` are counted as `earliest` (for a load)."""
    slot = F.col(INSERTION_SLOT)
    if earliest is not None:
        slot = F.greatest(slot, F.lit(earliest))
    expires = F.when(F.col(REASON).isNull(), F.col(EXPIRATION_SLOT))
    table = (
        batch.groupBy(slot.alias("slot"), expires.alias("expires"), F.col(REASON).alias("reason"))
        .count()
        .collect()  # at most one line per pair of slots, never rows of the user's
    )  # fmt: skip
    counts = BatchCounts()
    for line in table:
        if line["reason"] is None:
            counts.good[(line["slot"], line["expires"])] = line["count"]
        else:
            counts.bad[(line["slot"], line["reason"])] = line["count"]
    return counts
