"""Figures of pairs that nobody measured."""

from __future__ import annotations

from typing import Any

from bench.measured import METHOD, Measured, UpdateFigures
from bench.sizes import chosen
from bench.systems.catalog import SYSTEMS


def measured(
    system: str = "sweep", seconds: tuple[float, ...] = (1.0, 3.0), **more: Any
) -> Measured:
    """A pair of size small on its first workload: each update inserts 10 bytes and writes 25."""
    workload = chosen("small").workload("uniform_36")
    updates = [
        UpdateFigures(
            slot,
            value,
            inserted_bytes=10,
            written_bytes=25,
            files=9,
            stored_bytes=105,
            collecting_s=0.25,
        )
        for slot, value in enumerate(seconds, start=1)
    ]
    values: dict[str, Any] = {
        "workload": workload.name,
        "system": system,
        "setting": SYSTEMS[system].setting,
        "digest": workload.digest,
        "run": "2024-01-01 00:00",
        "live_bytes": 100,
        "load_s": 1.0,
        "updates": updates,
        "probe_ms_delta_rs": 50.0,
        "expired_visible": 0,
        "method": METHOD,
        **more,
    }
    return Measured(**values)
