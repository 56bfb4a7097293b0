"""Rows as text that is the same whoever read them. Python alone: it runs in two environments."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

IN_THE_PAGE = "/data/flights"
"""The table in the lines of docs/readers.md."""


def texts(result: Any, *, text_is_bytes: bool = False) -> list[str]:
    """What a reader handed out, in whatever form, as a sorted list of rows.

    With `text_is_bytes` a text equals its bytes, for engines that have one type for both.
    """
    rows = (
        {name: plain(value, text_is_bytes) for name, value in row.items()} for row in _dicts(result)
    )
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def _dicts(result: Any) -> Iterable[Mapping[str, Any]]:
    module = type(result).__module__
    if module.startswith("pandas."):
        return list(result.to_dict("records"))
    if module.startswith("pyspark."):
        return list(result.toArrow().to_pylist())
    import pyarrow as pa

    table = result if isinstance(result, pa.Table) else pa.table(result)
    return list(table.to_pylist())


def plain(value: Any, text_is_bytes: bool = False) -> Any:
    """The value in the forms that JSON has; what is of another kind stays different."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str) and text_is_bytes:
        value = value.encode()
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, Decimal):
        return f"decimal {value:f}"
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC)
        return moment.isoformat(" ", "microseconds")
    if isinstance(value, date):
        return f"day {value.isoformat()}"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    if isinstance(value, Mapping):
        return {name: plain(part, text_is_bytes) for name, part in value.items()}
    parts = list(value)
    if parts and all(isinstance(part, tuple) for part in parts):  # the pairs of a map
        return {"map": sorted([plain(part, text_is_bytes) for part in pair] for pair in parts)}
    return [plain(part, text_is_bytes) for part in parts]
