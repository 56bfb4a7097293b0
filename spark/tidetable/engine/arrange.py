"""How rows are laid out into files: sorted inside a cell, split by key range past a target size.

One task writes one key range of one cell, or several small cells. Split points are bounds of row
groups of the files that are being replaced: they are there already, so no sampling pass is needed,
and being values of the key itself they work for any type that has an order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.core.columns import CELL_E, CELL_G
from tidetable.core.file_size import target_file_bytes
from tidetable.core.split import SPLIT_BYTES_MIN, KeyRange, split_points
from tidetable.engine.reuse import handed_over_column
from tidetable.engine.sql import quoted
from tidetable.engine.staging import expiry_column
from tidetable.table.files import Files
from tidetable.table.log import Log

OWN_TASK_BYTES_MIN = 16 * 1024 * 1024
"""A cell smaller than this shares a task: starting one takes as long as writing 2 to 4 MB."""

FOOTERS_MAX = 64
"""So many files are asked for their row groups at most; the largest ones tell enough."""


@dataclass(frozen=True)
class Arrangement:
    """Which task writes what: cell -> (its first task, its split points)."""

    tasks: int
    cells: Mapping[Cell, tuple[int, Sequence[Any]]]


def arrange(
    sizes: Mapping[Cell, int],
    target_bytes: int,
    cores: int,
    ranges: Callable[[], Sequence[KeyRange]],
) -> Arrangement:
    """Tasks for cells of these sizes in bytes; `ranges` is asked only if a cell is split.

    A cell is split once it passes the target size, or earlier where a few large cells would
    otherwise leave cores idle. Small cells share tasks, with parts of large ones too as long as
    all tasks run at once: so none begins when the others end, and there are few to be started.
    """
    total = sum(sizes.values())
    if total < SPLIT_BYTES_MIN:
        cores = 1  # nothing to be gained by a second task, and moving rows to it costs a stage
    share = max(SPLIT_BYTES_MIN, ceil(total / max(1, cores)))
    cells: dict[Cell, tuple[int, Sequence[Any]]] = {}
    small: list[tuple[int, Cell]] = []
    loads: list[float] = []
    # The largest first: a long task that begins when the others end keeps one core waiting.
    for cell, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        parts = max(ceil(size / target_bytes), ceil(size / share))
        if parts > 1 or size >= OWN_TASK_BYTES_MIN:
            points = split_points(ranges(), parts) if parts > 1 else []
            cells[cell] = (len(loads), points)
            tasks = len(points) + 1
            loads += [size / tasks] * tasks
        else:
            small.append((size, cell))
    first = 0 if len(loads) <= cores else len(loads)
    room = max(1, cores) - (len(loads) - first)
    loads += [0.0] * min(len(small), room)
    for size, cell in sorted(small, reverse=True):
        lightest = loads.index(min(loads[first:]), first)
        cells[cell] = (lightest, ())
        loads[lightest] += max(1, size)
    return Arrangement(max(1, len(loads)), cells)


def key_ranges(log: Log, files: Files, key: str) -> list[KeyRange]:
    """The row groups of these files by key, from their footers."""
    found: list[KeyRange] = []
    for file in files.largest(FOOTERS_MAX):
        with log.storage.open_input_file(file.path) as stream:
            footer = pq.read_metadata(stream)
        names = [footer.schema.column(i).path for i in range(footer.num_columns)]
        if key not in names:
            continue
        column = names.index(key)
        for group in range(footer.num_row_groups):
            part = footer.row_group(group)
            statistics = part.column(column).statistics
            if statistics is not None and statistics.has_min_max:
                found.append(KeyRange(statistics.min, statistics.max, part.num_rows))
    return found


def arranged(frame: DataFrame, arrangement: Arrangement, key: str, expires_at: str) -> DataFrame:
    """The rows in their tasks, sorted by cell, key and expiration: one shuffle, one sort."""
    order = [CELL_G, CELL_E, quoted(key), quoted(expires_at)]
    return frame.repartitionById(
        arrangement.tasks, task_column(arrangement, F.col(quoted(key)))
    ).sortWithinPartitions(*order)


def by_range(frame: DataFrame, index: Index, size: float, cores: int) -> DataFrame:
    """A load's rows, of so many bytes, in tasks by range of cell and key: no file tells split
    points yet, so Spark samples."""
    tasks = max(1, ceil(size / target_file_bytes(index.target_file_size, size)))
    if size > SPLIT_BYTES_MIN:
        tasks = max(tasks, cores)
    if tasks == 1:
        return frame.coalesce(1)
    return frame.repartitionByRange(tasks, CELL_G, CELL_E, quoted(index.key))


def spread(frame: DataFrame, index: Index, size: float, cores: int) -> DataFrame:
    """The same, sorted in each task."""
    order = [CELL_G, CELL_E, quoted(index.key), quoted(expiry_column(index))]
    return by_range(frame, index, size, cores).sortWithinPartitions(*order)


def task_column(arrangement: Arrangement, key: Column) -> Column:
    """The task that writes a row, by its cell and its key."""
    first = {_code(cell): task for cell, (task, _) in arrangement.cells.items()}
    code = F.concat_ws("/", F.col(CELL_G), F.col(CELL_E))
    # A literal map, folded once; a CASE per cell would be a long piece of generated code.
    table = F.from_json(F.lit(json.dumps(first)), "map<string,int>")
    task = F.coalesce(F.element_at(table, code), F.lit(0))
    offset: Column | None = None
    for cell, (_, points) in arrangement.cells.items():
        if not points:
            continue
        above = F.lit(0)
        for point in points:
            above = above + (key > handed_over_column(point, key)).cast("int")
        here = code == F.lit(_code(cell))
        offset = F.when(here, above) if offset is None else offset.when(here, above)
    return task if offset is None else task + offset.otherwise(0)


def _code(cell: Cell) -> str:
    return f"{cell.g}/{cell.e}"
