"""The data files of one version, as columns of Arrow.

A table of 100 TB has some ten thousand of them. As objects they would cost the driver a second and
hundreds of megabytes at each look; as columns they cost what delta-rs hands out anyway. So whatever
is asked of all of them is asked of the columns, and only a few are ever made into objects.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidetable.core.cell import Cell, CellState
from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.table.records import as_table

Bounds = tuple[Any, Any]

_BOUNDS = ("insertion", "expiration", "key")
_WHOLE = ("g", "e", "rows", "bytes", "min_insertion", "max_insertion", "min_expiration",
          "max_expiration")  # fmt: skip
_CODE = pa.schema([("code", pa.int64())])


def _scalar(value: int) -> pa.Scalar:
    # To make one of a number of Python's pyarrow imports pandas, which takes longer than a probe.
    return pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(struct.pack("=q", value))])[0]


_NONE = _scalar(0)
_PER_G = _scalar(1 << 32)


@dataclass(frozen=True)
class DataFile:
    """One file of a version."""

    path: str
    cell: Cell
    rows: int
    """Rows that a reader sees: deletion vectors are taken off."""

    bytes: int
    insertion: tuple[int, int] | None
    """Least and greatest slot; None: the statistics do not tell. With deletions they are those of
    all rows that ever were in it."""

    expiration: tuple[int, int] | None
    key: Bounds | None
    """Bounds of the keys, if these are texts or whole numbers; long texts are cut off."""

    has_deletions: bool


@dataclass(frozen=True)
class CellFiles:
    """The files of one cell together. Bounds are None if one of the files does not tell its own."""

    cell: Cell
    rows: int
    files: int
    bytes: int
    insertion: tuple[int, int] | None
    expiration: tuple[int, int] | None
    key: Bounds | None


@dataclass(frozen=True, eq=False)
class Files:
    """Files of a version, in no particular order."""

    table: pa.Table
    """A row for each; of two bounds both are null if one is not known."""

    @staticmethod
    def told(actions: pa.Table, key: str | None, hidden: Mapping[str, int]) -> Files:
        """As delta-rs tells them (`get_add_actions(flatten=True)`). `hidden` counts the rows that
        deletion vectors hide, by file name."""
        texts = key is not None and f"min.{key}" in actions.column_names
        texts = texts and not pa.types.is_integer(actions.schema.field(f"min.{key}").type)
        schema = _schema(pa.string() if texts else pa.int64())
        named = {
            "path": "path", "g": f"partition.{CELL_G}", "e": f"partition.{CELL_E}",
            "rows": "num_records", "bytes": "size_bytes",
        }  # fmt: skip
        for bounds, column in zip(_BOUNDS, (INSERTION_SLOT, EXPIRATION_SLOT, key), strict=True):
            named |= {f"min_{bounds}": f"min.{column}", f"max_{bounds}": f"max.{column}"}
        columns = {
            name: actions.column(named[name]).cast(schema.field(name).type)
            if named[name] in actions.column_names
            else pa.chunked_array([pa.nulls(actions.num_rows, schema.field(name).type)])
            for name in schema.names[:-1]
        }
        for bounds in _BOUNDS:
            low, high = columns[f"min_{bounds}"], columns[f"max_{bounds}"]
            both = pc.and_(low.is_valid(), high.is_valid())
            for end in (f"min_{bounds}", f"max_{bounds}"):
                unknown = pa.nulls(1, columns[end].type)[0]  # not None: see _scalar
                columns[end] = pc.if_else(both, columns[end], unknown)
        gone = _hidden_rows(columns["path"], hidden)
        columns["rows"] = pc.subtract(columns["rows"], gone)
        columns["has_deletions"] = pc.greater(gone, _NONE)
        return Files(pa.table(columns, schema=schema))

    @staticmethod
    def listed(files: Iterable[DataFile], schema: pa.Schema | None = None) -> Files:
        """These files. Bounds that are of no kind that the log has are not known."""
        listed = list(files)
        if schema is None:
            texts = any(one.key is not None and isinstance(one.key[0], str) for one in listed)
            schema = _schema(pa.string() if texts else pa.int64())
        kind = str if pa.types.is_string(schema.field("min_key").type) else int
        return Files(as_table((_record(one, kind) for one in listed), schema))

    # -- one by one ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[DataFile]:
        for batch in self.table.to_batches(max_chunksize=1_000):
            for one in batch.to_pylist():
                yield DataFile(
                    path=one["path"],
                    cell=Cell(one["g"], one["e"]),
                    rows=one["rows"],
                    bytes=one["bytes"],
                    insertion=_pair(one, "insertion"),
                    expiration=_pair(one, "expiration"),
                    key=_pair(one, "key"),
                    has_deletions=one["has_deletions"],
                )

    # -- together --------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> int:
        return _sum(self.table.column("rows"))

    @cached_property
    def bytes(self) -> int:
        return _sum(self.table.column("bytes"))

    @cached_property
    def by_cell(self) -> list[CellFiles]:
        """What the files of each cell say together, in the order of the cells."""
        # Arrow's own grouping comes with its readers of whole folders, which take longer to import
        # than a probe takes.
        order = pc.sort_indices(self.table, sort_keys=[("g", "ascending"), ("e", "ascending")])
        table = self.table.take(order)
        whole = [table.column(name).to_pylist() for name in ("g", "e", "rows", "bytes")]
        starts = _starts(*whole[:2])
        g, e = ([column[start] for start in starts] for column in whole[:2])
        rows, size = (_sums(column, starts) for column in whole[2:])
        files = [end - start for start, end in pairwise([*starts, len(self)])]
        bounds = {
            name: _bounds_of_runs(table.column(f"min_{name}"), table.column(f"max_{name}"), starts)
            for name in _BOUNDS
        }
        return [
            CellFiles(
                Cell(g[i], e[i]), rows[i], files[i], size[i], **{b: bounds[b][i] for b in bounds}
            )
            for i in range(len(starts))
        ]

    @cached_property
    def cells(self) -> Mapping[Cell, CellState]:
        """The cells that hold a file."""
        return {
            one.cell: CellState(
                rows=one.rows,
                files=one.files,
                bytes=one.bytes,
                first_expiration=None if one.expiration is None else one.expiration[0],
                last_expiration=None if one.expiration is None else one.expiration[1],
            )
            for one in self.by_cell
        }

    def rows_by(self, column: str) -> dict[Any, int]:
        """How many rows lie in the files that have each value of this column."""
        found: Counter[Any] = Counter()
        values, rows = (self.table.column(name).to_pylist() for name in (column, "rows"))
        for value, number in zip(values, rows, strict=True):
            found[value] += number
        return found

    # -- some of them ----------------------------------------------------------------------------

    def of(self, cells: Collection[Cell]) -> Files:
        """The files of these cells."""
        wanted = as_table(({"code": (cell.g << 32) + cell.e} for cell in cells), _CODE)
        g, e = self.table.column("g"), self.table.column("e")
        codes = pc.add(pc.multiply(g, _PER_G), e)
        return Files(self.table.filter(pc.is_in(codes, wanted.column("code"))))

    def without(self, others: Files) -> Files:
        """Those that are not among the others, by their paths."""
        return self._but(others.table.column("path"))

    def largest(self, number: int) -> Files:
        """So many of them, the largest first."""
        found = pc.select_k_unstable(self.table, number, sort_keys=[("bytes", "descending")])
        return Files(self.table.take(found))

    def changed(self, gone: Collection[str], added: Iterable[DataFile]) -> Files:
        """These without the paths that are gone and with the files that were added.

        KeyError if one that is gone was not there.
        """
        paths = pa.schema([("path", pa.string())])
        going = as_table(({"path": path} for path in dict.fromkeys(gone)), paths).column("path")
        if not pc.all(pc.is_in(going, self.table.column("path"))).as_py() and len(going):
            raise KeyError("a file that is removed is not there")
        # A file named once more takes the place of what was said of it before.
        coming = Files.listed({one.path: one for one in added}.values(), self.table.schema)
        kept = self._but(going)._but(coming.table.column("path"))
        return Files(pa.concat_tables([kept.table, coming.table]).combine_chunks())

    def _but(self, paths: pa.ChunkedArray) -> Files:
        if not len(paths):
            return self
        return Files(self.table.filter(pc.invert(pc.is_in(self.table.column("path"), paths))))


def _schema(key: pa.DataType) -> pa.Schema:
    whole = [(name, pa.int64()) for name in _WHOLE]
    keys = [("min_key", key), ("max_key", key)]
    return pa.schema([("path", pa.string()), *whole, *keys, ("has_deletions", pa.bool_())])


def _record(file: DataFile, kind: type) -> dict[str, Any]:
    said: dict[str, Any] = {
        "path": file.path, "g": file.cell.g, "e": file.cell.e, "rows": file.rows,
        "bytes": file.bytes, "has_deletions": file.has_deletions,
    }  # fmt: skip
    for bounds, its_kind in zip(_BOUNDS, (int, int, kind), strict=True):
        found = getattr(file, bounds)
        known = found is not None and all(type(one) is its_kind for one in found)
        low, high = found if known else (None, None)
        said |= {f"min_{bounds}": low, f"max_{bounds}": high}
    return said


def _pair(said: Mapping[str, Any], bounds: str) -> Bounds | None:
    low, high = said[f"min_{bounds}"], said[f"max_{bounds}"]
    return None if low is None or high is None else (low, high)


def _starts(*columns: list[int]) -> list[int]:
    """Where runs of equal values begin, in columns that are sorted."""
    values = list(zip(*columns, strict=True))
    return [i for i, one in enumerate(values) if i == 0 or one != values[i - 1]]


def _sums(column: list[int], starts: list[int]) -> list[int]:
    """The sum of each run."""
    return [sum(column[start:end]) for start, end in pairwise([*starts, len(column)])]


def _bounds_of_runs(
    low: pa.ChunkedArray, high: pa.ChunkedArray, starts: list[int]
) -> list[Bounds | None]:
    """From the least to the greatest of each run; None if one of it is not known."""
    found: list[Bounds | None] = []
    for start, end in pairwise([*starts, len(low)]):
        least = pc.min_max(low.slice(start, end - start), skip_nulls=False)["min"].as_py()
        greatest = pc.min_max(high.slice(start, end - start), skip_nulls=False)["max"].as_py()
        found.append(None if least is None or greatest is None else (least, greatest))
    return found


def _sum(column: pa.ChunkedArray) -> int:
    found = pc.sum(column).as_py()
    return 0 if found is None else int(found)


def _hidden_rows(paths: pa.ChunkedArray, hidden: Mapping[str, int]) -> pa.ChunkedArray:
    """For each file how many of its rows a deletion vector hides."""
    schema = pa.schema([("name", pa.string()), ("rows", pa.int64())])
    counts = as_table(({"name": name, "rows": rows} for name, rows in hidden.items()), schema)
    names = pc.replace_substring_regex(paths, "^.*/", "")
    place = pc.index_in(names, counts.column("name"))
    return pc.fill_null(counts.column("rows").take(place), _NONE)
