"""A row of the table of updates: what one commit did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

import pyarrow as pa

from tidetable.config import format_time

_MOMENT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class UpdateRow:
    """One row: what one commit did, and how it left the table."""

    index: str
    slot: int
    as_of: datetime
    committed_at: datetime
    version: int
    """Of the index's own table."""

    kind: str
    """load, update, restore or rebuild."""

    read: int
    inserted: int
    expired: int
    dead_on_arrival: int
    quarantined: int
    live: int
    late: int
    missing: int
    rewritten_rows: int
    written_bytes: int
    files: int
    bytes: int
    cells: int
    """How many cells were touched."""

    imbalance: float | None
    """Largest cell / mean cell; None while there is no row."""

    seconds: float | None
    """None if the row was made up for later."""

    reasons: Mapping[str, int]
    touched: Sequence[Mapping[str, Any]]
    """The touched cells: g, e, what was done and why."""

    checks: Mapping[str, int] | None
    """What a check of all rows counted, if there was one."""

    predicted_s: float | None = None
    """What the advisor said that an average update would take, if it chose the scheme."""

    folders: Mapping[str, Any] | None = None
    """How many folders the source should have had for it, and which were missing."""

    against_source: Mapping[str, Any] | None = None
    """What a comparison with the source found, if there was one."""

    def as_json(self) -> dict[str, Any]:
        """All of it, times as text."""
        times = {"as_of": self.as_of, "committed_at": self.committed_at}
        return asdict(self) | {name: format_time(time) for name, time in times.items()}

    def figures(self) -> dict[str, Any]:
        """The same without the lists: what an event or a metric carries."""
        return {name: value for name, value in self.as_json().items() if name not in AS_JSON}


AS_JSON = ("reasons", "touched", "checks", "folders", "against_source")
_TYPES = {"int": pa.int64(), "str": pa.string(), "float | None": pa.float64(), "datetime": _MOMENT}
SCHEMA = pa.schema(
    [
        pa.field(one.name, pa.string() if one.name in AS_JSON else _TYPES[str(one.type)])
        for one in fields(UpdateRow)
    ]
)
