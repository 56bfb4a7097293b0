"""Files for files in one job: Spark judges and distributes the new rows, its tasks write in Arrow.

The stored rows of a touched cell never pass through Spark: the task that writes a part of the cell
reads them itself (table/parts.py). Only new rows are shuffled, to the task of their cell and key
range. What the tasks tell makes the add actions and counts the batch, so nothing is looked at
twice: not the batch to count it, nor footers.

For tables of the plainest kind on a file system (see swap.py), and plans by which each row stays in
its cell. For all others Spark or its Delta writes.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.core.columns import CELL_E, CELL_G, REASON
from tidetable.core.errors import Replay
from tidetable.core.file_size import target_file_bytes
from tidetable.core.plan import Action, Plan
from tidetable.engine import swap
from tidetable.engine.arrange import Arrangement, by_range, task_column
from tidetable.engine.planned import read_again
from tidetable.engine.session import cores
from tidetable.engine.source import reading
from tidetable.engine.sql import quoted
from tidetable.engine.staging import BatchCounts, expiry_column
from tidetable.table import bounds, parts
from tidetable.table.damage import DamagedTable
from tidetable.table.files import Files
from tidetable.table.log import Log
from tidetable.table.parts import Part, Recipe, write_parts
from tidetable.table.place import INCOMING
from tidetable.table.statistics import kinds_of, statistics_columns
from tidetable.table.storage import move_file, reader_uri

_LOGGER = logging.getLogger(__name__)

TOLD = "told"
ROW = "row"
_CODEC = "spark.sql.parquet.compression.codec"
_CODECS = {"uncompressed": "none", "none": "none", "lz4_raw": "lz4", "lz4": "lz4"}
_AS_NAMED = frozenset({"snappy", "gzip", "zstd", "brotli"})
_PLAIN = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string,
    pa.types.is_binary, pa.types.is_decimal, pa.types.is_date32, pa.types.is_timestamp,
)  # fmt: skip


@dataclass
class Written:
    """Files that tasks have written, which are no part of the table yet."""

    root: Path
    incoming: str
    files: list[dict[str, Any]] = field(default_factory=list)
    counts: BatchCounts = field(default_factory=BatchCounts)
    """What came, as a count of the batch says it."""

    def only(self, cells: Iterable[Cell]) -> None:
        """Leaves out the files of other cells."""
        kept = set(cells)
        self.files = [file for file in self.files if Cell(file["g"], file["e"]) in kept]

    def placed(self) -> list[dict[str, Any]]:
        """Moves the files to where they belong; the add actions for them.

        Whoever does not commit these has to delete the files.
        """
        return [self._placed(file) for file in self.files]

    def _placed(self, file: Mapping[str, Any]) -> dict[str, Any]:
        path = file["path"].removeprefix(f"{self.incoming}/")
        move_file(str(self.root), file["path"], path)
        return {
            "add": {
                "path": path,
                "partitionValues": {CELL_G: str(file["g"]), CELL_E: str(file["e"])},
                "size": file["bytes"],
                "modificationTime": file["changed_ms"],
                "dataChange": True,
                "stats": file["stats"],
            }
        }

    def remove(self) -> None:
        """Deletes what was not moved."""
        shutil.rmtree(self.root / self.incoming, ignore_errors=True)


def can_write(spark: SparkSession, log: Log, plan: Plan) -> bool:
    """Whether tasks can carry out the plan on this version."""
    in_place = plan.cells(Action.EXPIRE, Action.APPEND_AND_EXPIRE, Action.MOVE)
    return not plan.moves and next(in_place, None) is None and can_load(spark, log)


def can_load(spark: SparkSession, log: Log) -> bool:
    """Whether tasks can write files of the table."""
    return (
        swap.is_plain(log)
        and all(is_plain_type(column.type) for column in data_schema(log))
        and workers_have_arrow(spark)
    )


@lru_cache(maxsize=4)
def workers_have_arrow(spark: SparkSession) -> bool:
    """Whether Python of the executors can do what is asked of it.

    On this machine it is the same as here. Elsewhere it gets our code with the task, as it may not
    be installed there; if it is another Python, or one without pyarrow, Spark writes by itself.
    """
    if str(spark.conf.get("spark.master", "")).startswith("local"):
        return True
    for module in (parts, bounds, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)
    here = (sys.version_info[:2], int(pa.__version__.split(".")[0]))
    try:
        (line,) = spark.range(0, 1, 1, 1).mapInArrow(partial(_same, here), "same boolean").collect()
    except Exception as error:
        _LOGGER.warning("Spark's workers cannot write files in Python, so Spark does: %s", error)
        return False
    return bool(line["same"])


def _same(here: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    there = (sys.version_info[:2], int(pa.__version__.split(".")[0]))
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"same": [here == there] * batch.num_rows})


def data_schema(log: Log) -> pa.Schema:
    """The columns of a data file of the table, all of them nullable, as Spark writes them."""
    told = pa.schema(log.schema.to_arrow())
    columns = (column for column in told if column.name not in (CELL_G, CELL_E))
    return pa.schema([pa.field(column.name, column.type) for column in columns])


def is_plain_type(kind: pa.DataType) -> bool:
    """Whether Spark hands values of the type over in Arrow as the table has them."""
    if pa.types.is_map(kind):
        return is_plain_type(kind.key_type) and is_plain_type(kind.item_type)
    if pa.types.is_struct(kind):
        return all(is_plain_type(child.type) for child in kind)
    if pa.types.is_list(kind):
        return is_plain_type(kind.value_type)
    return any(is_one(kind) for is_one in _PLAIN)


@contextmanager
def written(
    spark: SparkSession,
    index: Index,
    log: Log,
    plan: Plan,
    rows: DataFrame | None,
    arrangement: Arrangement,
    run: str,
) -> Iterator[Written]:
    """The files of the plan's cells, with the new rows and the stored ones that stay.

    `rows` are staged and have their cells; None if there are none. What has not been placed at the
    end is deleted.
    """
    by_task = tuple(map(tuple, _parts(log, plan, arrangement)))
    recipe = _recipe(spark, index, log, plan.last, run, by_task, log.files.bytes)
    if rows is not None:
        if arrangement.tasks == 1:
            rows = rows.coalesce(1)
        else:
            task = task_column(arrangement, F.col(quoted(recipe.key)))
            rows = rows.repartitionById(arrangement.tasks, task)
    with _run(spark, recipe, rows) as (found, told):
        _check_seen(index, log, plan, told)
        yield found


@contextmanager
def loaded(
    spark: SparkSession,
    index: Index,
    log: Log,
    last: int,
    rows: DataFrame,
    size: float,
    run: str,
) -> Iterator[Written]:
    """The files of a load of so many bytes, as `written`."""
    rows = by_range(rows, index, size, cores(spark))
    with _run(spark, _recipe(spark, index, log, last, run, None, size), rows) as (found, _):
        yield found


def _recipe(
    spark: SparkSession,
    index: Index,
    log: Log,
    last: int,
    run: str,
    by_task: tuple[tuple[Part, ...], ...] | None,
    size: float,
) -> Recipe:
    return Recipe(
        root=str(_root(log)),
        incoming=f"{INCOMING}/{run}",
        schema=data_schema(log),
        key=index.key,
        expires_at=expiry_column(index),
        bounded=_bounded(log),
        last=last,
        file_bytes=target_file_bytes(index.target_file_size, size),
        codec=_codec(spark),
        parts=by_task,
    )


@contextmanager
def _run(
    spark: SparkSession, recipe: Recipe, rows: DataFrame | None
) -> Iterator[tuple[Written, list[dict[str, Any]]]]:
    """The files that the tasks have written, and all that each task tells. `rows` has a partition
    for each task."""
    found = Written(Path(recipe.root), recipe.incoming)
    try:
        with reading(but_not=recipe.root):
            told = [] if rows is None else _job(_columns(rows, recipe), recipe)
            if recipe.parts is not None:
                # Spark may find that there are no rows at all, and starts no task then.
                done = frozenset(one["task"] for one in told)
                if any(own and task not in done for task, own in enumerate(recipe.parts)):
                    tasks = len(recipe.parts)
                    told += _job(spark.range(0, tasks, 1, tasks), recipe, done)
        found.files = [file for one in told for file in one["files"]]
        found.counts = _counts(told)
        yield found, told
    finally:
        found.remove()


def _columns(rows: DataFrame, recipe: Recipe) -> DataFrame:
    """What a task takes, as one column: `mapInArrow` asks the JVM for each by its name, and knows
    no name with a backtick."""
    names = [*recipe.schema.names, CELL_G, CELL_E, REASON]
    return rows.selectExpr(f"struct({', '.join(map(quoted, names))}) AS {ROW}")


def _job(
    frame: DataFrame, recipe: Recipe, done: frozenset[int] | None = None
) -> list[dict[str, Any]]:
    # One line from each task, no row of the user's.
    lines = frame.mapInArrow(partial(run_task, recipe, done), f"{TOLD} string").collect()
    return [json.loads(line[TOLD]) for line in lines if line[TOLD] is not None]


def run_task(
    recipe: Recipe, done: frozenset[int] | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What Spark has its workers run. With `done` there are no new rows: the batches are those of
    a frame that has nothing but tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    task = context.partitionId()
    if done is not None:
        for _ in batches:
            pass
        batches = iter(())
    if done is None or task not in done:
        rows = (pa.RecordBatch.from_struct_array(batch.column(0)) for batch in batches)
        told = {"task": task, **write_parts(recipe, task, rows).as_json()}
        yield pa.RecordBatch.from_pydict({TOLD: [json.dumps(told)]})


def _parts(log: Log, plan: Plan, arrangement: Arrangement) -> Iterator[list[Part]]:
    """What each task writes."""
    tasks: list[list[Part]] = [[] for _ in range(arrangement.tasks)]
    again: dict[Cell, list[str]] = {}
    for file in files_read(log, plan):
        again.setdefault(file.cell, []).append(file.path)
    for cell, (first, points) in sorted(arrangement.cells.items()):
        stored = tuple(again.pop(cell, ()))
        ends = [None, *points, None]
        for place in range(len(points) + 1):
            part = Part(cell.g, cell.e, ends[place], ends[place + 1], stored)
            tasks[first + place].append(part)
    assert not again, f"nobody writes {sorted(again)} again"
    yield from tasks


def files_read(log: Log, plan: Plan) -> Files:
    """The files whose live rows are written again."""
    return log.files.of(read_again(plan, log))


def _check_seen(
    index: Index,
    log: Log,
    plan: Plan,
    told: Iterable[Mapping[str, Any]],
) -> None:
    """DamagedTable unless every stored row was seen by exactly one task."""
    seen = Counter[str]()
    for one in told:
        seen.update(one["seen"])
    for file in files_read(log, plan):
        if seen[file.path] != file.rows:
            raise DamagedTable(
                f"The file {file.path} of {log.path} holds {seen[file.path]} rows, not the "
                f"{file.rows} that the log says.",
                remedy=Replay(index.argument, max(1, plan.first - 1)),
            )


def _counts(told: Iterable[Mapping[str, Any]]) -> BatchCounts:
    counts = BatchCounts()
    for one in told:
        for ins, exp, reason, rows in one["arrived"]:
            if reason is None:
                counts.good[(ins, exp)] = counts.good.get((ins, exp), 0) + rows
            else:
                counts.bad[(ins, reason)] = counts.bad.get((ins, reason), 0) + rows
    return counts


def _bounded(log: Log) -> dict[str, str]:
    kinds = kinds_of(log)
    return {name: kinds[name] for name in statistics_columns(log) or () if name in kinds}


def _codec(spark: SparkSession) -> str:
    named = str(spark.conf.get(_CODEC, "snappy")).lower()
    return named if named in _AS_NAMED else _CODECS.get(named, "snappy")


def _root(log: Log) -> Path:
    return Path(reader_uri(log.path))
