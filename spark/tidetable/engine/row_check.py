"""All rows looked at, one by one: what file statistics cannot tell.

One aggregate over the table, in Spark SQL. Every `quality.check_rows_every`-th update runs it, in
its own application, and hands its figures over by the table of updates. What differs from one check
to the next is handed over by reference (reuse.py): compiling took longer than looking.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType

from tidetable.config import Index
from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.core.schemes import Scheme
from tidetable.engine.reuse import handed_over
from tidetable.engine.sql import quoted
from tidetable.engine.staging import expiry_column
from tidetable.engine.swap import are_in_cells, is_plain, rows_of
from tidetable.engine.times import slot_sql
from tidetable.table.log import Log


def row_figures(spark: SparkSession, index: Index, slot: int, log: Log) -> dict[str, int]:
    """How many rows there are in the version of the table, and how many are wrong in which way, as
    of `slot`."""
    if is_plain(log) and are_in_cells(log.files) and log.files:
        table = rows_of(spark, log, log.files)  # Spark need not work out again what is in the log
    else:
        reader = spark.read.format("delta").option("versionAsOf", log.version)
        table = reader.load(index.table)
    is_text = isinstance(table.schema[index.key].dataType, StringType)
    tests = row_tests(index, slot, key_is_text=is_text)
    counts = [f"count_if(coalesce({test}, true)) AS {name}" for name, test in tests.items()]
    found = table.selectExpr("count(*) AS rows", *counts).collect()[0]
    return {name: int(found[name]) for name in ("rows", *tests)}


def row_tests(index: Index, slot: int, *, key_is_text: bool) -> dict[str, str]:
    """What is wrong with a row, as SQL for each name; a test that gives null counts as wrong."""
    scheme, timeline = index.build_scheme(), index.timeline
    now = handed_over(f"{slot}L", EXPIRATION_SLOT)
    key, inserted = quoted(index.key), quoted(index.inserted_at)
    expires, arrived = quoted(expiry_column(index)), quoted(index.source.arrived_at)
    return {
        "expired": f"{EXPIRATION_SLOT} <= {now}",
        "insertion_out_of_range": (
            f"{INSERTION_SLOT} <= {now} - {index.period} OR {INSERTION_SLOT} > {now}"
        ),
        # Not more than p after its own insertion, which is no more than p after the slot.
        "expiration_out_of_range": (
            f"{EXPIRATION_SLOT} <= {INSERTION_SLOT} "
            f"OR {EXPIRATION_SLOT} > {INSERTION_SLOT} + {index.period}"
        ),
        "misplaced": _misplaced(scheme, slot),
        "no_key": f"{key} IS NULL" + (f" OR {key} = ''" if key_is_text else ""),
        "no_inserted_at": f"{inserted} IS NULL",
        "no_expires_at": f"{expires} IS NULL",
        "wrong_expiration_slot": f"{EXPIRATION_SLOT} <> {slot_sql(expires, timeline)}",
        # A row that was taken late has the slot of the update that took it, which is a later one.
        "wrong_insertion_slot": f"{INSERTION_SLOT} < {slot_sql(arrived, timeline)}",
    }


def _misplaced(scheme: Scheme, slot: int) -> str:
    """Neither where a load puts a row nor where the updates up to `slot` have left it.

    The two differ for Sweep with a log only: there a row waits until its group is swept.
    """
    places = {scheme.cell_sql(None, INSERTION_SLOT, EXPIRATION_SLOT)}
    if slot >= 1:
        places.add(scheme.cell_sql(scheme.fold(1, slot), INSERTION_SLOT, EXPIRATION_SLOT))
    right = [f"({CELL_G} = {g} AND {CELL_E} = {e})" for g, e in sorted(places)]
    return f"NOT ({' OR '.join(right)})"
