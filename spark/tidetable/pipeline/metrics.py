"""An update's figures as Airflow metrics: whatever Airflow sends its own to gets these too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk.observability import stats

GAUGES = (
    "slot", "live", "inserted", "expired", "dead_on_arrival", "quarantined", "late", "missing",
    "rewritten_rows", "written_bytes", "files", "bytes", "cells", "imbalance", "seconds",
)  # fmt: skip


def emit(name: str, figures: Mapping[str, Any]) -> None:
    """Gauges tidetable.NAME.FIGURE (statsd), or tidetable.FIGURE with the tag index (tags)."""
    for figure in GAUGES:
        value = figures.get(figure)
        if value is not None:
            stats.gauge(f"tidetable.{name}.{figure}", float(value))
            stats.gauge(f"tidetable.{figure}", float(value), tags={"index": name})
