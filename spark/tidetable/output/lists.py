"""Lists that people look through: the indexes of a project, past updates, bad rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from tidetable.config import format_time
from tidetable.output.show import (
    Column,
    fitted_table,
    human_bytes,
    number_of,
    short_time,
)
from tidetable.output.values import json_line, plain
from tidetable.table.bad_rows import BadRow, BadRows
from tidetable.table.history_row import UpdateRow

WORDS_MAX = 40
"""Characters of a sentence, or of a value, that a line of a list has room for."""

_STANDING = ("file", "scheme", "slot", "as_of", "live", "due", "lag", "health", "sentence")


def shortened(text: str, most: int = WORDS_MAX) -> str:
    """As many whole words as there is room for."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    cut = text[:most]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut) + " …"


# -- indexes ---------------------------------------------------------------------------------------


def standing_data(standing: Mapping[str, Any]) -> dict[str, Any]:
    """Where one index stands, for programs."""
    return {"index": standing["name"], **{name: standing[name] for name in _STANDING}}


def standings(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """A line for each index."""
    return fitted_table(
        [
            Column("index", [one["name"] for one in found], "left"),
            Column("scheme", [one["scheme"] or "-" for one in found], "left", rank=1),
            Column("slot", [_number(one["slot"]) for one in found]),
            Column("as of", [short_time(one["as_of"] or "-") for one in found], "left", rank=2),
            Column("lag", [_number(one["lag"]) for one in found]),
            Column("live", [_number(one["live"]) for one in found]),
            Column("health", [one["health_word"] for one in found], "left"),
            Column("", [_why(one) for one in found], "left", rank=3),
        ]
    )


def _why(standing: Mapping[str, Any]) -> str:
    """What is wrong, in the first words of its sentence."""
    says_all = standing["health"] in ("ok", "empty")
    return "" if says_all else shortened(standing["sentence"])


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


# -- updates ---------------------------------------------------------------------------------------


def history(rows: Sequence[UpdateRow]) -> RenderableType:
    """A line for each commit, oldest first."""
    if not rows:
        return Text("No commit is in the table of updates.")

    def numbers(name: str, rank: int = 0, *, of: str = "") -> Column:
        return Column(name, [f"{getattr(row, of or name):,}" for row in rows], rank=rank)

    times = [short_time(format_time(row.as_of)) for row in rows]
    committed = [short_time(format_time(row.committed_at.replace(microsecond=0))) for row in rows]
    seconds = ["-" if row.seconds is None else f"{row.seconds:.1f}" for row in rows]
    return fitted_table(
        [
            numbers("slot"),
            Column("as of", times, "left", rank=6),
            Column("kind", [row.kind for row in rows], "left"),
            Column("committed", committed, "left", rank=1),
            numbers("read", 4),
            numbers("inserted"),
            numbers("expired"),
            numbers("bad", of="quarantined"),
            numbers("live"),
            numbers("rewritten", 5, of="rewritten_rows"),
            Column("written", [human_bytes(row.written_bytes) for row in rows]),
            numbers("cells", 2),
            Column("s", seconds, rank=3),
        ]
    )


# -- bad rows --------------------------------------------------------------------------------------


def quarantine(found: BadRows) -> RenderableType:
    """A line for each bad row, and how many there are."""
    rows = found.rows
    if not rows:
        return Text("No such row is in quarantine.")
    arrived = [short_time(plain(row.arrived_at)) or "-" for row in rows]
    table = fitted_table(
        [
            Column("slot", [str(row.slot) for row in rows]),
            Column("arrived", arrived, "left", rank=1),
            Column("reason", [row.reason for row in rows], "left"),
            Column("column", [row.column or "-" for row in rows], "left"),
            Column("value", [shortened(_value(row)) for row in rows], "left"),
        ]
    )
    bad = number_of(found.total, "bad row")
    shown = bad if len(rows) == found.total else f"the newest {len(rows)} of {bad}"
    return Group(table, Text(f"{shown}; --json shows them whole"))


def _value(row: BadRow) -> str:
    """What is in the bad column; nothing is told from a text that is empty."""
    value = row.value
    return value if isinstance(value, str) and value.strip() else json_line(value)
