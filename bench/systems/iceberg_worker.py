"""Keeps Iceberg tables for the benchmark, as a program in an environment of its own (Spark 4.1).

Reads a request from each line of its input and answers with a line, both in JSON; ends when its
input ends. It knows nothing of the benchmark: what arrives and what expires comes with the request.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
PROBED = ("key", "inserted_at", "expires_at", "payload")
NAME = "bench.live"


class Table:
    """A table in a folder, kept by append, DELETE (merge-on-read) and now and then a rewrite."""

    def __init__(self, spark: SparkSession, catalog: str, folder: str) -> None:
        self.spark = spark
        self.catalog = catalog
        self.folder = Path(folder)
        self.name = f"{catalog}.{NAME}"
        setting = f"spark.sql.catalog.{catalog}"
        spark.conf.set(setting, "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set(f"{setting}.type", "hadoop")
        spark.conf.set(f"{setting}.warehouse", folder)

    def load(self, rows: str, schema: str, files: int, properties: dict[str, str]) -> None:
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.spark.sql(
            f"CREATE TABLE {self.name} ({schema}) USING iceberg TBLPROPERTIES ({listed})"
        )
        history = self.spark.read.schema(f"{schema}, slot INT").parquet(rows).where("slot <= 0")
        # A file for each slot, as appends would have left them.
        history.repartitionByRange(files, "slot").drop("slot").writeTo(self.name).append()
        self.spark.sql(f"ALTER TABLE {self.name} WRITE ORDERED BY key")
        self._rewrite()

    def update(self, rows: str, schema: str, now: str, rewrite: bool) -> None:
        self.spark.read.schema(schema).parquet(rows).writeTo(self.name).append()
        self.spark.sql(f"DELETE FROM {self.name} WHERE expires_at <= {now}")
        if rewrite:
            self._rewrite()

    def _rewrite(self) -> None:
        self.spark.sql(
            f"CALL {self.catalog}.system.rewrite_data_files(table => '{NAME}', strategy => 'sort', "
            "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))"
        )

    # -- what there is ---------------------------------------------------------------------------

    def standing(self) -> list[int]:
        """Files, their bytes, and the bytes of all files that were ever added."""
        files, size = self._row(f"SELECT count(*), sum(file_size_in_bytes) FROM {self.name}.files")
        (written,) = self._row(
            f"SELECT sum(CAST(summary['added-files-size'] AS BIGINT)) FROM {self.name}.snapshots"
        )
        return [files, size, written]

    def found(self, alive: str) -> list[int]:
        return self._row(
            f"SELECT count(*), count_if({alive}), coalesce(sum(if({alive}, key, 0)), 0) "
            f"FROM {self.name}"
        )

    def _row(self, sql: str) -> list[int]:
        row = self.spark.sql(sql).first()
        assert row is not None
        return [int(value or 0) for value in row]

    # -- reading ---------------------------------------------------------------------------------

    def probe(self, key: int) -> int:
        return int(self._scanned(EqualTo("key", key), PROBED).num_rows)

    def scan(self) -> int:
        lengths = pc.utf8_length(self._scanned(AlwaysTrue(), ("payload",)).column("payload"))
        return int(pc.sum(lengths).as_py() or 0)

    def _scanned(self, where: BooleanExpression, columns: tuple[str, ...]) -> Any:
        """Opens the table anew each time, as a reader that comes along does."""
        metadata = self.folder.joinpath(*NAME.split("."), "metadata")
        newest = (metadata / "version-hint.text").read_text().strip()
        table = StaticTable.from_metadata(str(metadata / f"v{newest}.metadata.json"))
        return table.scan(row_filter=where, selected_fields=columns).to_arrow()

    def probe_spark(self, key: int) -> int:
        found = self.spark.table(self.name).where(f"key = {key}").select(*PROBED)
        return int(found.toArrow().num_rows)

    def scan_spark(self) -> int:
        return self._row(f"SELECT sum(length(payload)) FROM {self.name}")[0]


def session(settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName("tidetable bench: Iceberg")
    own = {"spark.jars.packages": RUNTIME, "spark.sql.extensions": EXTENSIONS}
    for name, value in {**settings, **own}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    # The JVM has our standard output too, and may say something there: answers go elsewhere.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    spark = session(json.loads(sys.argv[1]))
    spark.sparkContext.setLogLevel("ERROR")
    tables: dict[str, Table] = {}
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        do, folder = request.pop("do"), request.pop("folder")
        try:
            if folder not in tables:
                tables[folder] = Table(spark, f"c{len(tables)}", folder)
            answer = {"found": getattr(tables[folder], do)(**request)}
        except Exception as error:
            answer = {"error": (str(error).strip().splitlines() or [repr(error)])[0]}
        print(json.dumps(answer), file=answers)
    spark.stop()


if __name__ == "__main__":
    main()
