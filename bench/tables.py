"""Figures as CSV and as Markdown tables."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from bench.measured import Measured
from bench.systems.catalog import SYSTEMS

_FIGURES = (
    "workload", "system", "setting", "live_bytes", "update_s_median", "update_s_max",
    "written_per_inserted", "files", "stored_per_live", "probe_ms_delta_rs", "probe_ms_spark",
    "scan_s", "expired_visible",
    # What the issue does not ask for, after what it does.
    "update_s_mean", "files_max", "probe_files", "probe_bytes", "probe_rows", "scan_s_delta_rs",
    "expired_visible_max", "load_s", "wrong", "run", "probe_ms_at_once",
    "digest", "update_max_of_median", "method",
)  # fmt: skip
_PER_UPDATE = (
    "slot", "seconds", "inserted_bytes", "written_bytes", "files", "stored_bytes",
    "expired_visible", "collecting_s",
)  # fmt: skip


def write_csv(file: Path, found: Sequence[Measured]) -> None:
    """One line for each workload and system."""
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_FIGURES)
        writer.writerows([_value(getattr(one, name)) for name in _FIGURES] for one in found)


def write_updates_csv(file: Path, found: Sequence[Measured]) -> None:
    """One line for each update of each of them."""
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["workload", "system", *_PER_UPDATE])
        for one in found:
            for update in one.updates:
                figures = [_value(getattr(update, name)) for name in _PER_UPDATE]
                writer.writerow([one.workload, one.system, *figures])


def _value(value: object) -> object:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) and value < 1e6 else value


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; the first column is text, the others are numbers."""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (header, ruler, *rows)]


def figure(value: float | None, digits: int = 2) -> str:
    """A number for people; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}"


_HEADER = (
    "system", "update s", "mean", "largest", "largest / median", "written", "files", "stored",
    "probe ms",
    "8 files at once", "files of a probe", "MB of a probe", "Spark probe ms", "scan s",
    "Spark scan s", "expired seen",
)  # fmt: skip


def figures_table(found: Sequence[Measured]) -> list[str]:
    """All figures of one workload, a row for each system."""
    return markdown(_HEADER, [_row(one) for one in found])


def _row(one: Measured) -> list[str]:
    read_mb = None if one.probe_bytes is None else one.probe_bytes / 1e6
    seen = figure(one.expired_visible, 0)
    most = one.expired_visible_max
    if most is not None and most != one.expired_visible:
        seen += f" (most {most:,})"
    return [
        f"`{one.system}`"
        + (" (limit: a floor, not a system)" if SYSTEMS[one.system].is_limit else "")
        + (" **wrong**" if one.wrong else ""),
        figure(one.update_s_median),
        figure(one.update_s_mean),
        figure(one.update_s_max),
        figure(one.update_max_of_median),
        figure(one.written_per_inserted),
        figure(one.files, 0),
        figure(one.stored_per_live),
        figure(one.probe_ms_delta_rs, 0),
        figure(one.probe_ms_at_once, 0),
        figure(one.probe_files, 1),
        figure(read_mb, 1),
        figure(one.probe_ms_spark, 0),
        figure(one.scan_s_delta_rs),
        figure(one.scan_s),
        seen,
    ]
