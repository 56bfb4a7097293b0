"""The rows in an index's quarantine, as people look at them. No JVM."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidetable.config import Index
from tidetable.table.beside import Kind, open_beside
from tidetable.table.forget import DIGEST
from tidetable.table.log import arrow
from tidetable.table.newest import lowest_of_newest
from tidetable.table.read import query
from tidetable.table.read import rows as python_rows


@dataclass(frozen=True)
class QuarantinedRow:
    """One row that was not taken."""

    slot: int
    reason: str
    arrived_at: datetime | None
    row: str
    """As JSON, or the beginning of it."""

    characters: int
    """How many `row` has in the table."""


def newest_quarantined(index: Index, rows: int, characters: int) -> list[QuarantinedRow]:
    """At most so many rows of the highest slots, the newest first, each text cut at `characters`.

    Rows of which only a digest is left are left out. The texts are cut before they are read into
    Python: one may be as large as all others together.
    """
    log = open_beside(index, Kind.QUARANTINE)
    if log is None or rows < 1:
        return []
    low = lowest_of_newest(log.table, "slot", rows)
    where = f"row NOT LIKE '{DIGEST}%'" + ("" if low is None else f" AND slot >= {low}")
    sql = (
        f"SELECT slot, reason, arrived_at, substr(row, 1, {characters}) AS row, "
        f"length(row) AS characters FROM t WHERE {where} "
        f"ORDER BY slot DESC, reason, row LIMIT {rows}"
    )
    found = arrow(query(log.table).execute(sql))
    return [QuarantinedRow(**row) for batch in found for row in python_rows(batch)]
