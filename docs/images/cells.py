"""Draws cells.svg: the three shipped indexes as `make run ONCE=1` leaves them, from their tables.

.venv/bin/python docs/images/cells.py [PROJECT]
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

from tidetable.config import find_index, load_index
from tidetable.core.cell import Cell
from tidetable.table.history import Updates
from tidetable.table.status import Status, status

FILE = Path(__file__).with_suffix(".svg")
ROOT = Path(__file__).resolve().parents[2]
INDEXES = ("flights_rebuild", "flights_no_rebuild", "flights_sweep")
SIDE, GAP, FILE_HEIGHT = 62, 6, 3
PAPER, INK, GREY = "#ffffff", "#1b2733", "#56636f"
EMPTY, FULL = (236, 242, 248), (31, 95, 160)


def shade(share: float) -> str:
    parts = (round(low + (high - low) * share) for low, high in zip(EMPTY, FULL, strict=True))
    return "#{:02x}{:02x}{:02x}".format(*parts)


def text(x: float, y: float, words: str, size: int, **style: str) -> str:
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x}" y="{y}" font-size="{size}"{more}>{escape(words)}</text>'


def cell(x: float, y: float, rows: int, files: int, most: int) -> list[str]:
    """A cell: darker the more rows it holds, with a stroke at its bottom for each file."""
    share = rows / most
    ink = "#ffffff" if share > 0.52 else INK
    drawn = [f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" rx="5" fill="{shade(share)}"/>']
    drawn.append(
        text(x + SIDE / 2, y + 28, str(rows), 19, text_anchor="middle", fill=ink, font_weight="600")
    )
    width = min(9.0, (SIDE - 12) / max(1, files) - 2)
    left = x + (SIDE - files * (width + 2) + 2) / 2
    drawn += [
        f'<rect x="{left + n * (width + 2):.1f}" y="{y + SIDE - 14}" width="{width:.1f}" '
        f'height="{FILE_HEIGHT}" fill="{ink}"/>'
        for n in range(files)
    ]
    return drawn


def written_per_inserted(found: Status) -> float | None:
    """Rows written per row inserted by the updates, the load at creation left out."""
    rows = [row for row in Updates(found.index).last(100) if row.kind == "update"]
    inserted = sum(row.inserted for row in rows)
    rewritten = sum(row.rewritten_rows for row in rows)
    return (inserted + rewritten) / inserted if inserted else None


def panel(x: float, y: float, found: Status) -> list[str]:
    cells = found.cells
    most = max(1, *(state.rows for state in cells.values()))
    held = f"{found.index.name}: {found.live} rows, {found.files} files"
    drawn = [
        text(x, y, found.scheme.removesuffix(" without deletion vectors"), 17, font_weight="600"),
        text(x, y + 20, held, 13, fill=GREY),
    ]
    ratio = written_per_inserted(found)
    if ratio is not None:
        told = f"{ratio:.2f} rows written per row inserted"
        drawn.append(text(x, y + 38, told, 13, fill=GREY))
    for (g, e), state in cells.items():
        at = Cell(g, e)
        left, top = x + at.e * (SIDE + GAP), y + 54 + at.g * (SIDE + GAP)
        drawn += cell(left, top, state.rows, state.files, most)
    return drawn


def picture(project: Path) -> str:
    found = [status(load_index(find_index(name, project), project)) for name in INDEXES]
    grid = 4 * (SIDE + GAP)
    body = [*panel(30, 44, found[0]), *panel(30 + grid + 42, 44, found[1])]
    body += panel(30, 44 + 54 + grid + 44, found[2])
    width, height = 60 + 2 * grid + 42, 44 + 54 + grid + 44 + 54 + SIDE + 44
    as_of = f"{found[0].as_of:%Y-%m-%d %H:%M} UTC"
    below = f"Flights in the air, {as_of}. Number: rows in a cell. Strokes below it: its files."
    body.append(text(30, height - 16, below, 13, fill=GREY))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, -apple-system, &quot;Segoe UI&quot;, '
        f'&quot;DejaVu Sans&quot;, sans-serif" fill="{INK}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(below)}</title>',
        f'<rect width="{width}" height="{height}" rx="10" fill="{PAPER}"/>',
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(picture(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT))
    print(f"wrote {FILE.name}")
