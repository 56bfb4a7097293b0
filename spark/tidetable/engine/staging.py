"""A batch, staged: every row with its slots and, if it is bad, the reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, TimestampType

from tidetable.config import Index
from tidetable.core.columns import EXPIRATION_SLOT, EXPIRES_AT, INSERTION_SLOT, RAW, REASON
from tidetable.core.errors import UserError
from tidetable.engine.reuse import handed_over
from tidetable.engine.source import CORRUPT, SourceRows, reading
from tidetable.engine.sql import quoted, sql_text, type_sql
from tidetable.engine.times import (
    JSON_OPTIONS,
    arrived_sql,
    as_timestamp_sql,
    in_micros,
    readable_sql,
    slot_sql,
    timestamp_sql,
)
from tidetable.table.reasons import Reason

NO_ARRIVAL = Reason.NO_ARRIVAL.value
"""Such a row belongs to no slot: it turns up in every batch and is quarantined once."""

LATE = Reason.LATE.value

PATH_SPAN_MAX = 2
"""In a path that spans so many slots at most, there is next to nothing to skip."""


def staged(index: Index, rows: SourceRows, first: int, last: int) -> DataFrame:
    """The rows that arrived in slots first..last, and those whose arrival cannot be read.

    Columns: the user's (time columns as timestamps), the two slots, REASON (null for a good row)
    and RAW (the bad row as it came, as JSON).
    """
    declared = {field.name: field.dataType for field in rows.declared}
    source = index.source

    def time(name: str) -> str:
        return as_timestamp_sql(name, declared[name], source.timezone)

    begin = timestamp_sql(index.timeline.begin_of(first))
    end = timestamp_sql(index.timeline.end_of(last))
    if not _can_skip(index, declared[source.arrived_at]):
        column = quoted(source.arrived_at)
        begin, end = handed_over(begin, column), handed_over(end, column)
    arrival = declared[source.arrived_at]
    frame = rows.frame.where(arrived_sql(source.arrived_at, arrival, source.timezone, begin, end))
    times = {source.arrived_at, index.inserted_at, index.expires_at}
    as_read = {field.name: field.dataType for field in frame.schema}
    typed, unreadable = [], []
    if rows.has_corrupt:
        no_record = sql_text(Reason.NO_RECORD)
        unreadable.append(f"CASE WHEN {CORRUPT} IS NOT NULL THEN {no_record} END")
    for name, data_type in declared.items():
        column = quoted(name)
        if name in times:
            typed.append(f"{time(name)} AS {column}")
        elif as_read[name] == data_type:
            typed.append(column)
        else:
            cast = f"try_cast({column} AS {type_sql(data_type)})"
            typed.append(f"{cast} AS {column}")
            why = sql_text(f"{Reason.WRONG_TYPE}{name}")
            unreadable.append(f"CASE WHEN {column} IS NOT NULL AND {cast} IS NULL THEN {why} END")
    reason = f"coalesce({', '.join(unreadable)})" if unreadable else "CAST(NULL AS STRING)"
    raw = f"struct({', '.join(quoted(name) for name in as_read)})"
    frame = frame.selectExpr(*typed, f"{reason} AS {REASON}", f"{raw} AS {RAW}")
    if index.lifetime is not None:
        frame = _with_expiry(frame, index)
    return _judged(frame, index)


def _can_skip(index: Index, arrived: DataType) -> bool:
    """Whether statistics of files and row groups tell Spark which ones hold no row of a batch.

    Not if the paths are so fine that hardly anything else lies in them.
    """
    span = index.source.path_span
    is_coarse = span is None or span > PATH_SPAN_MAX * index.timeline.every
    return is_coarse and index.source.is_columnar and isinstance(arrived, TimestampType)


def _with_expiry(frame: DataFrame, index: Index) -> DataFrame:
    """The rows with the time at which each dies; null where the lifetime, or the sum, has none."""
    try:
        # Not the text of the YAML: what was checked is what runs. `try_add` gives null for
        # whatever goes wrong in either of the two.
        sum_ = f"try_add({quoted(index.inserted_at)}, ({index.lifetime_sql}))"
        users = [quoted(name) for name in frame.columns]
        dated = frame.selectExpr("*", f"CAST({sum_} AS timestamp) AS {EXPIRES_AT}")
        dated = dated.selectExpr(*users, f"{readable_sql(EXPIRES_AT)} AS {EXPIRES_AT}")
        _ = dated.schema  # over Connect a mistake shows only then
        return dated
    except PySparkException as error:
        raise UserError(
            f"lifetime {index.lifetime!r} cannot be added to {index.inserted_at}: "
            f"{str(error).splitlines()[0]} Write an interval such as 'interval 90 minutes' or "
            "'make_dt_interval(0, 0, minutes_valid)'."
        ) from error


def expiry_column(index: Index) -> str:
    return index.expires_at if index.expires_at is not None else EXPIRES_AT


def _judged(frame: DataFrame, index: Index) -> DataFrame:
    """The rows with slots and the first reason that applies, in the order people would look."""
    arrived = quoted(index.source.arrived_at)
    inserted = quoted(index.inserted_at)
    expires = quoted(expiry_column(index))
    key = quoted(index.key)
    is_text = isinstance(frame.schema[index.key].dataType, StringType)
    no_key = f"{key} IS NULL" + (f" OR {key} = ''" if is_text else "")
    lives = f"unix_micros({expires}) - unix_micros({arrived})"
    # Pairs, not a mapping: the same column may serve as two of the times.
    reasons: list[tuple[str, str | None]] = [
        (f"{arrived} IS NULL", NO_ARRIVAL),
        (f"{REASON} IS NOT NULL", None),
        (no_key, Reason.NO_KEY),
        (f"{inserted} IS NULL", Reason.NO_INSERTION),
        (f"{expires} IS NULL", Reason.NO_EXPIRATION),
        (f"{expires} < {inserted}", Reason.EXPIRES_FIRST),
        (f"{inserted} > {arrived}", Reason.INSERTED_LATER),
        (f"{lives} > {in_micros(index.longest_lifetime)}L", Reason.OUTLIVES),
    ]
    cases = " ".join(
        f"WHEN {test} THEN {REASON if reason is None else sql_text(reason)}"
        for test, reason in reasons
    )
    users = [quoted(name) for name in frame.columns if name not in (REASON, RAW)]
    judged = frame.selectExpr(
        *users,
        f"CASE {cases} END AS {REASON}",
        RAW,
        f"{slot_sql(arrived, index.timeline)} AS {INSERTION_SLOT}",
        f"{slot_sql(expires, index.timeline)} AS {EXPIRATION_SLOT}",
    )
    options = ", ".join(sql_text(text) for option in JSON_OPTIONS.items() for text in option)
    # Only bad rows are turned into JSON: it costs more than everything else here together.
    return judged.selectExpr(
        *users,
        REASON,
        f"CASE WHEN {REASON} IS NOT NULL THEN to_json({RAW}, map({options})) END AS {RAW}",
        INSERTION_SLOT,
        EXPIRATION_SLOT,
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
    by = [slot.alias("slot"), expires.alias("expires"), F.col(REASON).alias("reason")]
    with reading():
        # At most one line per pair of slots, never rows of the user's.
        table = batch.groupBy(*by).count().collect()
    counts = BatchCounts()
    for line in table:
        if line["reason"] is None:
            counts.good[(line["slot"], line["expires"])] = line["count"]
        else:
            counts.bad[(line["slot"], line["reason"])] = line["count"]
    return counts
