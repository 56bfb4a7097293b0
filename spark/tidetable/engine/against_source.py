"""The live rows compared with the source: finds what no count can.

After slot j the table must hold exactly the rows that arrived in slots j-p+1 .. j and live past j.
Both sides are reduced to a line for each arrival slot: how many rows, and a sum of their hashes
that does not depend on their order. Only of the slots whose lines differ are rows compared, by
their hashes, in Spark: no row comes to the driver.

Arrival slots rather than insertion slots, because a late row has the insertion slot of the update
that took it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from tidetable.config import Index
from tidetable.core.columns import ADDED, EXPIRATION_SLOT, INSERTION_SLOT, REASON
from tidetable.engine.late import expected_arrivals, row_as_json
from tidetable.engine.quarantine import (
    ARRIVED,
    ROW,
    WHY,
    Quarantine,
    digest,
    digests,
    multiset_minus,
)
from tidetable.engine.source import Source, reading
from tidetable.engine.sql import quoted, sql_text
from tidetable.engine.staging import LATE, staged
from tidetable.engine.times import JSON_OPTIONS, slot_sql
from tidetable.table.garbage import missing_files
from tidetable.table.log import Log, open_log
from tidetable.table.state import IndexTable, State

SLOTS_NAMED = 20
"""So many slots that differ are named."""

LOOKS_MAX = 12
"""So many earlier versions are compared to find one that a replay can start from."""

_LISTED_MAX = 1000
_SLOT, _ALIVE, _HASH, _MOVED = "slot", "alive", "hash", "moved"


class Kind(StrEnum):
    """Why a slot differs, as far as the notes tell."""

    WRONG = "wrong"
    """The source has as many rows as were read then: the table has changed, or their content."""

    LATE = "late"
    """More rows came to the source after it was read; the next recount takes them."""

    LOST = "lost"
    """The source has fewer rows than were read then."""


@dataclass(frozen=True)
class Difference:
    """One arrival slot whose rows differ."""

    slot: int | None
    """None: rows whose arrival time is missing."""

    missing: int
    """Live rows of the source that the table has not."""

    extra: int
    """Rows of the table that the source has not."""

    moved: int
    """Rows whose insertion slot is neither that of their arrival nor that of a late row."""

    read_then: int | None
    """Rows that were read for this slot, dead and bad ones too; None if the notes do not say."""

    read_now: int
    kind: Kind

    def __str__(self) -> str:
        parts = [
            f"{number:,} {what}"
            for number, what in (
                (self.missing, "missing"),
                (self.extra, "not in the source"),
                (self.moved, "with another insertion slot"),
            )
            if number
        ]
        return f"slot {'?' if self.slot is None else self.slot}: {', '.join(parts)}"


@dataclass(frozen=True)
class Comparison:
    """What the comparison of one version of the table found."""

    slot: int
    version: int
    first: int
    """Slots first..slot were compared."""

    rows: int
    """Of the table."""

    source_rows: int
    """What the source says must be alive."""

    differences: list[Difference] = field(default_factory=list)
    replay_from: int | None = None
    """The slot from which a replay mends what is wrong; None if there is nothing to mend, or if a
    replay cannot mend it because the table is wrong from slot 0 on."""

    def of(self, *kinds: Kind) -> list[Difference]:
        return [one for one in self.differences if one.kind in kinds]

    @property
    def differs(self) -> bool:
        """Whether there is more than late rows, which the next recount takes."""
        return bool(self.of(Kind.WRONG, Kind.LOST))

    def as_json(self) -> dict[str, Any]:
        """For reports and the table of updates; see `Told`."""
        wrong, late = self.of(Kind.WRONG, Kind.LOST), self.of(Kind.LATE)
        return {
            "slot": self.slot,
            "version": self.version,
            "first": self.first,
            "rows": self.rows,
            "source_rows": self.source_rows,
            "differs": self.differs,
            "slots": len(wrong),
            "missing": sum(one.missing for one in wrong),
            "extra": sum(one.extra for one in wrong),
            "lost_by_source": sum(one.extra for one in self.of(Kind.LOST)),
            "late": sum(one.missing for one in late),
            "differences": [asdict(one) for one in self.differences[:SLOTS_NAMED]],
            "named": [str(one) for one in wrong[:SLOTS_NAMED]],
            "replay_from": self.replay_from,
            "error": None,
        }


def compare(spark: SparkSession, index: Index, state: State) -> Comparison:
    """Compares the newest version of the table, which stands at `state`, with the source."""
    found = _compared(spark, index, state, state.log)
    wrong = [one for one in found.differences if one.kind is not Kind.LATE]
    if not wrong:
        return found
    return replace(found, replay_from=_replay_from(spark, index, state, wrong))


def compare_now(spark: SparkSession, index: Index) -> Comparison:
    """The same for the index as it stands, damaged or not; UserError if it has no table."""
    table = IndexTable(index)
    # The second look is for what it says when there is nothing to be found.
    state = table.state(trusting=True) or table.required_state()
    return compare(spark, table.index, state)


def unable(error: BaseException) -> dict[str, Any]:
    """What is told where a comparison that was due could not be made."""
    return {"differs": False, "error": str(error).strip().splitlines()[0] or type(error).__name__}


# -- one version -----------------------------------------------------------------------------------


def _compared(spark: SparkSession, index: Index, state: State, log: Log) -> Comparison:
    """`state` says at which slot the version `log` stands, and has the notes up to it."""
    slot = state.slot
    first = slot - index.period + 1
    table = spark.read.format("delta").option("versionAsOf", log.version).load(index.table)
    timeline = index.timeline
    source = Source(spark, index)
    rows = source.rows(timeline.begin_of(first), timeline.end_of(slot), table.schema)
    batch = staged(index, rows, first, slot).where(f"{INSERTION_SLOT} IS NOT NULL")
    hashed = _hash_sql(table.schema)
    ours = _of_table(index, table, hashed)
    theirs = _of_source(batch, slot, hashed)
    stored, wanted = _lines(ours), _lines(theirs)
    late = _late_by_slot(state)
    then = expected_arrivals(state, range(max(1, first), slot + 1))
    differ = [
        at
        for at in {*stored, *wanted}
        if stored.get(at, _NOTHING).identity != wanted.get(at, _NOTHING).identity
    ]
    counted: dict[int | None, tuple[int, int]] = {}
    if differ:
        known = _without_quarantined(index, table, batch, differ)
        counted = _counted(ours, _of_source(known, slot, hashed), differ)
    differences = [
        _difference(
            at,
            counted.get(at, (0, 0)),
            # The notes must reach back to say that a row was not taken late.
            max(0, stored.get(at, _NOTHING).moved - late.get(at, 0)) if at in then else 0,
            then.get(at) if at is not None else None,
            wanted.get(at, _NOTHING).read,
        )
        for at in sorted({*stored, *wanted}, key=lambda at: (at is not None, at))
    ]
    return Comparison(
        slot=slot,
        version=log.version,
        first=first,
        rows=sum(line.alive for line in stored.values()),
        source_rows=sum(line.alive for line in wanted.values()),
        differences=[one for one in differences if one.missing or one.extra or one.moved],
    )


@dataclass(frozen=True)
class _Line:
    """What one side has of an arrival slot."""

    read: int = 0
    alive: int = 0
    low: int = 0
    high: int = 0
    moved: int = 0

    @property
    def identity(self) -> tuple[int, int, int]:
        return (self.alive, self.low, self.high)


_NOTHING = _Line()


def _of_table(index: Index, table: DataFrame, hashed: str) -> DataFrame:
    arrival = slot_sql(quoted(index.source.arrived_at), index.timeline)
    return table.selectExpr(
        f"{arrival} AS {_SLOT}",
        f"true AS {_ALIVE}",
        f"{hashed} AS {_HASH}",
        f"coalesce({INSERTION_SLOT} <> {arrival}, true) AS {_MOVED}",
    )


def _of_source(batch: DataFrame, slot: int, hashed: str) -> DataFrame:
    return batch.selectExpr(
        f"{INSERTION_SLOT} AS {_SLOT}",
        f"({REASON} IS NULL AND coalesce({EXPIRATION_SLOT} > {slot}, false)) AS {_ALIVE}",
        f"{hashed} AS {_HASH}",
        f"false AS {_MOVED}",
    )


def _hash_sql(schema: StructType) -> str:
    """A hash of a row's own columns and its expiration slot, in the table's types.

    Spark's hash passes over nulls, so that (null, 1) and (1, null) would be the same: each column
    also says whether it is null. Nested values are hashed as JSON, maps because Spark hashes none.
    """
    options = ", ".join(sql_text(text) for option in JSON_OPTIONS.items() for text in option)
    parts = [f"CAST({EXPIRATION_SLOT} AS bigint)"]
    for column in schema:
        if column.name in ADDED:
            continue
        name = quoted(column.name)
        value = f"CAST({name} AS {column.dataType.simpleString()})"
        parts.append(f"to_json({name}, map({options}))" if _is_nested(column.dataType) else value)
        parts.append(f"{name} IS NULL")
    return f"xxhash64({', '.join(parts)})"


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, ArrayType | MapType | StructType | VariantType)


def _lines(rows: DataFrame) -> dict[int | None, _Line]:
    """A line for each arrival slot."""
    # Halves of 32 bits: two thousand million rows of a slot can be added up without an overflow.
    low = f"CASE WHEN {_ALIVE} THEN {_HASH} & 4294967295L ELSE 0L END"
    high = f"CASE WHEN {_ALIVE} THEN shiftrightunsigned({_HASH}, 32) ELSE 0L END"
    with reading():
        found = (
            rows.groupBy(_SLOT)
            .agg(
                F.expr("count(*)").alias("read"),
                F.expr(f"count_if({_ALIVE})").alias("alive"),
                F.expr(f"sum({low})").alias("low"),
                F.expr(f"sum({high})").alias("high"),
                F.expr(f"count_if({_MOVED})").alias("moved"),
            )
            .collect()
        )
    names = ("read", "alive", "low", "high", "moved")
    return {line[_SLOT]: _Line(*(int(line[name]) for name in names)) for line in found}


def _counted(
    ours: DataFrame, theirs: DataFrame, differ: list[int | None]
) -> dict[int | None, tuple[int, int]]:
    """Rows that are missing from the table, and rows that only the table has, for each slot."""
    signed = (
        theirs.where(_among(differ))
        .where(_ALIVE)
        .selectExpr(_SLOT, _HASH, "1 AS sign")
        .unionAll(ours.where(_among(differ)).selectExpr(_SLOT, _HASH, "-1 AS sign"))
    )
    balance = signed.groupBy(_SLOT, _HASH).agg(F.expr("sum(sign)").alias("more"))
    with reading():
        lines = (
            balance.groupBy(_SLOT)
            .agg(
                F.expr("sum(greatest(more, 0L))").alias("missing"),
                F.expr("sum(greatest(-more, 0L))").alias("extra"),
            )
            .collect()
        )
    return {line[_SLOT]: (int(line["missing"]), int(line["extra"])) for line in lines}


def _among(slots: Iterable[int | None]) -> str:
    known = sorted(slot for slot in slots if slot is not None)
    tests = [f"{_SLOT} IS NULL"] if any(slot is None for slot in slots) else []
    if len(known) > _LISTED_MAX:
        tests.append(f"{_SLOT} BETWEEN {known[0]} AND {known[-1]}")
    elif known:
        tests.append(f"{_SLOT} IN ({', '.join(map(str, known))})")
    return " OR ".join(tests)


def _without_quarantined(
    index: Index, table: DataFrame, batch: DataFrame, slots: list[int | None]
) -> DataFrame:
    """The batch without rows that were put into quarantine because they came late."""
    quarantine = Quarantine(batch.sparkSession, index)
    if not quarantine.exists():
        return batch
    arrival = slot_sql(ARRIVED, index.timeline)
    known = (
        batch.sparkSession.read.format("delta")
        .load(quarantine.path)
        .where(F.col(WHY) == LATE)
        .withColumn(_SLOT, F.expr(arrival))
        .where(_among(slots))
    )
    rows = batch.withColumn("_row", digest(row_as_json(table)))
    return multiset_minus(rows, "_row", digests(known), ROW).drop("_row")


def _late_by_slot(state: State) -> Mapping[int | None, int]:
    """Rows that were taken late, by the slot of their arrival."""
    late: dict[int | None, int] = {}
    for _, note in state.log.notes():
        for at, rows in note.late.items():
            late[at] = late.get(at, 0) + rows
    return late


def _difference(
    slot: int | None, counts: tuple[int, int], moved: int, then: int | None, now: int
) -> Difference:
    missing, extra = counts
    kind = Kind.WRONG
    if then is not None and not moved:
        if now > then and not extra and missing <= now - then:
            kind = Kind.LATE
        elif now < then and not missing and extra <= then - now:
            kind = Kind.LOST
    return Difference(slot, missing, extra, moved, then, now, kind)


# -- how to mend it --------------------------------------------------------------------------------


def _replay_from(
    spark: SparkSession, index: Index, state: State, wrong: list[Difference]
) -> int | None:
    """The slot from which a replay gives the source's table; None if there is none.

    A replay from J starts from the version of slot J-1, or from the source if that is gone. Before
    the first slot that differs arrived, its rows cannot have been wrong; whether others were is
    looked at, since what is wrong there would stay.
    """
    first = _earliest(wrong, state.slot)
    for _ in range(LOOKS_MAX):
        version = state.log.version_of(first - 1)
        log = None if version is None else open_log(index.table, version)
        commit = None if log is None or version is None else log.commit(version)
        if log is None or commit is None or commit.note is None or missing_files(log):
            return first  # it loads from the source
        then = State(log, log.version, commit.note)
        still = _compared(spark, index, then, log).of(Kind.WRONG)
        if not still:
            return first
        if first == 1:
            return None
        first = _earliest(still, first - 1)
    oldest = min(note.slot for _, note in state.log.notes())
    return oldest if oldest >= 1 else None


def _earliest(wrong: list[Difference], last: int) -> int:
    known = [one.slot for one in wrong if one.slot is not None]
    return max(1, min([last, *known]))
