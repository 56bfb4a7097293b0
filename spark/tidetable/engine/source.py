"""The user's source as Spark reads it: only the paths of the slots asked for, with a known schema.

Formats that carry their types (Parquet, Delta, ORC, Avro, ...) are taken as they are. CSV and JSON
do not: CSV columns are text unless `source.schema` says otherwise, JSON is inferred once, when the
table is made; from then on the table's own columns are the schema, so no batch costs an inference.
What becomes of files whose columns differ is for `column_drift` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, reduce

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tidetable.config import Index
from tidetable.core.columns import ADDED, CELL_E, EXPIRES_AT, RESERVED
from tidetable.core.errors import TransientError, UserError
from tidetable.engine.column_drift import Agreed, agreed, fits, misfit
from tidetable.engine.footer_schema import FileColumns, columns_of
from tidetable.engine.source_files import (
    SourceFile,
    changed_since,
    is_on_disk,
    local_path,
    source_files,
)
from tidetable.engine.sql import quoted, type_sql
from tidetable.table.bounds import has_bounds

CORRUPT = "_corrupt_record"
_NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")


@dataclass(frozen=True)
class SourceRows:
    """Rows as they came, and the types that the table's columns are to have.

    `frame` has the user's columns (in CSV all as text) and, for CSV and JSON, CORRUPT: the record
    that could not be read. `declared` has the user's columns as they go into the table, except that
    the time columns are still as the source has them.
    """

    frame: DataFrame
    declared: StructType
    has_corrupt: bool
    new: Mapping[str, str] = field(default_factory=dict)
    """Columns that were left out because the table has none such, each with a file that has it."""

    missing: tuple[str, ...] = ()
    """Paths that were to be read and are not there."""

    unasked: str | None = None
    """Why not every file was asked for its columns, so that what one lacks becomes NULL."""


class Source:
    """Reads the source of one index."""

    def __init__(self, spark: SparkSession, index: Index) -> None:
        self.spark = spark
        self.index = index
        self.config = index.source
        self._seen: dict[str, SourceFile] = {}

    @cached_property
    def time_columns(self) -> frozenset[str]:
        names = {self.config.arrived_at, self.index.inserted_at, self.index.expires_at}
        return frozenset(name for name in names if name is not None)

    def rows(self, after: datetime, until: datetime, table: StructType | None) -> SourceRows:
        """Rows of the paths that can hold arrivals in (after, until]; more may be among them.

        `table` is the schema of the index's table, once there is one.
        """
        wanted = self.config.paths_for(after, until)
        paths = self._existing(wanted)
        known = None if table is None else user_schema(table)
        there = set(paths)
        missing = tuple(path for path in wanted if path not in there)
        rows = self._rows_of(paths, known)
        if theirs := columns_of_others(table):
            rows = _with_nulls(rows, theirs)
        return replace(rows, missing=missing)

    def _rows_of(self, paths: Sequence[str], known: StructType | None) -> SourceRows:
        files = self._files(paths)
        if files == []:
            paths = []  # a folder with nothing in it holds no rows, as one that is not there
        if not paths:
            return self._only_columns() if known is None else self._empty(known)
        self._seen |= {file.path: file for file in files or ()}
        return self._read(paths, files, known)

    def begin(self) -> None:
        """From here on `replaced` tells of files that are read."""
        self._seen.clear()

    def replaced(self) -> list[str]:
        """Files read since `begin` that are gone, or no longer the same: by size, time and inode.

        Of files elsewhere than on this machine's disk nothing is known.
        """
        return changed_since(list(self._seen.values()))

    def _files(self, paths: Sequence[str], *, recursive: bool = False) -> list[SourceFile] | None:
        """The files of the paths; None if only Spark can tell."""
        if self.config.format == "delta":  # which has files that are no longer part of it
            return None
        return source_files(
            paths, self.config.options, recursive=recursive, beside=self.index.table
        )

    def _only_columns(self) -> SourceRows:
        """No rows: nothing has arrived yet, but the table needs its columns. Any folder will do."""
        root = self.config.root
        files = self._files([root], recursive=True)
        if files == []:
            raise UserError(
                f"There is no file in {root} yet, so nobody knows the columns of the table. Wait "
                "for the first one, or correct source.path."
            )
        if files is None:
            found = self._read([root], None, None, recursive=True)
        else:
            folder = _folder(files[0])
            first = [file for file in files if _folder(file) == folder]
            found = self._read([folder], first, None)
        return SourceRows(found.frame.limit(0), found.declared, found.has_corrupt)

    def _empty(self, known: StructType) -> SourceRows:
        declared = StructType(
            [
                StructField(field.name, TimestampType() if self._is_time(field) else field.dataType)
                for field in known
            ]
        )
        # Zero rows of a range rather than a local relation: one kind of plan for all batches.
        frame = self.spark.range(0).selectExpr(
            *[
                f"cast(null as {type_sql(field.dataType)}) as {quoted(field.name)}"
                for field in declared
            ]
        )
        return SourceRows(frame, declared, has_corrupt=False)

    def _is_time(self, field: StructField) -> bool:
        return field.name in self.time_columns

    # -- reading ---------------------------------------------------------------------------------

    def _read(
        self,
        paths: Sequence[str],
        files: Sequence[SourceFile] | None,
        known: StructType | None,
        *,
        recursive: bool = False,
    ) -> SourceRows:
        reads = {
            "csv": self._read_csv, "json": self._read_records, "xml": self._read_records,
            "delta": self._read_delta,
        }  # fmt: skip
        read = reads.get(self.config.format, self._read_typed)
        try:
            with reading():
                rows = read(paths, files, known, recursive)
        except AnalysisException as error:
            if known is not None and "UNABLE_TO_INFER_SCHEMA" in str(error):
                return self._empty(known)  # an empty folder, in a store that only Spark can list
            raise UserError(
                f"The source {self.config.path} cannot be read as {self.config.format}: "
                f"{_first_line(error)} Correct source.path, source.format or source.schema."
            ) from error
        self._check_columns(rows.declared)
        return rows

    def _reader(self, recursive: bool, **extra: str):  # type: ignore[no-untyped-def]
        options = {**extra, **self.config.options}
        if recursive:
            options["recursiveFileLookup"] = "true"
        return self.spark.read.format(self.config.format).options(**options)

    def _agreed(
        self,
        columns: Sequence[FileColumns],
        known: StructType | None,
        files: Sequence[SourceFile] | None = None,
    ) -> Agreed:
        partitions = frozenset(name for file in files or () for name in file.partitions)
        return agreed(columns, known, self.time_columns, self.config.new_columns, partitions)

    def _read_delta(
        self,
        paths: Sequence[str],
        files: Sequence[SourceFile] | None,
        known: StructType | None,
        recursive: bool,
    ) -> SourceRows:
        frames = {path: self._reader(False).load(path) for path in paths}  # takes one at a time
        columns = [FileColumns(path, _types(frame.schema)) for path, frame in frames.items()]
        common = self._agreed(columns, known)
        parts = [_fitted(frame, common) for frame in frames.values()]
        return _all(parts, common)

    def _read_typed(
        self,
        paths: Sequence[str],
        files: Sequence[SourceFile] | None,
        known: StructType | None,
        recursive: bool,
    ) -> SourceRows:
        columns = files and columns_of(files, self.config.format, self.config.options)
        if not columns:
            frame = self._reader(recursive).load(list(paths))
            whole = FileColumns(self.config.path, _types(frame.schema))
            common = self._agreed([whole], known)
            return replace(_all([_fitted(frame, common)], common), unasked=_why_unasked(files))
        common = self._agreed(columns, known, files)
        if len(common.groups) == 1 and not columns[0].nanoseconds.intersection(common.names):
            reader, schema = self._reader(recursive), self._known_to_spark(common, files or ())
            frame = (reader if schema is None else reader.schema(schema)).load(list(paths))
            parts = [_fitted(frame, common)]
        else:
            parts = [
                self._read_group(group, common, paths, _places(group, files or (), columns))
                for group in common.groups
            ]
        return _all(parts, common)

    def _known_to_spark(self, common: Agreed, files: Sequence[SourceFile]) -> StructType | None:
        """The columns as a file written by Spark tells them, which saves Spark a job."""
        is_simple = self.config.format == "parquet" and not any(file.partitions for file in files)
        if not is_simple or self._merges_schemas:
            return None
        told = next((one.as_spark for one in common.groups[0] if one.as_spark), None)
        return None if told is None else StructType([told[name] for name in common.names])

    def _read_group(
        self,
        group: Sequence[FileColumns],
        common: Agreed,
        paths: Sequence[str],
        places: Sequence[str],
    ) -> DataFrame:
        """Files that are alike among themselves, but not like all others of the batch."""
        one = group[0]
        reader = self._reader(False)
        if len(paths) == 1:  # so that folders inside go on to tell the values of their columns
            reader = reader.option("basePath", paths[0])
        nanoseconds = one.nanoseconds.intersection(common.names)
        types = {name: LongType() if name in nanoseconds else one.types[name]
                 for name in common.names}  # fmt: skip
        fields = [StructField(name, kind) for name, kind in types.items() if kind is not None]
        if len(fields) == len(types):
            reader = reader.schema(StructType(fields))
        elif nanoseconds:
            odd = ", ".join(repr(name) for name, kind in types.items() if kind is None)
            raise UserError(
                f"The file {one.file} holds times with nanoseconds ({', '.join(nanoseconds)}), "
                f"which Spark does not read beside a column of the type of {odd}. Write times "
                "with microseconds."
            )
        frame = reader.load(list(places))
        times = {name: _from_nanoseconds(name, one.types[name]) for name in nanoseconds}
        frame = frame.selectExpr(*[times.get(name, quoted(name)) for name in frame.columns])
        return _fitted(frame, common)

    @cached_property
    def _merges_schemas(self) -> bool:
        """Whether Spark is told to ask all files for their columns itself."""
        told = {name.lower() for name in self.config.options}
        always = str(self.spark.conf.get("spark.sql.parquet.mergeSchema")).lower() == "true"
        return always or "mergeschema" in told

    def _read_csv(
        self,
        paths: Sequence[str],
        files: Sequence[SourceFile] | None,
        known: StructType | None,
        recursive: bool,
    ) -> SourceRows:
        columns = files and columns_of(files, "csv", self.config.options)
        if columns and not any(file.partitions for file in files or ()):
            common = self._agreed(columns, known, files)
            parts = [
                self._read_alike(
                    group[0].header,
                    paths if len(common.groups) == 1 else _places(group, files or (), columns),
                    common.names,
                    recursive,
                )
                for group in common.groups
            ]
            names, new = common.names, common.new
        else:
            if known is None:
                names = tuple(self._reader(recursive, header="true").load(list(paths)).columns)
            else:
                names = tuple(known.fieldNames())
            parts, new = [self._read_alike(names, paths, names, recursive)], {}
        frame = reduce(lambda all_, one: all_.unionByName(one), parts)
        types = {field.name: field.dataType for field in (known or self._declared_by_user())}
        declared = StructType(
            [
                StructField(
                    name,
                    StringType() if name in self.time_columns else types.get(name, StringType()),
                )
                for name in names
            ]
        )
        return SourceRows(frame, declared, True, new)

    def _read_alike(
        self, header: Sequence[str], places: Sequence[str], wanted: Sequence[str], recursive: bool
    ) -> DataFrame:
        """CSV files with this header, all as text: the columns that are wanted."""
        names = [name.strip() or f"_c{place}" for place, name in enumerate(header)]
        text = StructType([*(StructField(name, StringType()) for name in names), _corrupt_field()])
        options = {
            "header": "true",
            # A file whose header differs is an error, not columns by position. With blanks in it
            # it differs from what we call the columns; then we have compared it already.
            "enforceSchema": "false" if tuple(names) == tuple(header) else "true",
            "columnNameOfCorruptRecord": CORRUPT,
        }
        if set(names) != set(wanted):
            options["columnPruning"] = "false"  # else a short line would not be noticed
        frame = self._reader(recursive, **options).schema(text).load(list(places))
        if set(names) == set(wanted):
            return frame
        return frame.select(*[quoted(name) for name in wanted], CORRUPT)

    def _read_records(
        self,
        paths: Sequence[str],
        files: Sequence[SourceFile] | None,
        known: StructType | None,
        recursive: bool,
    ) -> SourceRows:
        """JSON and XML, where a record may leave out what is null."""
        inferred: StructType | None = None
        found = known
        if found is None and self.config.schema:
            found = self._declared_by_user()
        if found is None or self.config.format == "xml":
            reader = self._reader(recursive, columnNameOfCorruptRecord=CORRUPT)
            inferred = reader.load(list(paths)).schema
        if self.config.format == "xml":
            names = (name for name in inferred or () if name.name != CORRUPT)
            columns = [FileColumns(self.config.path, {one.name: None for one in names},
                                   is_complete=False)]  # fmt: skip
        else:
            columns = list((files and columns_of(files, "json", self.config.options)) or [])
        new = self._agreed(columns, known, files).new if columns else {}
        found = inferred if found is None else found
        assert found is not None
        fields = [
            StructField(field.name, StringType() if self._is_time(field) else field.dataType)
            for field in found
            if field.name != CORRUPT
        ]
        if self.config.schema:
            present = {field.name for field in fields}
            fields += [
                StructField(name, StringType()) for name in sorted(self.time_columns - present)
            ]
        declared = StructType(fields)
        frame = (
            self._reader(recursive, columnNameOfCorruptRecord=CORRUPT)
            .schema(StructType([*fields, _corrupt_field()]))
            .load(list(paths))
        )
        return SourceRows(frame, declared, True, new)

    def _declared_by_user(self) -> StructType:
        if not self.config.schema:
            return StructType()
        try:
            return StructType.fromDDL(self.config.schema)
        except PySparkException as error:
            raise UserError(
                f"source.schema {self.config.schema!r} is not a list of columns with types: "
                f'{_first_line(error)} Write it like "tail_number string, seats int".'
            ) from error

    # -- paths -----------------------------------------------------------------------------------

    def _existing(self, paths: Sequence[str]) -> list[str]:
        """Those of the paths that are there; none is fine, but a missing source is not."""
        if not any(self._is_there(path) for path in {self.config.root, *paths}):
            raise UserError(
                f"There is no source at {self.config.root}. "
                "Correct source.path in the YAML, or make the data first."
            )
        return [path for path in paths if self._is_there(path)]

    def has_any(self, paths: Sequence[str]) -> bool:
        """Whether at least one of them is there."""
        return any(self._is_there(path) for path in paths)

    def _is_there(self, path: str) -> bool:
        local = local_path(path)
        if local is not None or "://" not in path:
            return is_on_disk(local or path)
        try:
            # Asks the file system without reading a row; over Connect only the schema makes it.
            _ = self.spark.read.format("binaryFile").load(path).schema
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                return False
            raise
        return True

    # -- checks ----------------------------------------------------------------------------------

    def _check_columns(self, declared: StructType) -> None:
        names = declared.fieldNames()
        wanted = {self.index.key, *self.time_columns, *self.index.statistics}
        missing = sorted(wanted - set(names))
        if missing:
            raise UserError(
                f"The source {self.config.path} has no column {', '.join(map(repr, missing))}; "
                f"it has {', '.join(names)}. Correct the column names in the YAML, or the source."
            )
        if odd := [name for name in names if any(c in _NOT_IN_NAMES for c in name)]:
            raise UserError(
                f"The source's column {', '.join(map(repr, odd))} has a blank or one of ,;{{}}()= "
                "in its name, which Delta does not store. Rename it in the source."
            )
        if clash := sorted(set(RESERVED) & set(names)):
            raise UserError(
                f"The source's column {', '.join(map(repr, clash))} has a name that Tidetable "
                "keeps for itself. Rename it in the source."
            )
        key_type = declared[self.index.key].dataType
        if isinstance(key_type, (ArrayType, MapType, StructType, VariantType)):
            raise UserError(
                f"The key {self.index.key!r} is of type {key_type.simpleString()}, which has no "
                "order. Choose a column of numbers, text, dates or times as key."
            )
        for name in self.index.statistics:
            kind = declared[name].dataType
            if not has_bounds(kind.typeName()):
                raise UserError(
                    f"statistics names {name!r} of type {kind.simpleString()}, of which Delta "
                    "keeps no bounds. Name columns of numbers, text, dates or times only."
                )


@contextmanager
def reading(but_not: str | None = None) -> Iterator[None]:
    """Around jobs that read rows: a file that Spark cannot read becomes a sentence.

    Not one below `but_not`, a table that the same job reads.
    """
    try:
        yield
    except Exception as error:
        text = str(error)
        file = re.search(r"reading file (\S+?)\.?\s", text)
        if file is None or "FAILED_READ_FILE" not in text:
            raise
        if but_not is not None and but_not in file[1]:
            raise
        if "CSV header" in text:
            found, wanted = (re.search(rf"{name}: (.*)", text) for name in ("Header", "Schema"))
            raise UserError(
                f"The header of {file[1]} is {found[1] if found else 'another'}; the table's "
                f"columns are {wanted[1] if wanted else 'not these'}. Give all files the same "
                "columns in the same order."
            ) from error
        if "PARQUET_COLUMN_DATA_TYPE_MISMATCH" in text:
            column, kind, actual = (
                part[1] if (part := re.search(pattern, text)) else "?"
                for pattern in (r"column \[(.*?)\]", r"Spark type ([^,]+),", r"type ([A-Z0-9_]+)\.")
            )
            raise UserError(
                f"The column {column!r} of the file {file[1]} is stored as {actual}, and is to be "
                f"read as {kind}, as in other files. Write the file with that type. The table "
                "was not changed."
            ) from error
        if "long overflow" in text:
            raise UserError(
                f"The file {file[1]} holds a time in milliseconds that is outside of all years "
                "that Spark knows. Write it again without that row. The table was not changed."
            ) from error
        raise TransientError(
            f"The file {file[1]} of the source cannot be read. If it is still being written, run "
            "this again later; if it is broken, replace it. The table was not changed."
        ) from error


def user_schema(table: StructType) -> StructType:
    """The user's columns of an index's table, as it was made."""
    theirs = columns_of_others(table)
    ours = (field for field in table if field.name not in {*ADDED, EXPIRES_AT})
    return StructType([field for field in ours if field not in theirs])


def columns_of_others(table: StructType | None) -> list[StructField]:
    """Columns that somebody has added to an index's table (ALTER TABLE ADD COLUMN) since.

    A table is made with the cell as its last columns; whoever adds one adds it after them.
    """
    names = [] if table is None else table.fieldNames()
    if table is None or CELL_E not in names:
        return []
    return [field for field in table.fields[names.index(CELL_E) + 1 :] if field.nullable]


def _with_nulls(rows: SourceRows, theirs: Sequence[StructField]) -> SourceRows:
    """With these columns too, which no file is asked for: what they are for we do not know."""
    nothing = (f"CAST(NULL AS {type_sql(field.dataType)}) AS {quoted(field.name)}"
               for field in theirs)  # fmt: skip
    names = {field.name.lower() for field in theirs}
    kept = (quoted(name) for name in rows.frame.columns if name.lower() not in names)
    frame = rows.frame.selectExpr(*kept, *nothing)
    return replace(rows, frame=frame, declared=StructType([*rows.declared, *theirs]))


def _folder(file: SourceFile) -> str:
    return file.path.rpartition("/")[0]


def _why_unasked(files: Sequence[SourceFile] | None) -> str:
    if files is None:
        return "they are not on this machine's disk, or chosen by a pattern or an option"
    return "the format or an option hides them"


def _corrupt_field() -> StructField:
    return StructField(CORRUPT, StringType())


def _types(schema: StructType) -> dict[str, DataType | None]:
    return {field.name: field.dataType for field in schema}


def _places(
    group: Sequence[FileColumns], files: Sequence[SourceFile], columns: Sequence[FileColumns]
) -> list[str]:
    """The files of a group; the first one takes those along that do not tell their columns."""
    told = {one.file for one in columns}
    silent = (
        [file.path for file in files if file.path not in told] if group[0] is columns[0] else []
    )
    return [*(one.file for one in group), *silent]


def _from_nanoseconds(name: str, kind: DataType | None) -> str:
    """A number of nanoseconds as a time, rounded down to microseconds."""
    column = quoted(name)
    micros = f"({column} div 1000 - CASE WHEN {column} % 1000 < 0 THEN 1L ELSE 0L END)"
    time = f"timestamp_micros({micros})"
    if isinstance(kind, TimestampNTZType):
        time = f"CAST({time} AS timestamp_ntz)"  # the session's zone is UTC
    return f"{time} AS {column}"


def _fitted(frame: DataFrame, common: Agreed) -> DataFrame:
    """The columns to read, narrow ones widened; those that folders name stay."""
    schema, wanted = frame.schema, []
    for column in schema:
        name, kind = column.name, column.dataType
        target = common.types.get(name)
        if name in common.new:
            continue
        if target is None or kind.simpleString() == target.simpleString():
            wanted.append(quoted(name))
        elif fits(kind, target):
            wanted.append(f"CAST({quoted(name)} AS {type_sql(target)}) AS {quoted(name)}")
        else:
            raise misfit(name, "the source", kind, "the table has", target)
    is_as_it_is = wanted == [quoted(name) for name in schema.names]
    return frame if is_as_it_is else frame.selectExpr(*wanted)


def _all(parts: Sequence[DataFrame], common: Agreed) -> SourceRows:
    frame = reduce(lambda all_, one: all_.unionByName(one), parts)
    return SourceRows(frame, frame.schema, False, common.new)


def _first_line(error: BaseException) -> str:
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    line = re.sub(r"^\[[A-Z_.0-9]+\] | SQLSTATE: \w+$", "", line)
    return line if line.endswith(".") else line + "."
