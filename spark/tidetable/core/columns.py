"""The names of the columns that Tidetable adds to the user's own."""

from __future__ import annotations

INSERTION_SLOT = "_insertion_slot"
EXPIRATION_SLOT = "_expiration_slot"
EXPIRES_AT = "_expires_at"
"""Only where the YAML gives a `lifetime` instead of an `expires_at` column."""

CELL_G = "_g"
CELL_E = "_e"

REASON = "_reason"
RAW = "_raw"
"""Only while a batch is staged: why a row is bad, and what it looked like as it came (JSON)."""

ADDED = (INSERTION_SLOT, EXPIRATION_SLOT, CELL_G, CELL_E)
RESERVED = (CELL_G, CELL_E, INSERTION_SLOT, EXPIRATION_SLOT, EXPIRES_AT, REASON, RAW)
"""No column of a source may be called so."""
