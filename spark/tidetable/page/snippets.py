"""How to read an index's table elsewhere: a few lines to copy for each reader."""

from __future__ import annotations

from tidetable.config import Index
from tidetable.table.storage import reader_uri


def snippets(index: Index) -> list[dict[str, str]]:
    """`reader` and `code`, with the table's path quoted as the reader's language wants it."""
    path = reader_uri(index.table)
    in_sql = path.replace("'", "''")
    return [
        {"reader": "Polars", "code": f"import polars as pl\npl.scan_delta({path!r}).collect()"},
        {"reader": "DuckDB", "code": f"SELECT * FROM delta_scan('{in_sql}');"},
        {"reader": "Spark", "code": f'spark.read.format("delta").load({index.table!r})'},
    ]
