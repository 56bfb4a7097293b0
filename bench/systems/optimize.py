"""How often OPTIMIZE is called, and how large the files are that it makes."""

from __future__ import annotations

OPTIMIZE_EVERY = 5
"""Not a divisor of the twelve updates: reads are measured two updates after an OPTIMIZE, neither
at its best nor at its worst."""

OPTIMIZED_FILE_MB = 16
"""What OPTIMIZE aims at. With Delta's 1 GB a table of this size would be one file, and since rows
are not sorted inside a file it would not be clustered at all: this is in favour of the peers."""

DELTAS_FILE_BYTES = 1024**3
"""What it aims at if nobody tells it otherwise."""

FILE_SIZES = tuple(f"spark.databricks.delta.optimize.{bound}FileSize" for bound in ("min", "max"))
"""Settings for the files that it takes and makes."""
