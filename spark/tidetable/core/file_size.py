"""How large the files of a table should be: they grow with it, so that their number stays small.

Every look at a table costs its reader by the number of its files, and so does every checkpoint.
"""

from __future__ import annotations

FILES_WANTED = 25_000
"""A larger table gets larger files rather than more of them."""

FILE_BYTES_MAX = 2 * 1024**3
"""Not by growing: a task holds the rows of one file in memory. 100 TB are below 50 000 files."""

_STEP = 64 * 1024**2


def target_file_bytes(least: int, table_bytes: float) -> int:
    """The size past which a cell of a table of so many bytes is split; `least` is the YAML's.

    It goes by steps, so that the files of one table are alike. Files that no update touches keep
    theirs.
    """
    grown = round(table_bytes / FILES_WANTED / _STEP) * _STEP
    return max(least, min(grown, FILE_BYTES_MAX))
