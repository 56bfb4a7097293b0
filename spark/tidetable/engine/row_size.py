"""How many bytes a row will take, guessed from a few rows, while no file tells it yet."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tidetable.core.columns import RAW, REASON
from tidetable.engine.sql import quoted

SAMPLE_ROWS = 2_000

UNKNOWN = 200.0
"""For rows that cannot be measured."""

_WIDTHS = {
    "boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "float": 4, "double": 8,
    "date": 4, "timestamp": 8, "timestamp_ntz": 8,
}  # fmt: skip


def size_of(frame: DataFrame, rows: int) -> float:
    """What so many rows like these will take."""
    return rows * row_bytes(frame) if rows else 0.0


def row_bytes(frame: DataFrame) -> float:
    """The average of some rows before compression: one small job."""
    fixed, length = 0, []
    for name, kind in frame.dtypes:
        if name in (REASON, RAW):
            continue
        if kind in _WIDTHS:
            fixed += _WIDTHS[kind]
        else:
            length.append(f"coalesce(octet_length(CAST({quoted(name)} AS STRING)), 0)")
    if not length:
        return float(fixed)
    sample = frame.limit(SAMPLE_ROWS)
    try:
        (found,) = sample.selectExpr(f"avg({' + '.join(length)}) AS size").collect()
    except PySparkException:  # a type that is no text: a guess is a guess
        return UNKNOWN
    return UNKNOWN if found["size"] is None else fixed + float(found["size"])
