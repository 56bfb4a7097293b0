"""What the source has brought lately, as the advisor needs it: rows by slot and by lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from statistics import mean, pstdev

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidetable.advisor import Workload
from tidetable.config import Index
from tidetable.core.columns import EXPIRATION_SLOT, INSERTION_SLOT, REASON
from tidetable.core.errors import UserError
from tidetable.engine.row_size import row_bytes
from tidetable.engine.source import Source, reading
from tidetable.engine.staging import staged
from tidetable.table.state import IndexTable

SLOTS_MAX = 288
"""So many slots are read at most, the newest ones."""

LIFETIMES_MAX = 1000
"""So many different lifetimes are told apart at most."""

SWING_MIN = 0.1
"""Slots that differ by less than this share, on average, count as equally full."""


def read_workload(spark: SparkSession, index: Index) -> Workload:
    """What arrived in the last slots; before the table is made, around the first one.

    One aggregate over these slots and, without a table, one small sample for the size of a row.
    UserError if there is no row among them that lives for a slot.
    """
    table = IndexTable(index)
    state = table.state()
    index = table.index
    number = min(index.period, SLOTS_MAX)
    last = number if state is None else state.slot
    first = 1 - number if state is None else state.slot - number + 1
    known = None if state is None else spark.read.format("delta").load(index.table).schema
    timeline = index.timeline
    rows = Source(spark, index).rows(timeline.begin_of(first), timeline.end_of(last), known)
    batch = staged(index, rows, first, last)
    lasting = batch.where(F.col(REASON).isNull() & (F.col(EXPIRATION_SLOT) > F.col(INSERTION_SLOT)))
    counts = _counts(lasting, ceil(index.period / LIFETIMES_MAX))
    if not counts:
        raise UserError(
            f"The source of {index.name!r} holds no row that arrived in slots {first} to {last} "
            "and lives for a slot or longer, so there is nothing to advise on. Wait until some "
            "have arrived, or name a scheme in the YAML."
        )
    size = None
    if state is not None and state.log.rows:
        size = state.log.files.bytes / state.log.rows
    return workload_of(index, counts, row_bytes(lasting) if size is None else size)


def workload_of(
    index: Index, counts: Mapping[tuple[int, int], int], bytes_per_row: float
) -> Workload:
    """From rows by (slot, number of the lifetime): lifetimes are told apart in equal steps."""
    step = ceil(index.period / LIFETIMES_MAX)
    slots = [slot for slot, _ in counts]
    observed = range(min(slots), max(slots) + 1)
    lifetimes = [0.0] * index.period
    for (_, bucket), rows in counts.items():
        here = range((bucket - 1) * step, min(bucket * step, index.period))
        for place in here:
            lifetimes[place] += rows / len(observed) / len(here)
    return Workload(
        lifetimes=tuple(lifetimes),
        bytes_per_row=max(1.0, bytes_per_row),
        update_every=index.update_every,
        keep_versions_for=index.keep_versions_for,
        target_file_bytes=index.target_file_size,
        rates=_rates(counts, observed),
    )


def _counts(lasting: DataFrame, step: int) -> dict[tuple[int, int], int]:
    lifetime = F.ceil((F.col(EXPIRATION_SLOT) - F.col(INSERTION_SLOT)) / step)
    with reading():
        # At most SLOTS_MAX x LIFETIMES_MAX lines, never rows of the user's.
        found = lasting.groupBy(
            F.col(INSERTION_SLOT).alias("slot"), lifetime.alias("lifetime")
        ).count().collect()  # fmt: skip
    return {(line["slot"], line["lifetime"]): line["count"] for line in found}


def _rates(counts: Mapping[tuple[int, int], int], observed: range) -> tuple[float, ...]:
    by_slot = dict.fromkeys(observed, 0)
    for (slot, _), rows in counts.items():
        by_slot[slot] += rows
    average = mean(by_slot.values())
    rates = tuple(by_slot[slot] / average for slot in observed)
    # Chance alone makes slots differ by the root of their rows; that is no swing of the source.
    noise = max(SWING_MIN, 2 / average**0.5)
    return rates if pstdev(rates) > noise else (1.0,)
