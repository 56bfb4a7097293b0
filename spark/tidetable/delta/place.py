"""Where the tables beside an index's own are."""

from __future__ import annotations

from tidetable.core.config import Index


def quarantine_path(index: Index) -> str:
    """The table of the rows that were not taken."""
    return index.table.rstrip("/") + "_quarantine"


def updates_path(index: Index) -> str:
    """The table with a row for each update."""
    return index.table.rstrip("/") + "_updates"
