"""Stragglers: rows that turned up in the source after their slot had been handled.

The source promises to be complete for a slot at its end plus `grace`. Every n-th update counts the
last n slots again and compares with the notes. Only where the numbers differ are rows compared.
The same count finds rows that lie in a folder which their time does not belong to: no update looks
for them there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from tidetable.config import Index
from tidetable.config.source import Late
from tidetable.core.columns import ADDED, EXPIRATION_SLOT, INSERTION_SLOT, RAW, REASON
from tidetable.engine.quarantine import ARRIVED, ROW, SLOT, WHY, Quarantine, multiset_minus
from tidetable.engine.source import Source, SourceRows, reading
from tidetable.engine.sql import quoted
from tidetable.engine.staging import LATE, BatchCounts, counted, staged
from tidetable.engine.times import JSON_OPTIONS, as_timestamp_sql, slot_sql, timestamp_sql
from tidetable.table.note import NoteKind
from tidetable.table.state import State


@dataclass(frozen=True)
class Stragglers:
    """What a recount found, ready to be taken into the update."""

    by_slot: Mapping[int, int] = field(default_factory=dict)
    frame: DataFrame | None = None
    """Staged rows to take (live ones, with the slot of the update) or to quarantine."""

    counts: BatchCounts = field(default_factory=BatchCounts)
    missing: Mapping[int, int] = field(default_factory=dict)
    """Slots that hold fewer rows than they did: the source has lost some."""

    misplaced: int = 0
    """Rows in a folder that their time does not belong to: no update finds them."""


def recount_slot(index: Index, first: int, last: int) -> int | None:
    """The slot in first..last whose update recounts, or None."""
    every = index.source.recount_every
    if every == 0:
        return None
    due = -(-first // every) * every
    return due if due <= last else None


def expected_arrivals(state: State, slots: range) -> dict[int, int]:
    """What the notes say was read for each of these slots; slots they do not tell are left out."""
    read: dict[int, int] = {}
    late: dict[int, int] = {}
    for _, note in state.log.notes():
        for slot, rows in note.late.items():
            late[slot] = late.get(slot, 0) + rows
        if note.kind == NoteKind.UPDATE:
            span = range((note.previous or 0) + 1, note.slot + 1)
            for slot in span:
                read[slot] = note.arrivals.get(slot, 0) + late.get(slot, 0)
        # A rebuild or a restore of that slot stands before the update that read it.
        if note.kind == NoteKind.UPDATE and note.slot <= slots.start:
            break
    return {slot: read[slot] for slot in slots if slot in read}


def find_stragglers(
    spark: SparkSession, index: Index, source: Source, state: State, first: int, due: int
) -> Stragglers:
    """Rows of the slots before `first` that the notes do not know of."""
    slots = range(max(1, due - index.source.recount_every), first)
    expected = expected_arrivals(state, slots)
    if not expected:
        return Stragglers()
    low, high = min(expected), max(expected)
    table = spark.read.format("delta").load(index.table)
    rows = source.rows(index.timeline.begin_of(low), index.timeline.end_of(high), table.schema)
    now, misplaced = counted_arrivals(index, rows, low, high)
    differ = {slot: now.get(slot, 0) - rows_then for slot, rows_then in expected.items()}
    more = {slot: rows for slot, rows in differ.items() if rows > 0}
    missing = {slot: -rows for slot, rows in differ.items() if rows < 0}
    if not more:
        return Stragglers(missing=missing, misplaced=misplaced)
    batch = staged(index, rows, low, high).where(F.col(INSERTION_SLOT).isNotNull())
    in_question = batch.where(F.col(INSERTION_SLOT).isin(*more))
    known = _quarantined(spark, index, sorted(more), first)
    live = _new_live(index, in_question, table, known, due)
    bad = _new_bad(in_question, known)
    if index.source.late is Late.QUARANTINE:
        live = live.withColumn(REASON, F.lit(LATE)).withColumn(RAW, F.col("_row"))
    found = (
        live.drop("_row")
        .unionByName(bad)
        .withColumn(INSERTION_SLOT, F.lit(due).cast("bigint"))
        .persist()
    )
    counts = counted(found)
    # What is neither live nor bad was dead before anybody saw it.
    dead = sum(more.values()) - counts.read
    if dead > 0:
        counts.good[(due, due)] = counts.good.get((due, due), 0) + dead
    return Stragglers(more, found, counts, missing, misplaced)


def counted_arrivals(
    index: Index, rows: SourceRows, low: int, high: int
) -> tuple[dict[int, int], int]:
    """How many rows arrived in each of the slots low..high, and how many are misplaced.

    `rows` are those of the paths of these slots; one aggregate, which reads one column.
    """
    timeline, source = index.timeline, index.source
    kind = rows.declared[source.arrived_at].dataType
    begin, end = timeline.begin_of(low), timeline.end_of(high)
    time = as_timestamp_sql(source.arrived_at, kind, source.timezone)
    column = quoted(source.arrived_at) if isinstance(kind, TimestampType) else time
    here = f"{column} > {timestamp_sql(begin)} AND {column} <= {timestamp_sql(end)}"
    wanted = here
    if (reach := source.reach(begin, end)) is not None:
        first, last = map(timestamp_sql, reach)
        wanted = f"({here}) OR {column} < {first} OR {column} > {last}"
    found = rows.frame.where(wanted).selectExpr(f"{time} AS time")
    found = found.where("time IS NOT NULL")
    slot = f"CASE WHEN time > {timestamp_sql(begin)} AND time <= {timestamp_sql(end)} THEN "
    slot += f"{slot_sql('time', timeline)} END AS slot"
    with reading():
        lines = found.selectExpr(slot).groupBy("slot").count().collect()
    counts = {line["slot"]: line["count"] for line in lines}
    return counts, counts.pop(None, 0)


def _quarantined(
    spark: SparkSession, index: Index, slots: list[int], first: int
) -> DataFrame | None:
    """What earlier updates quarantined of these arrival slots."""
    quarantine = Quarantine(spark, index)
    if not quarantine.exists():
        return None
    arrival = F.expr(slot_sql(ARRIVED, index.timeline))
    stored = spark.read.format("delta").load(quarantine.path)
    return stored.where((F.col(SLOT) < first) & arrival.isin(*slots))


def _new_live(
    index: Index, batch: DataFrame, table: DataFrame, quarantined: DataFrame | None, due: int
) -> DataFrame:
    alive = F.col(EXPIRATION_SLOT) > due
    row = row_as_json(table)
    source_rows = batch.where(F.col(REASON).isNull() & alive).withColumn("_row", row)
    arrival = F.expr(slot_sql(quoted(index.source.arrived_at), index.timeline))
    slots = batch.select(F.col(INSERTION_SLOT).alias("_arrival")).distinct()
    known = (
        table.where(alive)
        .withColumn("_arrival", arrival)
        .join(F.broadcast(slots), "_arrival", "left_semi")
        .select(row.alias("_row"))
    )
    if quarantined is not None:
        known = known.unionByName(
            quarantined.where(F.col(WHY) == LATE).select(F.col(ROW).alias("_row"))
        )
    return multiset_minus(source_rows, "_row", known, "_row")


def row_as_json(table: DataFrame) -> Column:
    """A row's own content as one value that can be compared, whatever its types."""
    names = [name for name in table.columns if name not in ADDED]
    return F.to_json(F.struct(*[F.col(quoted(name)) for name in names]), JSON_OPTIONS)


def _new_bad(batch: DataFrame, quarantined: DataFrame | None) -> DataFrame:
    bad = batch.where(F.col(REASON).isNotNull())
    if quarantined is None:
        return bad
    return multiset_minus(bad, RAW, quarantined.where(F.col(WHY) != LATE).select(ROW), ROW)
