"""Queries that differ from one update to the next in values only, so that Spark knows their code.

Spark writes a Java program for each query and compiles it; the JVM watches it run and compiles it
again, and again if it runs long. Numbers and times stand in that program as they stand in the
query. So an update whose query says `> 41` where the one before said `> 40` pays for all of that
anew: on two cores a seventh of an update of 1 GB. An array stands in the program as a reference; if
a value is taken out of one, it changes from update to update and the program does not.

The price: Spark does not see what a column is compared with, so it skips no file and no row group.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def handed_over(value: str, column: str) -> str:
    """SQL for the literal `value`, to be compared with `column`; null where that is null.

    The place in the array has to depend on a column, or Spark would work the value out beforehand.
    """
    return f"get(array({value}), CAST({column} IS NULL AS INT))"


def handed_over_column(value: object, column: Column) -> Column:
    """The same for Column objects."""
    return F.get(F.array(F.lit(value)), column.isNull().cast("int"))
