"""Apache Iceberg, merge-on-read: append, DELETE, and every few updates a rewrite sorted by key.

Its newest runtime is for another Spark than ours, so it has an environment and a JVM of its own
(extra.py makes the one, iceberg_worker.py runs in the other). The JVM stays from table to table.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data import SCHEMA, Rows
from bench.extra import ICEBERG
from bench.systems.base import Found, Standing, System
from bench.systems.optimize import OPTIMIZED_FILE_MB
from bench.workload import end_of, sql_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT = Path(__file__).resolve().parents[2]
_WORKER = Path(__file__).with_name("iceberg_worker.py")
_SAME = (
    "spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.ui.enabled",
    "spark.driver.memory",
)  # fmt: skip
"""Settings that its session takes over from ours."""

PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.target-file-size-bytes": str(OPTIMIZED_FILE_MB * 1024**2),
    # As all others here.
    "write.parquet.compression-codec": "snappy",
    "write.parquet.row-group-size-bytes": str(16 * 1024**2),
}


class Iceberg(System):
    """A table that is kept by Spark 4.1 and read without a JVM by PyIceberg."""

    reads_here = False

    def __init__(self, spark: SparkSession, rows: Rows, folder: Path, rewrite_every: int) -> None:
        super().__init__(spark, rows, folder)
        self.rewrite_every = rewrite_every

    def load(self) -> None:
        self._ask(
            "load",
            rows=str(self.rows.folder),
            schema=SCHEMA,
            files=self.workload.period,
            properties=PROPERTIES,
        )

    def update(self, slot: int) -> None:
        self._ask(
            "update",
            rows=str(self.rows.slot_folder(slot)),
            schema=SCHEMA,
            now=sql_time(end_of(slot)),
            rewrite=slot % self.rewrite_every == 0,
        )

    def standing(self) -> Standing:
        return Standing(*self._ask("standing"))

    def found(self, slot: int) -> Found:
        return Found(*self._ask("found", alive=f"expires_at > {sql_time(end_of(slot))}"))

    def probe(self, key: int) -> int:
        return int(self._ask("probe", key=key))

    def scan(self) -> int:
        return int(self._ask("scan"))

    def probe_spark(self, key: int) -> bool:
        self._ask("probe_spark", key=key)
        return True

    def scan_spark(self) -> bool:
        self._ask("scan_spark")
        return True

    @cached_property
    def _program(self) -> Worker:
        return _worker(tuple((name, str(self.spark.conf.get(name))) for name in _SAME))

    def _ask(self, do: str, **request: object) -> Any:
        return self._program.ask(do=do, folder=str(self.folder), **request)


class Worker:
    """The program in its own environment."""

    def __init__(self, settings: dict[str, str]) -> None:
        home = _ROOT / ICEBERG
        cores = os.environ.get("TIDETABLE_SPARK_MASTER", "local[*]")
        own = {
            "spark.master": cores,
            "spark.jars.ivy": str(home / "ivy"),
            "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Duser.timezone=UTC",
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.ui.showConsoleProgress": "false",
        }
        # Spark's home and Python of this environment must not reach the other one.
        ours = ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH")
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        self._log = home / "worker.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(home / "bin" / "python"), str(_WORKER), json.dumps({**settings, **own})],
                env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def ask(self, **request: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program ended: {self._log.read_text()[-500:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["found"]

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()


@cache
def _worker(settings: tuple[tuple[str, str], ...]) -> Worker:
    worker = Worker(dict(settings))
    atexit.register(worker.close)
    return worker
