"""What a Parquet file's footer says, as Delta's log has it: row count, bounds, nulls.

A bound that is wrong hides rows from readers, so what cannot be told exactly is left out. And which
columns that is done for: those that updates and probes look at, and what the YAML adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tidetable.config import Index
from tidetable.core.columns import EXPIRATION_SLOT, EXPIRES_AT, INSERTION_SLOT
from tidetable.table.bounds import Bounds, has_bounds, statistics_json, written_bounds
from tidetable.table.log import Log

_PROPERTY = "delta.dataSkippingStatsColumns"
_MICROS = "TIMESTAMP_MICROS"


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
    bounds: dict[str, Bounds] = {}
    nulls: dict[str, int] = {}
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
            nulls[name] = sum(one.null_count for one in groups)
        kind = types[name]
        if kind == "timestamp" and footer.schema.column(places[name]).converted_type != _MICROS:
            continue
        if (found := _bounds(groups, kind)) is not None:
            bounds[name] = found
    return statistics_json(footer.num_rows, bounds, nulls)


def _bounds(groups: Iterable[Any], kind: str) -> Bounds | None:
    """Lower and upper bound as JSON; None if there is no value, or no telling."""
    told = [one for one in groups if one.num_values]
    if not told or not all(one.has_min_max for one in told):
        return None
    # As stored: what pyarrow makes of a time depends on what else is installed.
    raw = kind in ("timestamp", "string")
    low = min(one.min_raw if raw else one.min for one in told)
    high = max(one.max_raw if raw else one.max for one in told)
    return written_bounds(low, high, kind)
