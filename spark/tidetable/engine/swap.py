"""Files for files: Spark writes Parquet into a plain table, and we commit it.

Spark's own Delta works out the state of a table before each commit, to see whether the fence is
used up and which files a predicate means: more than half of the time of a small update. Here both
are known: the files from the log that the plan was made from, and that nobody came first because
the commit is made on top of that very version or not at all (append.py).

Only for tables of the plainest kind on a file system: nothing that a writer has to obey beyond
version 2 of the protocol (deletion vectors, constraints, change feed, ...), and renaming a file
costs nothing. For all others Spark's Delta writes the files (workbench.py).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidetable.core.columns import CELL_E, CELL_G
from tidetable.engine.jvm import LOCAL_FILES, PLAIN_LOCAL_FILES
from tidetable.engine.session import SETTINGS
from tidetable.table.log import DataFile, Log
from tidetable.table.place import INCOMING
from tidetable.table.statistics import file_statistics, statistics_columns
from tidetable.table.storage import is_on_file_system, move_file, reader_uri

_PLAIN_WRITER = 2
_CELL_FOLDER = re.compile(rf"^{CELL_G}=(-?\d+)/{CELL_E}=(-?\d+)/[^/]+$")
_IN_GLOBS = frozenset("*?[]{}\\")


def is_plain(log: Log) -> bool:
    """Whether the table's files can be read and replaced as files."""
    root = reader_uri(log.path)
    return (
        is_on_file_system(root)
        and not any(character in _IN_GLOBS for character in root)
        and log.table.protocol().min_writer_version <= _PLAIN_WRITER
        and statistics_columns(log) is not None
    )


def schema_of(log: Log) -> StructType:
    """The table's columns as Spark has them."""
    return StructType.fromJson(json.loads(log.table.schema().to_json()))


def fits(frame: DataFrame, log: Log) -> bool:
    """Whether the rows have exactly the table's columns, in whatever order."""
    found, wanted = (
        {field.name: field.dataType for field in schema}
        for schema in (frame.schema, schema_of(log))
    )
    return found == wanted


def rows_of(spark: SparkSession, log: Log, files: Sequence[DataFile]) -> DataFrame:
    """The rows of these files, with their cells."""
    root = reader_uri(log.path)
    reader = spark.read.schema(schema_of(log)).option("basePath", root)
    return reader.parquet(*[f"{root}/{file.path}" for file in files])


def are_in_cells(files: Iterable[DataFile]) -> bool:
    """Whether the files lie where their cell says, as all do that Spark or we have written."""
    return all(_CELL_FOLDER.match(file.path) for file in files)


def written(log: Log, frame: DataFrame, run: str) -> list[dict[str, Any]]:
    """Writes the rows into files of their cells, which are no part of the table yet.

    Add actions for them; whoever does not commit these has to delete the files.
    """
    root = Path(reader_uri(log.path))
    incoming = root / INCOMING / run
    # For this write alone: it knows no symbolic links, which a source may well have.
    file_system = frame.sparkSession.conf.get(LOCAL_FILES, PLAIN_LOCAL_FILES)
    try:
        (
            frame.write.partitionBy(CELL_G, CELL_E)
            .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            .option("parquet.page.size", SETTINGS["spark.hadoop.parquet.page.size"])
            .option("fs.file.impl", file_system)
            .option("fs.file.impl.disable.cache", "true")
            .parquet(str(incoming))
        )
        found = sorted(incoming.glob(f"{CELL_G}=*/{CELL_E}=*/*.parquet"))
        return [_placed(log, file, root, file.relative_to(incoming).as_posix()) for file in found]
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _placed(log: Log, file: Path, root: Path, path: str) -> dict[str, Any]:
    """Moves a file to its place in the table."""
    cell = _CELL_FOLDER.match(path)
    assert cell is not None
    statistics = file_statistics(log, file)
    size, written_at = file.stat().st_size, file.stat().st_mtime_ns // 1_000_000
    move_file(log.path, file.relative_to(root).as_posix(), path)
    return {
        "add": {
            "path": path,
            "partitionValues": {CELL_G: cell[1], CELL_E: cell[2]},
            "size": size,
            "modificationTime": written_at,
            "dataChange": True,
            "stats": statistics,
        }
    }
