"""Results that are published, read back: a run on another machine can go on from them."""

from __future__ import annotations

import csv
from dataclasses import fields
from pathlib import Path
from typing import Any

from bench.measured import Measured, UpdateFigures

_TEXT = frozenset({"workload", "system", "setting", "digest", "run", "wrong"})
_WHOLE = frozenset(
    {"slot", "live_bytes", "inserted_bytes", "written_bytes", "files", "stored_bytes",
     "expired_visible", "method"}
)  # fmt: skip


def published(folder: Path, label: str) -> list[Measured]:
    """What the CSV files of a size say; nothing if there are none or they do not name the rows."""
    lines, by_update = (_lines(folder / f"{label}{part}.csv") for part in ("", "-updates"))
    updates: dict[tuple[str, str], list[UpdateFigures]] = {}
    for line in by_update:
        known = _figures(UpdateFigures, line)
        updates.setdefault((line["workload"], line["system"]), []).append(UpdateFigures(**known))
    return [
        Measured(
            **_figures(Measured, line), updates=updates.get((line["workload"], line["system"]), [])
        )
        for line in lines
        if line.get("digest")
    ]


def _lines(file: Path) -> list[dict[str, str]]:
    if not file.is_file():
        return []
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _figures(of: type[Measured | UpdateFigures], line: dict[str, str]) -> dict[str, Any]:
    names = [one.name for one in fields(of) if one.name != "updates"]
    return {name: _value(name, line.get(name, "")) for name in names}


def _value(name: str, text: str) -> Any:
    if text == "":
        return None
    if name in _TEXT:
        return text
    return int(text) if name in _WHOLE else float(text)
