"""Bounds of values as Delta's log has them: JSON, cut off where they may be, left out where nobody
can tell.

A bound that is wrong hides rows from readers. Nothing heavy is imported here: tasks use it too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

TEXT_MAX = 128
"""Longer texts are cut off: bounds need not be values."""

_LAST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Bounds = tuple[str, str]


def has_bounds(kind: str) -> bool:
    """Whether Delta keeps bounds of columns of this type, as Delta or Spark name it.

    It refuses to be asked for those of others, such as binary, boolean or nested columns.
    """
    return kind.startswith("decimal") or kind in _WITH_BOUNDS


def written_bounds(low: Any, high: Any, kind: str) -> Bounds | None:
    """Both as JSON; None if one of them cannot be told. A text is bytes, a time microseconds."""
    write = _WRITERS.get("decimal" if kind.startswith("decimal") else kind)
    if write is None:
        return None
    lower, upper = write(low, False), write(high, True)
    return None if lower is None or upper is None else (lower, upper)


def statistics_json(rows: int, bounds: Mapping[str, Bounds], nulls: Mapping[str, int]) -> str:
    """The statistics of a file, as an add action has them."""
    lowest = {name: low for name, (low, _) in bounds.items()}
    highest = {name: high for name, (_, high) in bounds.items()}
    counts = {name: str(number) for name, number in nulls.items()}
    return (
        f'{{"numRecords":{rows},"minValues":{_object(lowest)},'
        f'"maxValues":{_object(highest)},"nullCount":{_object(counts)}}}'
    )


def _text(stored: bytes, is_upper: bool) -> str | None:
    try:
        value = stored.decode()
    except UnicodeDecodeError:
        return None
    if len(value) > TEXT_MAX:
        if is_upper and value[TEXT_MAX] == _LAST_CHARACTER:
            return None
        value = value[:TEXT_MAX] + (_LAST_CHARACTER if is_upper else "")
    return json.dumps(value, ensure_ascii=False)


def _whole(value: int, _: bool) -> str:
    return str(value)


def _fraction(value: float, is_upper: bool) -> str | None:
    if not math.isfinite(value):
        return None
    if value == 0:  # which of the two zeros it is depends on whoever looked
        return "0.0" if is_upper else "-0.0"
    return repr(value)


def _decimal(value: Decimal, _: bool) -> str:
    return format(value, "f")


def _day(value: date, _: bool) -> str:
    return json.dumps(value.isoformat())


def _moment(micros: int, _: bool) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    return json.dumps(f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0"))


def _object(values: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in values.items()) + "}"


_WRITERS: dict[str, Callable[[Any, bool], str | None]] = {
    "string": _text,
    "byte": _whole,
    "short": _whole,
    "integer": _whole,
    "long": _whole,
    "float": _fraction,
    "double": _fraction,
    "decimal": _decimal,
    "date": _day,
    "timestamp": _moment,
}
_WITH_BOUNDS = frozenset({*_WRITERS, "timestamp_ntz"}) - {"decimal"}
