"""The rows in quarantine, as people ask for them. No JVM."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidetable.config import Index, format_time
from tidetable.table.beside import Kind, open_beside
from tidetable.table.log import arrow
from tidetable.table.read import query
from tidetable.table.read import rows as python_rows
from tidetable.table.reasons import blamed_column


@dataclass(frozen=True)
class BadRow:
    """One row of the quarantine."""

    slot: int
    reason: str
    arrived_at: datetime | None
    column: str | None
    """The one that is bad; None if it is the whole row."""

    row: dict[str, Any] | str
    """As it came; a text if it was no record, or if only its digest was kept."""

    @property
    def value(self) -> Any:
        """What is in that column; the row itself if there is none."""
        if isinstance(self.row, dict) and self.column is not None:
            return self.row.get(self.column)
        return self.row

    def as_json(self) -> dict[str, Any]:
        return {
            "slot": self.slot,
            "reason": self.reason,
            "arrived_at": None if self.arrived_at is None else format_time(self.arrived_at),
            "column": self.column,
            "value": self.value,
            "row": self.row,
        }


@dataclass(frozen=True)
class BadRows:
    """The newest bad rows that were asked for, oldest first."""

    rows: list[BadRow]
    total: int
    """How many there are, shown or not."""


def bad_rows(
    index: Index, last: int, *, slot: int | None = None, reason: str | None = None
) -> BadRows:
    """The last so many rows in quarantine, of one slot, or whose reason has this text in it."""
    log = open_beside(index, Kind.QUARANTINE)
    if log is None:
        return BadRows([], 0)
    tests = [] if slot is None else [f"slot = {int(slot)}"]
    if reason is not None:
        text = reason.lower().replace("'", "''")
        tests.append(f"strpos(lower(reason), '{text}') > 0")
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    ask = query(log.table)
    counted = arrow(ask.execute(f"SELECT count(*) AS n FROM t{where}")).read_all()
    newest = f"ORDER BY slot DESC, arrived_at DESC, reason LIMIT {int(last)}"
    chosen = arrow(ask.execute(f"SELECT slot, reason, arrived_at, row FROM t{where} {newest}"))
    rows = [_parsed(index, row) for batch in chosen for row in python_rows(batch)]
    return BadRows(rows[::-1], int(counted.column("n")[0].as_py()))


def _parsed(index: Index, stored: dict[str, Any]) -> BadRow:
    column = blamed_column(index, stored["reason"])
    row = _record(stored["row"] or "")
    return BadRow(stored["slot"], stored["reason"], stored["arrived_at"], column, row)


def _record(text: str) -> dict[str, Any] | str:
    """The object that the text is, if it is one."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text
