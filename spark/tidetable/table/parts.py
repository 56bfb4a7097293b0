"""The files of a plain table, written by pyarrow inside a task: a part of a cell is one key range.

A task gets the new rows of its parts as Arrow batches, reads the stored rows that are to be written
again, leaves out what has expired, sorts, and writes. What it tells (files with their statistics,
how many rows of each kind came in, how many stored rows it has seen) is what the commit is made of
and what is compared before it.

It runs in Spark's workers, so it imports little, and needs no JVM.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, INSERTION_SLOT, REASON
from tidetable.table.bounds import Bounds, statistics_json, written_bounds

PAGE_BYTES = 128 * 1024
"""A probe reads whole pages."""

GROUP_BYTES = 16 * 1024 * 1024
"""Row groups small enough that a probe reads little and that their bounds serve as split points."""

FLUSH_BYTES = 1024 * 1024 * 1024
"""New rows of one task that come to more than was expected are written when there are as many, in
files of their own: memory stays bounded whatever a batch holds."""

_OVERSIZE, _UNDERSIZE = 1.5, 0.25
"""Of the target size: no file gets larger, if what would be left for the next is not smaller."""

_SAMPLE_ROWS = 2048
_BATCH_ROWS_MAX = 1024
_LARGE_BYTES = 1 << 30


@dataclass(frozen=True)
class Part:
    """A key range of a cell, and the stored files whose live rows in it are written again."""

    g: int
    e: int
    above: Any = None
    """Keys greater than this one; None: from the least on."""

    upto: Any = None
    """This key is the last one; None: to the greatest."""

    stored: tuple[str, ...] = ()
    """Paths below the table."""

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its cell."""
        return self.above is None and self.upto is None


@dataclass(frozen=True)
class Recipe:
    """What every task of one write has to know."""

    root: str
    """The table's folder."""

    incoming: str
    """The folder below it for files that are no part of the table yet."""

    schema: pa.Schema
    """The columns of a data file, in their order."""

    key: str
    expires_at: str
    bounded: Mapping[str, str]
    """The columns with bounds, each with its type in Delta's words."""

    last: int
    """Rows that expire up to this slot are left out."""

    file_bytes: int
    codec: str
    parts: tuple[tuple[Part, ...], ...] | None
    """What each task writes; None: whatever comes, as in a load."""


@dataclass
class Told:
    """What a task has done."""

    files: list[dict[str, Any]] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    """Rows of each stored file that lie in the parts of the task, dead ones too."""

    arrived: Counter[tuple[int | None, int | None, str | None]] = field(default_factory=Counter)
    """New rows by insertion slot, expiration slot and reason to refuse them."""

    def as_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "seen": dict(self.seen),
            "arrived": [[*kind, rows] for kind, rows in self.arrived.items()],
        }


def write_parts(recipe: Recipe, task: int, batches: Iterable[pa.RecordBatch]) -> Told:
    """Writes the parts of one task. `batches` are new rows with their cells, slots and reasons."""
    told = Told()
    mine = None if recipe.parts is None else recipe.parts[task]
    parts = None if mine is None else {(part.g, part.e): part for part in mine}
    new: list[pa.Table] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([batch])
        told.arrived.update(_kinds(rows))
        taken = _taken(rows, recipe.last)
        if taken.num_rows:
            new.append(taken)
            size += taken.nbytes
        if size > FLUSH_BYTES:
            for part, some in _by_part(recipe, parts, new):
                _write(recipe, part, [some], told)
            new, size = [], 0
    arrived = dict(_by_part(recipe, parts, new))
    del new
    for part in sorted(arrived, key=lambda one: (one.g, one.e)) if mine is None else mine:
        tables = list(_stored(recipe, part, told))
        if (fresh := arrived.pop(part, None)) is not None:
            tables.insert(0, fresh)
        _write(recipe, part, tables, told)
    return told


# -- new rows --------------------------------------------------------------------------------------


def _kinds(rows: pa.Table) -> Counter[tuple[int | None, int | None, str | None]]:
    """How many rows there are of each insertion slot, expiration slot and reason."""
    by = [INSERTION_SLOT, EXPIRATION_SLOT, REASON]
    table = rows.select(by)
    # The slot in which a bad row would expire says nothing.
    good = pc.is_null(table.column(REASON))
    expires = pc.if_else(good, table.column(EXPIRATION_SLOT), pa.scalar(None, pa.int64()))
    table = table.set_column(1, EXPIRATION_SLOT, expires)
    counts = table.group_by(by).aggregate([([], "count_all")])
    columns = [counts.column(name).to_pylist() for name in (*by, "count_all")]
    return Counter({(ins, exp, why): n for ins, exp, why, n in zip(*columns, strict=True)})


def _taken(rows: pa.Table, last: int) -> pa.Table:
    """The rows that are stored: good ones that outlive the update and their own arrival."""
    expires = rows.column(EXPIRATION_SLOT)
    lives = pc.and_(pc.greater(expires, last), pc.greater(expires, rows.column(INSERTION_SLOT)))
    return rows.filter(pc.and_kleene(pc.is_null(rows.column(REASON)), lives)).drop_columns([REASON])


def _by_part(
    recipe: Recipe, parts: Mapping[tuple[int, int], Part] | None, new: Sequence[pa.Table]
) -> Iterator[tuple[Part, pa.Table]]:
    """The new rows of each part that has some."""
    if not new:
        return
    rows = pa.concat_tables(new)
    cells = rows.select([CELL_G, CELL_E]).group_by([CELL_G, CELL_E]).aggregate([])
    found = list(zip(*(cells.column(i).to_pylist() for i in range(2)), strict=True))
    fitted = _fitted(rows, recipe.schema)
    for cell in found:
        part = Part(*cell) if parts is None else parts.get(cell)
        if part is None:
            # Not the rows that the plan was made for. They have been counted, so it will be seen.
            continue
        if len(found) == 1:
            yield part, fitted
            continue
        of_g, of_e = pc.equal(rows.column(CELL_G), cell[0]), pc.equal(rows.column(CELL_E), cell[1])
        yield part, fitted.filter(pc.and_(of_g, of_e))


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the table in their order and types; those that are not there are null."""
    columns = []
    places = {name: place for place, name in enumerate(rows.column_names)}
    for wanted in schema:
        place = places.get(wanted.name, -1)
        if place < 0:
            columns.append(pa.chunked_array([pa.nulls(rows.num_rows, wanted.type)]))
            continue
        column = rows.column(place)
        columns.append(column if column.type == wanted.type else column.cast(wanted.type))
    return pa.table(columns, schema=schema)


# -- stored rows -----------------------------------------------------------------------------------


def _stored(recipe: Recipe, part: Part, told: Told) -> Iterator[pa.Table]:
    """The live rows of the stored files, as far as they lie in the part."""
    for path in part.stored:
        told.seen[path] += 0
        place = Path(recipe.root, path)
        with pq.ParquetFile(place, coerce_int96_timestamp_unit="us") as file:
            there = set(file.schema_arrow.names)
            names = [name for name in recipe.schema.names if name in there]
            for group in _groups(file, recipe, part):
                rows = file.read_row_group(group, columns=names, use_threads=False)
                rows = (
                    rows if part.is_whole else rows.filter(_inside(rows.column(recipe.key), part))
                )
                told.seen[path] += rows.num_rows
                alive = rows.filter(pc.greater(rows.column(EXPIRATION_SLOT), recipe.last))
                if alive.num_rows:
                    yield _fitted(alive, recipe.schema)


def _groups(file: pq.ParquetFile, recipe: Recipe, part: Part) -> list[int]:
    """The row groups that may hold rows of the part."""
    groups = range(file.num_row_groups)
    key = recipe.schema.field(recipe.key).type
    if part.is_whole or pa.types.is_floating(key):  # whose bounds leave NaN out
        return list(groups)
    columns = file.metadata.schema
    place = next(i for i in range(len(columns)) if columns.column(i).path == recipe.key)
    return [
        group
        for group in groups
        if _may_hold(file.metadata.row_group(group).column(place).statistics, part)
    ]


def _may_hold(told: Any, part: Part) -> bool:
    if told is None or not told.has_min_max:
        return True
    try:
        is_below = part.above is not None and told.max <= part.above
        is_above = part.upto is not None and told.min > part.upto
    except TypeError:  # bounds of another kind than those that the parts were cut by
        return True
    return not (is_below or is_above)


def _inside(keys: pa.ChunkedArray, part: Part) -> pa.ChunkedArray:
    """Which keys lie in the part. Of the parts of a cell each key lies in exactly one: whatever
    cannot be compared (NaN) is not above anything."""
    above: Any = None
    upto: Any = None
    if part.above is not None:
        above = pc.fill_null(pc.greater(keys, pa.scalar(part.above, keys.type)), False)
    if part.upto is not None:
        upto = pc.invert(pc.fill_null(pc.greater(keys, pa.scalar(part.upto, keys.type)), False))
    if above is None or upto is None:
        return upto if above is None else above
    return pc.and_(above, upto)


# -- writing ---------------------------------------------------------------------------------------


def _write(recipe: Recipe, part: Part, tables: Sequence[pa.Table], told: Told) -> None:
    """Writes the rows, sorted by key and expiration, into one file, or several once they pass the
    target size."""
    rows = pa.concat_tables(tables) if tables else None
    if rows is None or not rows.num_rows:
        return
    size = max(1, rows.nbytes)
    if size > _LARGE_BYTES:
        rows = _with_room(rows)
    order = pc.sort_indices(
        rows.select([recipe.key, recipe.expires_at])
        if recipe.key != recipe.expires_at
        else rows.select([recipe.key]),
        sort_keys=[(name, "ascending") for name in dict.fromkeys([recipe.key, recipe.expires_at])],
    )
    rows = rows.combine_chunks()
    group_bytes = min(GROUP_BYTES, recipe.file_bytes)
    in_group = min(rows.num_rows, max(1, group_bytes * rows.num_rows // size))
    options = _options(recipe, rows)
    start = 0
    while start < rows.num_rows:
        start = _one_file(recipe, part, rows, order, start, in_group, options, told)


def _one_file(
    recipe: Recipe,
    part: Part,
    rows: pa.Table,
    order: pa.Array,
    start: int,
    in_group: int,
    options: Mapping[str, Any],
    told: Told,
) -> int:
    """Writes rows from `start` on; the row with which the next file begins."""
    folder = Path(recipe.incoming, f"{CELL_G}={part.g}", f"{CELL_E}={part.e}")
    Path(recipe.root, folder).mkdir(parents=True, exist_ok=True)
    path = folder / f"part-{uuid.uuid4()}.{recipe.codec}.parquet"
    whole = Path(recipe.root, path)
    bounds = _Bounds(recipe.bounded)
    first = start
    with (
        pa.OSFile(str(whole), "wb") as sink,
        pq.ParquetWriter(sink, rows.schema, **options) as writer,
    ):
        while start < rows.num_rows:
            group = rows.take(order.slice(start, in_group))
            writer.write_table(group, row_group_size=in_group)
            bounds.add(group)
            start += group.num_rows
            per_row = sink.tell() / (start - first)
            with_next, left = (
                (start - first + in_group) * per_row,
                (rows.num_rows - start) * per_row,
            )
            if with_next > _OVERSIZE * recipe.file_bytes and left > _UNDERSIZE * recipe.file_bytes:
                break
    stat = whole.stat()
    told.files.append(
        {
            "path": path.as_posix(),
            "g": part.g,
            "e": part.e,
            "bytes": stat.st_size,
            "changed_ms": stat.st_mtime_ns // 1_000_000,
            "rows": start - first,
            "stats": bounds.as_json(start - first),
        }
    )
    return start


def _with_room(rows: pa.Table) -> pa.Table:
    """The same with texts whose offsets do not end at 2 GB."""
    larger = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    schema = pa.schema(
        [field.with_type(larger.get(field.type, field.type)) for field in rows.schema]
    )
    return rows.cast(schema)


def _options(recipe: Recipe, rows: pa.Table) -> dict[str, Any]:
    widest = max(rows.column(i).nbytes for i in range(rows.num_columns)) / rows.num_rows
    return {
        "compression": recipe.codec,
        "use_dictionary": list(_repetitive(rows)),
        "data_page_size": PAGE_BYTES,
        # So many rows come before pyarrow looks whether a page is full.
        "write_batch_size": int(min(_BATCH_ROWS_MAX, max(1, PAGE_BYTES // max(1.0, 2 * widest)))),
        "write_page_index": True,
        "store_schema": False,
        "store_decimal_as_integer": True,
    }


def _repetitive(rows: pa.Table) -> Iterator[str]:
    """The columns that a dictionary makes smaller. Where it does not, a reader of a few rows has
    to read it all the same."""
    step = max(1, rows.num_rows // _SAMPLE_ROWS)
    sample = rows.take(pa.array(range(0, rows.num_rows, step)))
    for name, column in zip(sample.column_names, sample.columns, strict=True):
        if pa.types.is_nested(column.type):
            yield from _leaves(name, column.type)
        elif not pa.types.is_boolean(column.type) and (
            pc.count_distinct(column, mode="all").as_py() * 3 <= len(column)
        ):
            yield name


def _leaves(name: str, kind: pa.DataType) -> Iterator[str]:
    """The columns of Parquet inside a nested one. Nobody looks for a row by them."""
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _leaves(f"{name}.{child.name}", child.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{name}.key_value.key", kind.key_type)
        yield from _leaves(f"{name}.key_value.value", kind.item_type)
    elif pa.types.is_nested(kind):
        yield from _leaves(f"{name}.list.element", kind.value_type)
    elif not pa.types.is_boolean(kind):
        yield name


class _Bounds:
    """Bounds and nulls of the columns that Delta keeps statistics of, row group by row group."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._found: dict[str, list[tuple[Any, Any]]] = {name: [] for name in kinds}
        self._untold: set[str] = set()
        self._nulls: Counter[str] = Counter(dict.fromkeys(kinds, 0))

    def add(self, rows: pa.Table) -> None:
        for name in self._kinds:
            column = rows.column(name)
            self._nulls[name] += column.null_count
            if name in self._untold or column.null_count == len(column):
                continue
            try:
                bounds = _least_and_greatest(column)
            except (ValueError, OverflowError, pa.ArrowInvalid):
                bounds = None
            if bounds is None:
                self._untold.add(name)
            else:
                self._found[name].append(bounds)

    def as_json(self, rows: int) -> str:
        bounds: dict[str, Bounds] = {}
        for name, found in self._found.items():
            if not found or name in self._untold:
                continue
            low, high = min(one[0] for one in found), max(one[1] for one in found)
            if (written := written_bounds(low, high, self._kinds[name])) is not None:
                bounds[name] = written
        return statistics_json(rows, bounds, self._nulls)


def _least_and_greatest(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """A text as bytes, a time in microseconds; None if a value has no place in the order."""
    kind = column.type
    if pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        return None
    if pa.types.is_string(kind):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(kind):
        column = column.cast(pa.large_binary())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    found = pc.min_max(column)
    return found["min"].as_py(), found["max"].as_py()
