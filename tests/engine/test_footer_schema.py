"""The columns that each file of a source tells, without Spark: the same that Spark would find."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from tests.workspace import EVERY, START
from tidetable.engine.footer_schema import FileColumns, columns_of
from tidetable.engine.source_files import changed_since, source_files


def told(folder: Path, kind: str, **options: str) -> list[FileColumns]:
    files = source_files([str(folder)], options)
    assert files is not None
    found = columns_of(files, kind, options)
    assert found is not None
    return found


def text_file(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.spark
def test_a_footer_tells_what_spark_finds(spark: SparkSession, tmp_path: Path) -> None:
    """Written by Spark, and by pyarrow."""
    ours, foreign = tmp_path / "rows", tmp_path / "foreign"
    spark.range(3).selectExpr(
        "id", "CAST(id AS STRING) AS `with.dot`", "current_timestamp() AS at",
        "CAST(id AS DECIMAL(9, 2)) AS price", "DATE '2024-01-01' AS day", "array(id) AS many",
        "named_struct('a', id, 'b', 'x') AS both", "map('k', id) AS by_name",
        "timestamp_ntz '2024-01-01 00:00:00' AS local", "binary('x') AS bytes",
    ).coalesce(1).write.parquet(str(ours))  # fmt: skip
    foreign.mkdir()
    types = [pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
             pa.uint32(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.binary(),
             pa.date32(), pa.decimal128(12, 3), pa.timestamp("us", "UTC"), pa.timestamp("ms"),
             pa.list_(pa.int32()), pa.struct([("a", pa.int8())])]  # fmt: skip
    table = pa.table({f"c{n}": pa.nulls(1, kind) for n, kind in enumerate(types)})
    pq.write_table(table, foreign / "rows.parquet")
    for folder in (ours, foreign):
        (found,) = told(folder, "parquet")
        expected = spark.read.parquet(str(folder)).schema
        assert list(found.types) == expected.names
        for field in expected:
            kind = found.types[field.name]
            assert kind is not None
            assert kind.simpleString() == field.dataType.simpleString()
        if found.as_spark is not None:
            assert spark.read.schema(found.as_spark).parquet(str(folder)).schema == expected


def test_files_are_found_as_spark_finds_them(tmp_path: Path) -> None:
    for name in ("a.csv", "_hidden", ".hidden", "sub/b.csv", "day=1/c.csv", "_day=2/d.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")

    def names(path: Path | str, *, recursive: bool = False) -> list[str]:
        files = source_files([str(path)], {}, recursive=recursive) or []
        return [str(Path(file.path).relative_to(tmp_path)) for file in files]

    assert names(tmp_path) == ["_day=2/d.csv", "a.csv", "day=1/c.csv"]
    assert names(tmp_path, recursive=True) == [*names(tmp_path), "sub/b.csv"]
    assert names(f"file://{tmp_path}/*.csv") == ["a.csv"]
    assert names(f"{tmp_path}/{{sub,day=1}}") == ["day=1/c.csv", "sub/b.csv"]
    assert names(tmp_path / "nowhere") == []
    assert source_files(["s3a://bucket/rows"], {}) is None
    assert source_files(["s3a://bucket/rows"], {}, beside=str(tmp_path)) is None
    assert source_files([str(tmp_path)], {"basePath": str(tmp_path)}) is None
    assert source_files([str(tmp_path)], {"modifiedAfter": "yesterday"}) is None
    assert source_files([str(tmp_path)], {"modifiedBefore": "2024-03-01"}) is None
    in_paris = {"modifiedAfter": "2024-03-01T01:10:00", "timeZone": "Europe/Paris"}
    assert source_files([str(tmp_path)], in_paris) is None
    assert source_files([str(tmp_path)], {"pathGlobFilter": "*.{csv"}) is None
    (only,) = source_files([str(tmp_path / "day=1")], {}) or []
    assert only.partitions == ()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"pathGlobFilter": "*.{csv,txt}"}, "ac"),
        ({"pathglobfilter": "[^a].*"}, "bc"),
        ({"pathGlobFilter": "?"}, ""),
        ({"modifiedBefore": "2024-03-01T00:10:00"}, "a"),
        ({"modifiedAfter": "2024-03-01T00:10:00"}, "c"),
        ({"modifiedAfter": "2024-03-01T00:09:59", "pathGlobFilter": "*.csv"}, ""),
        ({"pathGlobFilter": r"a\*.csv"}, ""),
    ],
)
def test_files_are_chosen_as_spark_chooses_them(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], names: str
) -> None:
    for number, name in enumerate(("a.csv", "b.json", "c.txt")):
        changed = (START + number * EVERY).timestamp()
        os.utime(text_file(tmp_path / name, "x"), (changed, changed))
    found = source_files([str(tmp_path)], options)
    assert found is not None
    assert "".join(Path(one.path).name[0] for one in found) == names
    read = spark.read.options(**options).text(str(tmp_path)).inputFiles()
    assert sorted(Path(one).name for one in read) == [Path(one.path).name for one in found]


def avro_header(schema: Any) -> bytes:
    """The beginning of an Avro file; rows would come after it."""

    def number(value: int) -> bytes:
        value, said = (value << 1) ^ (value >> 63), b""
        while value > 0x7F:
            said, value = said + bytes([value & 0x7F | 0x80]), value >> 7
        return said + bytes([value])

    def text(value: bytes) -> bytes:
        return number(len(value)) + value

    pairs = {b"avro.codec": b"null", b"avro.schema": json.dumps(schema).encode()}
    first, second = (text(name) + text(said) for name, said in pairs.items())
    # One block that says how long it is, and one that does not.
    blocks = number(-1) + number(len(first)) + first + number(1) + second + number(0)
    return b"Obj\x01" + blocks + bytes(16)


def test_the_first_bytes_of_avro(tmp_path: Path) -> None:
    at = {"type": "long", "logicalType": "timestamp-micros"}
    fields = {
        "id": "long", "key": ["null", "string"], "at": ["null", at], "day": {"type": "int",
        "logicalType": "date"}, "price": {"type": "bytes", "logicalType": "decimal",
        "precision": 9, "scale": 2}, "many": {"type": "array", "items": "int"},
        "either": ["string", "int"], "odd": {"type": "long", "logicalType": "nobody knows"},
        "within": {"type": "record", "name": "w", "fields": []},
    }  # fmt: skip
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    schema = {"type": "record", "name": "row", "fields": listed}
    text_file(tmp_path / "a.avro", avro_header(schema))
    text_file(tmp_path / "b.avro", avro_header(schema)[:40])
    text_file(tmp_path / "c.avro", b"no such thing")
    (found,) = told(tmp_path, "avro")
    assert found.types == {
        "id": T.LongType(), "key": T.StringType(), "at": T.TimestampType(), "day": T.DateType(),
        "price": T.DecimalType(9, 2), "many": T.ArrayType(T.IntegerType()), "either": None,
        "odd": T.LongType(), "within": None,
    }  # fmt: skip
    assert found.is_complete


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    """By as many bytes at the same path, too."""
    for name in "abc":
        (tmp_path / name).write_text("12345")
    files = source_files([str(tmp_path)], {}) or []
    assert changed_since(files) == []
    (tmp_path / "new").write_text("54321")
    (tmp_path / "new").rename(tmp_path / "a")
    (tmp_path / "c").unlink()
    assert changed_since(files) == [str(tmp_path / "a"), str(tmp_path / "c")]


def test_parquet_with_nanoseconds_and_broken_ones(tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": pa.nulls(1, pa.timestamp("ns"))}), tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"at": pa.nulls(1, pa.timestamp("ns"))}),
        tmp_path / "b.parquet", use_deprecated_int96_timestamps=True,
    )  # fmt: skip
    text_file(tmp_path / "c.parquet", "PAR1 and no more")
    text_file(tmp_path / "d.parquet", "")
    new, old = told(tmp_path, "parquet")
    assert (new.nanoseconds, old.nanoseconds) == ({"at"}, set())
    assert old.types == {"at": T.TimestampType()}


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        ("a,b\n1,2\n", {}, ["a", "b"]),
        ("\ufeffa,b\r\n1,2\r\n", {}, ["a", "b"]),
        ("\n\n a , b\n", {}, ["a", "b"]),
        ('"a,b";c\n', {"sep": ";"}, ["a,b", "c"]),
        ("# on a day\na,b\n", {"comment": "#"}, ["a", "b"]),
        ("a,,b\n", {}, ["a", "_c1", "b"]),
        ("é,b\n".encode("latin-1"), {"encoding": "latin-1"}, ["é", "b"]),
    ],
)
def test_the_first_line_of_csv(
    tmp_path: Path, text: str | bytes, options: dict[str, str], names: list[str]
) -> None:
    text_file(tmp_path / "a.csv", text)
    assert [list(one.types) for one in told(tmp_path, "csv", **options)] == [names]


def test_csv_that_tells_nothing(tmp_path: Path) -> None:
    text_file(tmp_path / "empty.csv", "")
    text_file(tmp_path / "a.csv.gz", gzip.compress(b"a,b\n1,2\n"))
    text_file(tmp_path / "b.csv.zst", b"(\xb5/\xfd")
    assert [list(one.types) for one in told(tmp_path, "csv")] == [["a", "b"]]
    files = source_files([str(tmp_path)], {}) or []
    assert columns_of(files, "csv", {"header": "false"}) is None
    assert columns_of(files, "avro", {"avroSchema": "{}"}) is None


def test_the_first_records_of_json(tmp_path: Path) -> None:
    text_file(tmp_path / "a.json", '{"a": 1}\n{"b": 2}\nno json\n[{"c": 1}, 5]\n')
    (found,) = told(tmp_path, "json")
    assert list(found.types) == ["a", "b", "c"]
    assert not found.is_complete
