"""The user's source as Spark reads it: only the paths of the slots asked for, with a known schema.

Formats that carry their types (Parquet, Delta, ORC, Avro, ...) are taken as they are. CSV and JSON
do not: CSV columns are text unless `source.schema` says otherwise, JSON is inferred once, when the
table is made; from then on the table's own columns are the schema, so no batch costs an inference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, reduce
from pathlib import Path

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from tidetable.core.config import Index
from tidetable.core.errors import TransientError, UserError
from tidetable.delta.columns import ADDED, EXPIRES_AT, RESERVED
from tidetable.delta.footer_schema import footer_schema

CORRUPT = "_corrupt_record"
_NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")
_TEXT_FORMATS = frozenset({"csv", "json"})


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


class Source:
    """Reads the source of one index."""

    def __init__(self, spark: SparkSession, index: Index) -> None:
        self.spark = spark
        self.index = index
        self.config = index.source

    @property
    def _is_text(self) -> bool:
        return self.config.format in _TEXT_FORMATS

    @cached_property
    def time_columns(self) -> frozenset[str]:
        names = {self.config.arrived_at, self.index.inserted_at, self.index.expires_at}
        return frozenset(name for name in names if name is not None)

    def rows(self, after: datetime, until: datetime, table: StructType | None) -> SourceRows:
        """Rows of the paths that can hold arrivals in (after, until]; more may be among them.

        `table` is the schema of the index's table, once there is one.
        """
        paths = self._existing(self.config.paths_for(after, until))
        known = None if table is None else user_schema(table)
        if not paths and known is None:
            # Nothing has arrived yet, but the table needs its columns: any file will do.
            found = self._read([self.config.root], None, recursive=True)
            return SourceRows(found.frame.limit(0), found.declared, found.has_corrupt)
        if not paths:
            assert known is not None
            return self._empty(known)
        return self._read(paths, known)

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
                f"cast(null as {field.dataType.simpleString()}) as `{field.name}`"
                for field in declared
            ]
        )
        return SourceRows(frame, declared, has_corrupt=False)

    def _is_time(self, field: StructField) -> bool:
        return field.name in self.time_columns

    # -- reading ---------------------------------------------------------------------------------

    def _read(
        self, paths: Sequence[str], known: StructType | None, *, recursive: bool = False
    ) -> SourceRows:
        read = {"csv": self._read_csv, "json": self._read_json}.get(self.config.format)
        try:
            with reading():
                if read is None:
                    rows = self._read_typed(paths, recursive)
                else:
                    rows = read(paths, known, recursive)
        except AnalysisException as error:
            raise UserError(
                f"The source {self.config.path} cannot be read as {self.config.format}: "
                f"{_first_line(error)} Correct source.path, source.format or source.schema."
            ) from error
        self._check_columns(rows.declared, known)
        return rows

    def _reader(self, recursive: bool, **extra: str):  # type: ignore[no-untyped-def]
        options = {**extra, **self.config.options}
        if recursive:
            options["recursiveFileLookup"] = "true"
        return self.spark.read.format(self.config.format).options(**options)

    def _read_typed(self, paths: Sequence[str], recursive: bool) -> SourceRows:
        if self.config.format == "delta":  # takes one path at a time
            frames = [self._reader(False).load(path) for path in paths]
            frame = reduce(lambda all_, one: all_.unionByName(one), frames)
        else:
            reader = self._reader(recursive)
            if self.config.format == "parquet" and not recursive and not self._merges_schemas:
                found = footer_schema(paths, self.config.options)
                reader = reader if found is None else reader.schema(found)
            frame = reader.load(list(paths))
        return SourceRows(frame, frame.schema, has_corrupt=False)

    @cached_property
    def _merges_schemas(self) -> bool:
        """Whether this session asks all files for their columns, where an option does not say."""
        return str(self.spark.conf.get("spark.sql.parquet.mergeSchema")).lower() == "true"

    def _read_csv(
        self, paths: Sequence[str], known: StructType | None, recursive: bool
    ) -> SourceRows:
        if known is None:
            names = self._reader(recursive, header="true").load(list(paths)).columns
        else:
            names = known.fieldNames()
        text = StructType(
            [*(StructField(name, StringType()) for name in names), _corrupt_field()],
        )
        # enforceSchema=false: a file whose header differs is an error, not columns by position.
        frame = (
            self._reader(
                recursive, header="true", enforceSchema="false", columnNameOfCorruptRecord=CORRUPT
            )
            .schema(text)
            .load(list(paths))
        )
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
        return SourceRows(frame, declared, has_corrupt=True)

    def _read_json(
        self, paths: Sequence[str], known: StructType | None, recursive: bool
    ) -> SourceRows:
        found = known
        if found is None and self.config.schema:
            found = self._declared_by_user()
        if found is None:
            inferred = self._reader(recursive, columnNameOfCorruptRecord=CORRUPT).load(list(paths))
            found = inferred.schema
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
        return SourceRows(frame, declared, has_corrupt=True)

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

    def _is_there(self, path: str) -> bool:
        local = path.removeprefix("file://")
        if "://" not in local:
            return any(_is_on_disk(alternative) for alternative in _alternatives(local))
        try:
            # Asks the file system without reading a row; over Connect only the schema makes it.
            _ = self.spark.read.format("binaryFile").load(path).schema
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                return False
            raise
        return True

    # -- checks ----------------------------------------------------------------------------------

    def _check_columns(self, declared: StructType, known: StructType | None) -> None:
        names = declared.fieldNames()
        wanted = {self.index.key: "key", **dict.fromkeys(self.time_columns, "time")}
        missing = sorted(set(wanted) - set(names))
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
        if clash := sorted(RESERVED & set(names)):
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
        if known is None:
            return
        for field in known:
            if field.name not in names:
                raise UserError(
                    f"The source {self.config.path} no longer has the column {field.name!r} that "
                    f"the table {self.index.table} has. Put it back, or make a new index."
                )
            now = declared[field.name].dataType
            if not self._is_time(field) and now != field.dataType:
                raise UserError(
                    f"The source's column {field.name!r} is now of type {now.simpleString()}; the "
                    f"table {self.index.table} has {field.dataType.simpleString()}. "
                    "Put the type back, or make a new index."
                )


@contextmanager
def reading() -> Iterator[None]:
    """Around the first job that reads rows: a file that Spark cannot read becomes a sentence."""
    try:
        yield
    except Exception as error:
        text = str(error)
        file = re.search(r"reading file (\S+?)\.?\s", text)
        if file is None or "FAILED_READ_FILE" not in text:
            raise
        if "CSV header" in text:
            found, wanted = (re.search(rf"{name}: (.*)", text) for name in ("Header", "Schema"))
            raise UserError(
                f"The header of {file[1]} is {found[1] if found else 'another'}; the table's "
                f"columns are {wanted[1] if wanted else 'not these'}. Give all files the same "
                "columns in the same order."
            ) from error
        raise TransientError(
            f"The file {file[1]} of the source cannot be read. If it is still being written, run "
            "this again later; if it is broken, replace it. The table was not changed."
        ) from error


def user_schema(table: StructType) -> StructType:
    """The user's columns of an index's table."""
    return StructType([field for field in table if field.name not in {*ADDED, EXPIRES_AT}])


def _corrupt_field() -> StructField:
    return StructField(CORRUPT, StringType())


def _alternatives(path: str) -> list[str]:
    """`data/{a,b}` -> `data/a`, `data/b`: Python's globs know no braces, Spark's do."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if braces is None:
        return [path]
    before, after = path[: braces.start()], path[braces.end() :]
    return [
        whole
        for alternative in braces[1].split(",")
        for whole in _alternatives(before + alternative + after)
    ]


def _is_on_disk(path: str) -> bool:
    parts = Path(path).parts
    globs = (i for i, part in enumerate(parts) if any(character in part for character in "*?["))
    first = next(globs, None)
    if first is None:
        return Path(path).exists()
    return any(Path(*parts[:first]).glob(str(Path(*parts[first:]))))


def _first_line(error: BaseException) -> str:
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return line if line.endswith(".") else line + "."
