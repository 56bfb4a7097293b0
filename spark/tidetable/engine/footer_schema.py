"""Which columns a file says it has, without the job that it takes Spark to find out.

Spark looks at one file of a batch, whichever comes first, in a job of its own: 30 to 40 ms, a tenth
of an update with few rows. All other files are taken to be alike, and where they are not, columns
turn to NULL or vanish. Here every file is asked. Parquet and ORC tell in their footers, Avro in its
first bytes, CSV in its first line, JSON in its first records.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T

from tidetable.engine.source_files import SourceFile, local_path
from tidetable.table.storage import storage

READERS = 8
RECORDS = 100
"""So many records of a JSON file are asked for their fields."""

LINE_MAX = 1_000_000
_AS_SPARK_HAS_IT = b"org.apache.spark.sql.parquet.row.metadata"
_CSV_UNUSUAL = {"linesep"}
_AVRO_UNUSUAL = {"avroschema", "positionalfieldmatching"}
_JSON_UNUSUAL = {"multiline", "linesep", "allowcomments", "allowsinglequotes", "encoding"}
_OTHER_CODECS = {".zst", ".lz4", ".snappy", ".deflate", ".xz"}


@dataclass(frozen=True)
class FileColumns:
    """The columns of one file, as Spark would name their types."""

    file: str
    types: Mapping[str, T.DataType | None]
    """None where only Spark can tell the type."""

    as_spark: T.StructType | None = None
    """The columns as Spark wrote them down in the file, if Spark wrote it."""

    nanoseconds: frozenset[str] = frozenset()
    """Columns of times with nanoseconds, which Spark reads as numbers only."""

    header: tuple[str, ...] = ()
    """The first line of a CSV file, field by field, as it stands there."""

    is_complete: bool = True
    """Whether the file has no other columns than these, and every row has all of them."""


def columns_of(
    files: Sequence[SourceFile], kind: str, options: Mapping[str, str]
) -> list[FileColumns] | None:
    """The columns of each file that has some; None if the format, or an option, hides them."""
    told = {name.lower(): value for name, value in options.items()}
    read: Callable[[SourceFile], FileColumns | None]
    if kind == "parquet":
        read = _parquet
    elif kind == "orc":
        read = _orc
    elif kind == "avro" and not told.keys() & _AVRO_UNUSUAL:
        read = _avro
    elif kind == "csv" and _has_plain_header(told):
        dialect = (
            told.get("sep", told.get("delimiter", ",")),
            told.get("quote", '"'),
            told.get("encoding", told.get("charset", "utf-8")),
            told.get("comment", ""),
        )
        read = lambda file: _csv(file, *dialect)  # noqa: E731
    elif kind == "json" and not told.keys() & _JSON_UNUSUAL:
        read = _json
    else:
        return None
    if len(files) == 1:
        found = [read(files[0])]
    else:
        with ThreadPoolExecutor(READERS) as pool:
            found = list(pool.map(read, files))
    return [columns for columns in found if columns is not None]


# -- footers --------------------------------------------------------------------------------------


@lru_cache(maxsize=20_000)
def _parquet(file: SourceFile) -> FileColumns | None:
    try:
        with _opened(file.path, packed=False) as stored:
            footer = pq.read_metadata(stored)
        schema = footer.schema
        arrow = schema.to_arrow_schema()
    except (OSError, pa.ArrowException):
        return None  # Spark says better what is wrong with it
    text = (footer.metadata or {}).get(_AS_SPARK_HAS_IT)
    if text is not None:
        written = T.StructType.fromJson(json.loads(text))
        return FileColumns(file.path, {f.name: f.dataType for f in written}, written)
    old = {schema.column(i).path for i in range(len(schema))
           if schema.column(i).physical_type == "INT96"}  # fmt: skip
    nanoseconds = {f.name for f in arrow if _is_nanos(f.type) and f.name not in old}
    return FileColumns(
        file.path,
        {f.name: T.TimestampType() if f.name in old else _spark_type(f.type) for f in arrow},
        nanoseconds=frozenset(nanoseconds),
    )


@lru_cache(maxsize=20_000)
def _orc(file: SourceFile) -> FileColumns | None:
    from pyarrow import orc

    try:
        with _opened(file.path, packed=False) as stored:
            schema = orc.ORCFile(stored).schema
    except (OSError, pa.ArrowException):
        return None
    # Of its two kinds of times Spark has a view of its own.
    types = {f.name: None if pa.types.is_timestamp(f.type) else _spark_type(f.type) for f in schema}
    return FileColumns(file.path, types)


def _is_nanos(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit == "ns"


_SIMPLE: Mapping[pa.DataType, T.DataType] = {
    pa.bool_(): T.BooleanType(), pa.int8(): T.ByteType(), pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(), pa.int64(): T.LongType(), pa.uint8(): T.ShortType(),
    pa.uint16(): T.IntegerType(), pa.uint32(): T.LongType(), pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(), pa.string(): T.StringType(), pa.large_string(): T.StringType(),
    pa.binary(): T.BinaryType(), pa.large_binary(): T.BinaryType(), pa.date32(): T.DateType(),
}  # fmt: skip


def _spark_type(kind: pa.DataType) -> T.DataType | None:
    """The type as Spark has it; None for what is rare."""
    if pa.types.is_timestamp(kind):
        return T.TimestampNTZType() if kind.tz is None else T.TimestampType()
    if pa.types.is_decimal(kind):
        return T.DecimalType(kind.precision, kind.scale) if kind.precision <= 38 else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _spark_type(kind.value_type)
        return None if inner is None else T.ArrayType(inner)
    if pa.types.is_struct(kind):
        fields = [(field.name, _spark_type(field.type)) for field in kind]
        known = [T.StructField(name, inner) for name, inner in fields if inner is not None]
        return T.StructType(known) if len(known) == len(fields) else None
    return _SIMPLE.get(kind)


@lru_cache(maxsize=20_000)
def _avro(file: SourceFile) -> FileColumns | None:
    """By the schema that the writer has put before the rows."""
    try:
        with _opened(file.path, packed=False) as stored:
            schema = json.loads(_avro_header(stored)["avro.schema"])
        fields = {one["name"]: _avro_type(one["type"]) for one in schema["fields"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None  # Spark says better what is wrong with it
    return FileColumns(file.path, fields)


def _avro_header(file: Any) -> dict[str, bytes]:
    """What a file says of itself: pairs in blocks, each with its number before it, 0 at the end."""
    if file.read(4) != b"Obj\x01":
        raise ValueError("not Avro")
    said = {}
    while pairs := _avro_number(file):
        if pairs < 0:
            _avro_number(file)  # how many bytes it takes to skip them
        for _ in range(abs(pairs)):
            name = file.read(_avro_number(file)).decode()
            said[name] = file.read(_avro_number(file))
    return said


def _avro_number(file: Any) -> int:
    value, shift, more = 0, 0, True
    while more:
        if not (byte := file.read(1)):
            raise ValueError("cut short")
        value |= (byte[0] & 0x7F) << shift
        shift, more = shift + 7, byte[0] >= 0x80
    return (value >> 1) ^ -(value & 1)


_OF_AVRO: Mapping[str, T.DataType] = {
    "boolean": T.BooleanType(), "int": T.IntegerType(), "long": T.LongType(),
    "float": T.FloatType(), "double": T.DoubleType(), "bytes": T.BinaryType(),
    "string": T.StringType(), "fixed": T.BinaryType(), "enum": T.StringType(),
    "date": T.DateType(), "timestamp-millis": T.TimestampType(),
    "timestamp-micros": T.TimestampType(), "local-timestamp-millis": T.TimestampNTZType(),
    "local-timestamp-micros": T.TimestampNTZType(),
}  # fmt: skip


def _avro_type(kind: Any) -> T.DataType | None:
    """The type as Spark has it; None for what is rare, or is named elsewhere."""
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return _avro_type(others[0]) if len(others) == 1 else None
    if isinstance(kind, str):
        return _OF_AVRO.get(kind)
    if "spark.sql.catalyst.type" in kind:
        return None
    if kind.get("logicalType") == "decimal":
        return T.DecimalType(kind["precision"], kind.get("scale", 0))
    if kind["type"] == "array":
        inner = _avro_type(kind["items"])
        return None if inner is None else T.ArrayType(inner)
    return _OF_AVRO.get(kind.get("logicalType", ""), _OF_AVRO.get(kind["type"]))


def _has_plain_header(told: Mapping[str, str]) -> bool:
    return told.get("header", "true").lower() == "true" and not told.keys() & _CSV_UNUSUAL


# -- text -----------------------------------------------------------------------------------------


@contextmanager
def _opened(path: str, *, packed: bool = True) -> Iterator[Any]:
    """The bytes of a file, unpacked if its name says so and it may be `packed`."""
    suffix = Path(path).suffix if packed else ""
    with _bytes_of(path) as file:
        if suffix == ".gz":
            with gzip.open(file) as unpacked:
                yield unpacked
        elif suffix == ".bz2":
            with bz2.open(file) as unpacked:
                yield unpacked
        else:
            yield file


def _bytes_of(path: str) -> Any:
    if (local := local_path(path)) is not None:
        return Path(local).open("rb")
    folder, _, name = path.rpartition("/")
    return io.BufferedReader(storage(folder).open_input_file(name))


@lru_cache(maxsize=20_000)
def _csv(file: SourceFile, sep: str, quote: str, encoding: str, comment: str) -> FileColumns | None:
    if Path(file.path).suffix in _OTHER_CODECS or len(sep) != 1 or len(quote) != 1:
        return None
    try:
        with _opened(file.path) as lines:
            first = next((line for line in _lines(lines) if _is_header(line, comment)), b"")
            text = first.removeprefix(codecs.BOM_UTF8).decode(encoding)
        header = next(csv.reader([text.rstrip("\r\n")], delimiter=sep, quotechar=quote), [])
    except (OSError, UnicodeError, LookupError, csv.Error, EOFError):
        return None
    if not header:
        return None  # an empty file has no rows either
    names = [name.strip() or f"_c{place}" for place, name in enumerate(header)]
    types = dict.fromkeys(names, T.StringType())
    return FileColumns(file.path, types, header=tuple(header))


def _is_header(line: bytes, comment: str) -> bool:
    line = line.removeprefix(codecs.BOM_UTF8)
    return bool(line.strip()) and not (comment and line.startswith(comment.encode()))


def _lines(file: Any) -> Iterator[bytes]:
    while line := file.readline(LINE_MAX):
        yield line


@lru_cache(maxsize=20_000)
def _json(file: SourceFile) -> FileColumns | None:
    if Path(file.path).suffix in _OTHER_CODECS:
        return None
    names: dict[str, T.DataType | None] = {}
    try:
        with _opened(file.path) as lines:
            for line in islice(_lines(lines), RECORDS):
                for record in _records(line):
                    names.update(dict.fromkeys(record))
    except (OSError, EOFError):
        return None
    # A field that a record leaves out is null: so it is in JSON.
    return FileColumns(file.path, names, is_complete=False)


def _records(line: bytes) -> list[Mapping[str, object]]:
    try:
        found = json.loads(line.removeprefix(codecs.BOM_UTF8))
    except (ValueError, RecursionError):
        return []
    return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]
