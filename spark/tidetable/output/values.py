"""Values as people and programs read them, whatever types the columns of users have."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tidetable.output.characters import visible_json


def plain(value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return value if isinstance(value, str) else str(value)


def json_line(data: Any) -> str:
    """One JSON object on one line, whatever types the user's columns have."""
    try:
        line = json.dumps(data, default=plain, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):  # JSON has no NaN, and names are text
        line = json.dumps(_json_safe(data), ensure_ascii=False)
    return visible_json(line)


def _json_safe(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return "NaN" if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    if isinstance(data, Mapping):
        return {plain(name): _json_safe(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_json_safe(value) for value in data]
    return data if isinstance(data, str | int | float | None) else plain(data)


def _iso(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
