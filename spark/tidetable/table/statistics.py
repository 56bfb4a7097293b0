"""What a Parquet file's footer says, as Delta's log has it: row count, bounds, nulls.

A bound that is wrong hides rows from readers, so what cannot be told exactly is left out. And which
columns that is done for: those that updates and probes look at, and what the YAML adds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tidetable.config import Index
from tidetable.core.columns import EXPIRATION_SLOT, EXPIRES_AT, INSERTION_SLOT
from tidetable.table.log import Log

TEXT_MAX = 128
"""Longer texts are cut off: bounds need not be values."""

_LAST_CHARACTER = "\U0010ffff"
_PROPERTY = "delta.dataSkippingStatsColumns"
_MICROS = "TIMESTAMP_MICROS"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def has_bounds(kind: str) -> bool:
    """Whether Delta keeps bounds of columns of this type, as Delta or Spark name it.

    It refuses to be asked for those of others, such as binary, boolean or nested columns.
    """
    return kind.startswith("decimal") or kind in _WITH_BOUNDS


def statistics_property(index: Index, kinds: Mapping[str, str]) -> dict[str, str]:
    """The property of Delta that names the columns with bounds, for a table of these types."""
    # What the YAML adds and Delta does not keep is refused once there is a batch (source.py).
    keys, added = (
        [name for name in names if has_bounds(kinds.get(name, ""))]
        for names in ([index.key], index.statistics)
    )
    times = [index.inserted_at, index.expires_at or EXPIRES_AT]
    names = [*keys, *times, INSERTION_SLOT, EXPIRATION_SLOT, *added]
    quoted = ("`" + name.replace("`", "``") + "`" for name in dict.fromkeys(names))
    return {_PROPERTY: ",".join(quoted)}


def kinds_of(log: Log) -> dict[str, str]:
    """The type of each column, in Delta's words; of nested ones nothing."""
    fields = log.table.schema().fields
    return {field.name: str(getattr(field.type, "type", "")) for field in fields}


def statistics_columns(log: Log) -> list[str] | None:
    """The columns that the table keeps bounds of; None if it does not name them."""
    listed = log.properties.get(_PROPERTY)
    if listed is None:
        return None
    return [name.replace("``", "`") for name in re.findall(r"`((?:[^`]|``)+)`", listed)]


def file_statistics(log: Log, file: Path) -> str:
    """The statistics of a file that is to be added to the table, as JSON."""
    footer = pq.read_metadata(file)
    types = kinds_of(log)
    places = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    lowest: dict[str, str] = {}
    highest: dict[str, str] = {}
    nulls: dict[str, str] = {}
    for name in statistics_columns(log) or ():
        if name not in places:
            continue
        groups = [
            footer.row_group(group).column(places[name]).statistics
            for group in range(footer.num_row_groups)
        ]
        if any(one is None for one in groups):
            continue
        if all(one.has_null_count for one in groups):
            nulls[name] = str(sum(one.null_count for one in groups))
        kind = types[name]
        if kind == "timestamp" and footer.schema.column(places[name]).converted_type != _MICROS:
            continue
        bounds = _bounds(groups, kind)
        if bounds is not None:
            lowest[name], highest[name] = bounds
    return (
        f'{{"numRecords":{footer.num_rows},"minValues":{_object(lowest)},'
        f'"maxValues":{_object(highest)},"nullCount":{_object(nulls)}}}'
    )


def _bounds(groups: Iterable[Any], kind: str) -> tuple[str, str] | None:
    """Lower and upper bound as JSON; None if there is no value, or no telling."""
    told = [one for one in groups if one.num_values]
    if not told or not all(one.has_min_max for one in told):
        return None
    # As stored: what pyarrow makes of a time depends on what else is installed.
    raw = kind in ("timestamp", "string")
    low = min(one.min_raw if raw else one.min for one in told)
    high = max(one.max_raw if raw else one.max for one in told)
    write = _WRITERS.get("decimal" if kind.startswith("decimal") else kind)
    if write is None:
        return None
    lower, upper = write(low, False), write(high, True)
    return None if lower is None or upper is None else (lower, upper)


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


def _fraction(value: float, _: bool) -> str | None:
    return repr(value) if math.isfinite(value) else None


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


def _object(values: dict[str, str]) -> str:
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
