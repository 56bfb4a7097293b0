"""What people see in a terminal: tables, the picture of the cells, sizes in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidetable.core.cell import LOG, Cell, CellState
from tidetable.core.config import format_time
from tidetable.core.simulate import Simulation
from tidetable.delta.report import UpdateReport
from tidetable.delta.status import Outlook, Status

_SHADES = " ░▒▓█"
_BLUES = ("grey35", "#1f4e79", "#2e75b6", "#5b9bd5", "#9dc3e6")
FORECAST_SLOTS = 12


def human_bytes(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"


def update_table(reports: Sequence[UpdateReport]) -> Table:
    table = Table(title=None, header_style="bold", pad_edge=False, box=None)
    table.add_column("slot", justify="right")
    table.add_column("as of")
    for name in (
        "inserted",
        "expired",
        "dead",
        "bad",
        "live",
        "rewritten",
        "written",
        "cells",
        "s",
    ):
        table.add_column(name, justify="right")
    for report in reports:
        table.add_row(
            str(report.slot), report.as_of, f"{report.inserted:,}", f"{report.expired:,}",
            f"{report.dead_on_arrival:,}", f"{report.quarantined:,}", f"{report.live:,}",
            f"{report.rewritten_rows:,}", human_bytes(report.written_bytes), str(report.cells),
            f"{report.seconds:.1f}",
        )  # fmt: skip
    return table


def status_table(found: Iterable[Status]) -> Table:
    table = Table(header_style="bold", pad_edge=False, box=None)
    for name, justify in (
        ("index", "left"), ("scheme", "left"), ("slot", "right"), ("as of", "left"),
        ("live rows", "right"), ("cells", "right"), ("files", "right"), ("size", "right"),
        ("imbalance", "right"),
    ):  # fmt: skip
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for one in found:
        uneven = one.imbalance
        table.add_row(
            one.index.name, one.scheme, str(one.slot), format_time(one.as_of), f"{one.live:,}",
            str(len(one.cells)), str(one.files), human_bytes(one.bytes),
            "-" if uneven is None else f"{uneven:.2f}",
        )  # fmt: skip
    return table


def cells_picture(cells: Mapping[Cell, CellState]) -> RenderableType:
    """The cells as a heat map: a shade and a number each, rows g, columns e."""
    grid = {cell: state for cell, state in cells.items() if cell != LOG}
    most = max((state.rows for state in cells.values()), default=0)
    gs = sorted({cell.g for cell in grid})
    es = sorted({cell.e for cell in grid})
    width = max(5, len(f"{most:,}") + 2)
    lines = []
    head = Text("      " + "".join(f"e{e}".rjust(width + 1) for e in es), style="dim")
    lines.append(head)
    for g in gs:
        line = Text(f"  g{g} ".ljust(6), style="dim")
        for e in es:
            line.append(" ")
            line.append_text(_block(cells.get(Cell(g, e), CellState()).rows, most, width))
        lines.append(line)
    if LOG in cells:
        state = cells[LOG]
        line = Text("  log  ", style="dim")
        line.append_text(_block(state.rows, most, width))
        line.append(f"  in {state.files} files", style="dim")
        lines.append(line)
    return Group(*lines)


def _block(rows: int, most: int, width: int) -> Text:
    level = 0 if not rows or not most else 1 + min(3, int(4 * rows / most - 1e-9))
    number = f"{rows:,}" if rows else "."
    return Text(_SHADES[level] + number.rjust(width - 1), style=f"bold {_BLUES[level]}")


def forecast(expected: Mapping[int, int], slot: int) -> RenderableType:
    """How many rows expire in each of the coming slots."""
    table = Table(header_style="bold", pad_edge=False, box=None)
    table.add_column("expires in slot", justify="right")
    table.add_column("rows", justify="right")
    table.add_column("")
    most = max(expected.values(), default=0)
    for coming in range(slot + 1, slot + 1 + FORECAST_SLOTS):
        rows = expected.get(coming, 0)
        table.add_row(str(coming), f"{rows:,}", "█" * round(30 * rows / most) if most else "")
    rest = sum(rows for coming, rows in expected.items() if coming > slot + FORECAST_SLOTS)
    if rest:
        table.add_row("later", f"{rest:,}", "")
    return table


def outlook_table(outlook: Outlook) -> Table:
    table = Table(header_style="bold", pad_edge=False, box=None)
    for name, justify in (
        ("cell", "left"), ("action", "left"), ("why", "left"), ("rows", "right"),
        ("files", "right"), ("size", "right"),
    ):  # fmt: skip
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for cell, touch in sorted(outlook.plan.touched.items()):
        state = outlook.cells.get(cell, CellState())
        table.add_row(
            str(cell), str(touch.action), touch.why, f"{state.rows:,}", str(state.files),
            human_bytes(state.bytes),
        )  # fmt: skip
    return table


def rows_table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Table:
    table = Table(header_style="bold", pad_edge=False, box=None)
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*[Text(plain(row.get(name))) for name in columns])
    return table


def simulation_table(label: str, found: Simulation) -> Table:
    table = Table(title=label, title_justify="left", header_style="bold", pad_edge=False, box=None)
    for name in ("written avg", "written max", "files avg", "files max", "dead"):
        table.add_column(name, justify="right")
    table.add_row(
        f"{found.written_avg:.2f}", f"{found.written_max:.2f}", f"{found.files_avg:.1f}",
        str(found.files_max), f"{found.dead_avg:.2f}",
    )  # fmt: skip
    return table


def plain(value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return _iso(value)
    return value if isinstance(value, str) else str(value)


def json_line(data: Any) -> str:
    """One JSON object on one line, whatever types the user's columns have."""
    return json.dumps(data, default=_json_value, ensure_ascii=False)


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return str(value)


def _iso(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
