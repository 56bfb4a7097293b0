"""Tables of the plainest kind, whose files can be read and replaced as files (parts.py).

Spark's own Delta works out the state of a table before each commit, to see whether the fence is
used up and which files a predicate means: more than half of the time of a small update. Here both
are known: the files from the log that the plan was made from, and that nobody came first because
the commit is made on top of that very version or not at all (append.py).

Plain is a table on a file system with nothing that a writer has to obey beyond version 2 of the
protocol (deletion vectors, constraints, change feed, ...), where renaming a file costs nothing.
For all others Spark's Delta writes the files (workbench.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidetable.core.columns import CELL_E, CELL_G
from tidetable.table.files import DataFile
from tidetable.table.log import Log
from tidetable.table.statistics import statistics_columns
from tidetable.table.storage import is_on_file_system, reader_uri

_PLAIN_WRITER = 2
_CELL_FOLDER = re.compile(rf"^{CELL_G}=(-?\d+)/{CELL_E}=(-?\d+)/[^/]+$")
_IN_GLOBS = frozenset("*?[]{}\\")


def is_plain(log: Log) -> bool:
    """Whether the table's files can be read and replaced as files."""
    root = reader_uri(log.path)
    return (
        is_on_file_system(root)
        and not any(character in _IN_GLOBS for character in root)
        and log.protocol.min_writer_version <= _PLAIN_WRITER
        and statistics_columns(log) is not None
    )


def schema_of(log: Log) -> StructType:
    """The table's columns as Spark has them."""
    return StructType.fromJson(json.loads(log.schema.to_json()))


def rows_of(spark: SparkSession, log: Log, files: Iterable[DataFile]) -> DataFrame:
    """The rows of these files, with their cells."""
    root = reader_uri(log.path)
    reader = spark.read.schema(schema_of(log)).option("basePath", root)
    return reader.parquet(*[f"{root}/{file.path}" for file in files])


def are_in_cells(files: Iterable[DataFile]) -> bool:
    """Whether the files lie where their cell says, as all do that Spark or we have written."""
    for file in files:
        folder = _CELL_FOLDER.match(file.path)
        if folder is None or (int(folder[1]), int(folder[2])) != (file.cell.g, file.cell.e):
            return False
    return True
