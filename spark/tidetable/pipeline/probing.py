"""What the page's probe box answers: the rows of one key, without a JVM."""

from __future__ import annotations

import json
import math
import time
from datetime import datetime
from typing import Any

import pyarrow as pa

from tidetable.config import Index, format_time
from tidetable.core.columns import EXPIRATION_SLOT
from tidetable.core.errors import UserError
from tidetable.table.read import View, batches, rows, view
from tidetable.table.restriction import Restriction

ROWS_MAX = 200
BYTES_MAX = 1_000_000
"""Of the rows of an answer; the one that goes beyond is left out, and all after it."""

TEXT_MAX = 5_000
"""Characters of a value that are shown."""

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
    found.sort(key=lambda row: row[0])
    return {
        "key": key,
        "slot": seen.slot,
        "as_of": format_time(seen.as_of),
        "columns": [
            {"name": field.name, "numeric": _is_number(field.type)}
            for field in (seen.schema.field(name) for name in seen.columns)
        ],
        "rows": [values for _, values in found],
        "cut": cut is not None,
        "cut_because": cut,
        "seconds": round(time.perf_counter() - started, 4),
    }


def _some_rows(seen: View, wanted: Restriction) -> tuple[list[tuple[int, list[Any]]], str | None]:
    """Rows as they are shown, each with the slot in which it dies; and why they are not all.

    What is not asked for is not read, and never more than a row is turned into Python at once: one
    may be as large as all others together.
    """
    found: list[tuple[int, list[Any]]] = []
    left = BYTES_MAX
    for batch in batches(seen, wanted):
        for number in range(batch.num_rows):
            if len(found) == ROWS_MAX:
                return found, f"more than {ROWS_MAX} rows"
            (row,) = rows(batch.slice(number, 1))
            values = [_shown(row[name]) for name in seen.columns]
            left -= len(json.dumps(values, ensure_ascii=False).encode(errors="replace"))
            if left < 0 and found:
                return found, f"more than {BYTES_MAX:,} bytes"
            found.append((row[EXPIRATION_SLOT], values))
    return found, None


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _shown(value: Any) -> Any:
    """A value as JSON has it and JavaScript keeps it; the beginning of a long one."""
    match value:
        case None | bool():
            return value
        case str():
            return _beginning(value, len(value), "characters")
        case int():
            return value if abs(value) < _EXACT_IN_JAVASCRIPT else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return format_time(value)
        case bytes():
            return _beginning(value[:TEXT_MAX].hex(), len(value), "bytes")
        case dict() | list():
            text = json.dumps(value, default=str, ensure_ascii=False)
            return _beginning(text, len(text), "characters")
    return str(value)


def _beginning(text: str, size: int, unit: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({size:,} {unit})"
