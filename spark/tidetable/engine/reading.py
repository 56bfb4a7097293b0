"""Reading an index with Spark: the same rows and the same Python values as without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from tidetable.core.columns import EXPIRATION_SLOT
from tidetable.engine.sql import quoted
from tidetable.table.read import View
from tidetable.table.restriction import (
    DIGITS_MAX,
    Restriction,
    Test,
    Value,
    decimal_type,
    micros,
)

_INT64 = range(-(2**63), 2**63)


def frame(spark: SparkSession, view: View, restriction: Restriction) -> DataFrame:
    """The rows as a Spark DataFrame."""
    where = spark_condition(restriction.tests(view.index, view.schema, view.as_of))
    table = (
        spark.read.format("delta").option("versionAsOf", view.log.version).load(view.index.table)
    )
    if where is not None:
        table = table.where(where)
    return table.select(*[quoted(name) for name in view.columns])


def sorted_frame(spark: SparkSession, view: View, restriction: Restriction) -> DataFrame:
    """The same, by key and then by expiration slot."""
    return frame(spark, view, restriction).orderBy(quoted(view.index.key), EXPIRATION_SLOT)


def spark_condition(tests: Sequence[Test]) -> Column | None:
    """The tests as a condition of Spark's; None if there are none."""
    return reduce(lambda all_, one: all_ & one, map(_spark_test, tests)) if tests else None


def _spark_test(test: Test) -> Column:
    column = F.col(quoted(test.column))
    values = [_spark_literal(value, test.kind) for value in test.values]
    if len(values) > 1:
        return column.isin(*values)
    by_operator = {
        "=": column.__eq__, ">=": column.__ge__, "<=": column.__le__, ">": column.__gt__
    }  # fmt: skip
    return by_operator[test.operator](values[0])


def _spark_literal(value: Value, kind: pa.DataType) -> Column:
    """Casts of text are folded into literals by Spark; Python's and Java's dates are never met."""
    match value:
        case bool():
            return F.lit(value)
        case int():
            is_long = value in _INT64
            return F.lit(value) if is_long else F.lit(str(value)).cast(f"decimal({DIGITS_MAX},0)")
        case float():
            return F.lit(value).cast("float" if kind.bit_width == 32 else "double")
        case Decimal():
            return F.lit(f"{value:f}").cast(decimal_type(value))
        case datetime() if value.tzinfo is not None:
            return F.timestamp_micros(F.lit(micros(value)))
        case datetime():
            return F.lit(value.isoformat()).cast("timestamp_ntz")
        case date():
            return F.lit(value.isoformat()).cast("date")
        case bytes():
            return F.unhex(F.lit(value.hex()))
    return F.lit(value)


def spark_rows(table: DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of a DataFrame as delta-rs would give them, a partition at a time."""
    kinds = {field.name: field.dataType for field in table.schema}
    for row in table.toLocalIterator():
        values = row.asDict(recursive=True)
        yield {name: _in_utc(values[name], kind) for name, kind in kinds.items()}


def _in_utc(value: Any, kind: DataType) -> Any:
    """PySpark hands out times in the zone of the machine, without saying so."""
    if value is None:
        return None
    if isinstance(kind, TimestampType):
        return value.astimezone(UTC)
    if isinstance(kind, StructType):
        return {field.name: _in_utc(value[field.name], field.dataType) for field in kind}
    if isinstance(kind, ArrayType):
        return [_in_utc(item, kind.elementType) for item in value]
    if isinstance(kind, MapType):
        return {
            _in_utc(key, kind.keyType): _in_utc(item, kind.valueType) for key, item in value.items()
        }
    return bytes(value) if isinstance(value, bytearray) else value
