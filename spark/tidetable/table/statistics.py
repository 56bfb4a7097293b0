"""Which columns the log has bounds of: those that updates and probes look at, and what the YAML
adds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidetable.config import Index
from tidetable.core.columns import EXPIRATION_SLOT, EXPIRES_AT, INSERTION_SLOT
from tidetable.table.bounds import has_bounds
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
    fields = log.schema.fields
    return {field.name: str(getattr(field.type, "type", "")) for field in fields}


def statistics_columns(log: Log) -> list[str] | None:
    """The columns that the table keeps bounds of; None if it does not name them."""
    listed = log.properties.get(_PROPERTY)
    if listed is None:
        return None
    return [name.replace("``", "`") for name in re.findall(r"`((?:[^`]|``)+)`", listed)]
