"""What the page's probe box answers: the rows of one key, without a JVM."""

from __future__ import annotations

import json
import math
import time
from datetime import datetime
from typing import Any

import pyarrow as pa

from tidetable.core.config import Index, format_time
from tidetable.core.errors import UserError
from tidetable.delta.columns import EXPIRATION_SLOT
from tidetable.delta.read import View, batches, rows, view
from tidetable.delta.restriction import Restriction

ROWS_MAX = 200
_KEY_TEXT_MAX = 1000
_EXACT_IN_JAVASCRIPT = 2**53


def probe(index: Index, key: str, alive_at: datetime | None = None) -> dict[str, Any]:
    """The rows of one key as the table stands; UserError if it cannot be asked for."""
    started = time.perf_counter()
    if len(key) > _KEY_TEXT_MAX:
        raise UserError(
            f"The key has {len(key):,} characters; at most {_KEY_TEXT_MAX:,} can be asked for here."
        )
    seen = view(index)
    if alive_at is not None and alive_at < seen.as_of:
        raise UserError(
            f"{format_time(alive_at)} lies before the table's own time, {format_time(seen.as_of)}: "
            "rows that were alive then may be gone. Ask for that time or a later one."
        )
    found, cut = _some_rows(seen, Restriction(keys=(key,), alive_at=alive_at))
    found.sort(key=lambda row: row[EXPIRATION_SLOT])
    return {
        "key": key,
        "slot": seen.slot,
        "as_of": format_time(seen.as_of),
        "columns": [
            {"name": field.name, "numeric": _is_number(field.type)}
            for field in (seen.schema.field(name) for name in seen.columns)
        ],
        "rows": [[_shown(row[name]) for name in seen.columns] for row in found],
        "cut": cut,
        "seconds": round(time.perf_counter() - started, 4),
    }


def _some_rows(seen: View, wanted: Restriction) -> tuple[list[dict[str, Any]], bool]:
    """At most so many rows, and whether there are more; what is not asked for is not read."""
    found: list[dict[str, Any]] = []
    for batch in batches(seen, wanted):
        found += rows(batch.slice(0, ROWS_MAX + 1 - len(found)))
        if len(found) > ROWS_MAX:
            return found[:ROWS_MAX], True
    return found, False


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _shown(value: Any) -> Any:
    """A value as JSON has it and JavaScript keeps it."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < _EXACT_IN_JAVASCRIPT else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return format_time(value)
        case bytes():
            return value.hex()
        case dict() | list():
            return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)
