"""Files for files: Spark writes Parquet, delta-rs commits it.

Spark's own Delta works out the state of the whole table before each commit, to see whether the
fence is used up and which files a predicate means: more than half of the time of a small update.
Here both are known: the files from the log that the plan was made from, and that nobody came first
because the commit is made on top of that very version or not at all.

Only for tables of the plainest kind on a file system: nothing that a writer has to obey beyond
version 2 of the protocol (deletion vectors, constraints, change feed, ...), and renaming a file
costs nothing. All others are written by Spark's Delta (see commit.py).
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from deltalake import CommitProperties, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidetable.delta.columns import CELL_E, CELL_G
from tidetable.delta.jvm import LOCAL_FILES, PLAIN_LOCAL_FILES
from tidetable.delta.log import DataFile, Log, open_log, reader_uri
from tidetable.delta.note import Note
from tidetable.delta.place import INCOMING
from tidetable.delta.session import SETTINGS
from tidetable.delta.statistics import file_statistics, statistics_columns
from tidetable.delta.steps import Step, reached

_PLAIN_WRITER = 2
_CELL_FOLDER = re.compile(rf"^{CELL_G}=(-?\d+)/{CELL_E}=(-?\d+)/[^/]+$")
_IN_GLOBS = frozenset("*?[]{}\\")


class OtherRows(Exception):
    """What was written is not what the note counts."""


class NotTheNewest(Exception):
    """The table has moved on since the version that the commit was to follow."""


def is_on_file_system(path: str) -> bool:
    return "://" not in reader_uri(path)


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


def swap(
    log: Log, frame: DataFrame | None, removed: Iterable[DataFile], note: Note, fence: str
) -> None:
    """The rows in, the files out, in one commit.

    Raises NotTheNewest if it is not the next after `log`, and OtherRows, with the table as it was,
    if the table would not hold as many rows as the note says.
    """
    if log.table.transaction_version(fence) is not None:
        raise NotTheNewest(f"{fence} is used up")
    leaving = list(removed)
    added = [] if frame is None else _written(log, frame, note.run)
    reached(Step.FILES_WRITTEN)
    try:
        _check_rows(log, added, leaving, note)
        _commit(log, added, leaving, note, fence)
    except (OtherRows, NotTheNewest):
        for one in added:
            (Path(reader_uri(log.path)) / one.path).unlink(missing_ok=True)
        raise


def _check_rows(log: Log, added: list[AddAction], leaving: Iterable[DataFile], note: Note) -> None:
    written = sum(json.loads(one.stats)["numRecords"] for one in added)
    rows = log.rows + written - sum(file.rows for file in leaving)
    if rows != note.live:
        raise OtherRows(f"{rows} rows, where {note.live} were counted")


def _commit(
    log: Log, added: list[AddAction], leaving: Iterable[DataFile], note: Note, fence: str
) -> None:
    now = int(time.time() * 1000)
    gone = [
        RemoveAction(file.path, True, now, file.bytes, _partition(file.cell.g, file.cell.e))
        for file in leaving
    ]
    try:
        log.table.create_write_transaction(
            [*added, *gone],
            "append",
            log.table.schema(),
            [CELL_G, CELL_E],
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": note.dumps()},
                # Not on top of anything else: whoever was quicker makes this one start over.
                max_commit_retries=0,
                app_transactions=[Transaction(fence, 1, now)],
            ),
        )
    except CommitFailedError as error:
        latest = open_log(log.path)
        if latest is not None and any(found.run == note.run for _, found in latest.notes()):
            return  # it is in the log; what failed came after that
        raise NotTheNewest(str(error)) from error


def _written(log: Log, frame: DataFrame, run: str) -> list[AddAction]:
    """Writes the rows into files of their cells, which are no part of the table yet."""
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


def _placed(log: Log, file: Path, root: Path, path: str) -> AddAction:
    """Moves a file to its place in the table; Spark's names are unique."""
    cell = _CELL_FOLDER.match(path)
    assert cell is not None
    statistics = file_statistics(log, file)
    size, written = file.stat().st_size, file.stat().st_mtime_ns // 1_000_000
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        file.rename(target)
    except FileNotFoundError:  # VACUUM removes folders that it finds empty
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
    return AddAction(path, size, _partition(int(cell[1]), int(cell[2])), written, True, statistics)


def _partition(g: int, e: int) -> dict[str, str | None]:
    return {CELL_G: str(g), CELL_E: str(e)}
