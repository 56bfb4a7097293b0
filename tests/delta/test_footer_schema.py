"""The columns of a Parquet source, told by a footer: the same that Spark finds, or none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidetable.delta.footer_schema import footer_schema

pytestmark = pytest.mark.spark


def _written(spark: SparkSession, folder: Path, *columns: str) -> str:
    spark.range(3).selectExpr(*columns).coalesce(1).write.parquet(str(folder))
    return str(folder)


def test_a_footer_tells_what_spark_finds(spark: SparkSession, tmp_path: Path) -> None:
    """Also that a column which was never null may be null in the next file."""
    path = _written(
        spark, tmp_path / "rows",
        "id", "CAST(id AS STRING) AS `with.dot`", "current_timestamp() AS at",
        "CAST(id AS DECIMAL(9, 2)) AS price", "DATE '2024-01-01' AS day", "array(id) AS many",
        "named_struct('a', id, 'b', 'x') AS both", "map('k', id) AS by_name",
        "timestamp_ntz '2024-01-01 00:00:00' AS local", "binary('x') AS bytes",
    )  # fmt: skip
    found = footer_schema([path], {})
    assert found is not None
    expected = spark.read.parquet(path).schema
    assert expected == spark.read.schema(found).parquet(path).schema


def test_of_two_folders_the_first_file_tells(spark: SparkSession, tmp_path: Path) -> None:
    second = _written(spark, tmp_path / "b", "id", "1 AS later")
    first = _written(spark, tmp_path / "a", "id")
    for paths in ([first, second], [second, first]):
        found = footer_schema(paths, {})
        assert found is not None
        assert ["id"] == found.names == spark.read.parquet(*paths).columns


def test_what_is_not_simple_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = _written(spark, tmp_path / "rows", "id")
    assert footer_schema([path], {"mergeSchema": "true"}) is None
    assert footer_schema([f"{tmp_path}/r*"], {}) is None
    assert footer_schema([f"{tmp_path}/missing"], {}) is None
    assert footer_schema(["s3://somewhere/rows"], {}) is None

    parts = tmp_path / "parts"
    spark.range(2).withColumn("part", F.lit(1)).write.partitionBy("part").parquet(str(parts))
    assert footer_schema([str(parts)], {}) is None

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    pq.write_table(pa.table({"id": [1]}), foreign / "rows.parquet")
    assert footer_schema([str(foreign)], {}) is None

    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "rows.parquet").write_bytes(b"PAR1 and no more")
    assert footer_schema([str(broken)], {}) is None

    (Path(path) / "_common_metadata").write_bytes(b"")
    assert footer_schema([path], {}) is None
