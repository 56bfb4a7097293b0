"""What the page shows of an index's quarantine."""

from __future__ import annotations

from typing import Any

from tidetable.config import Index, format_time
from tidetable.table.quarantined import newest_quarantined

ROWS_MAX = 50
TEXT_MAX = 2_000
"""Characters of a row that are shown: an answer has at most this times ROWS_MAX of them."""


def quarantine(index: Index) -> dict[str, Any]:
    """The newest quarantined rows, as JSON."""
    found = newest_quarantined(index, ROWS_MAX + 1, TEXT_MAX)
    return {
        "rows": [
            {
                "slot": one.slot,
                "as_of": format_time(index.timeline.end_of(one.slot)),
                "reason": one.reason,
                "arrived_at": None if one.arrived_at is None else format_time(one.arrived_at),
                "row": one.row
                if one.characters <= TEXT_MAX
                else f"{one.row}… ({one.characters:,} characters)",
            }
            for one in found[:ROWS_MAX]
        ],
        "more": len(found) > ROWS_MAX,
    }
