"""Where the tables beside an index's own are, and what is on its way into it."""

from __future__ import annotations

from pathlib import Path

from tidetable.config import Index
from tidetable.config.location import QUARANTINE, UPDATES
from tidetable.table.storage import reader_uri

PROPERTY_INDEX = "tidetable.index"
"""The index that a table belongs to."""

PROPERTY_KIND = "tidetable.kind"
"""Of a table beside an index's own: which one it is."""

PROPERTY_LAYOUT = "tidetable.layout"
"""By what an index's rows are laid out, as JSON: its key, its scheme and so on."""

LOG_FOLDER = "_delta_log"

INCOMING = "_incoming"
"""A folder of the table for files that are being written and no part of it yet; readers pass over
folders that begin with _."""


def quarantine_path(index: Index) -> str:
    """The table of the rows that were not taken."""
    return index.table.rstrip("/") + QUARANTINE


def updates_path(index: Index) -> str:
    """The table with a row for each update."""
    return index.table.rstrip("/") + UPDATES


def local_folder(path: str) -> Path | None:
    """A table's folder if it is on a file system; None on an object store."""
    plain = reader_uri(path)
    return None if "://" in plain else Path(plain)
