"""The small tables of a calibration, the rows that they are made of, and a place for both."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from pydantic import TypeAdapter
from pyspark.sql import DataFrame, SparkSession

from tidetable.config import Index
from tidetable.core.errors import UserError
from tidetable.engine.updater import Updater
from tidetable.table.read import batches, sorted_rows, view
from tidetable.table.restriction import Restriction

FEW, LARGE, STANDING = "few", "large", "standing"
"""The sources: a few rows in every slot; many in two slots of a round; many before the start."""

FEW_ROWS = 100
WIDE_ROWS, WIDE_BYTES = 40_000, 1_000
NARROW_ROWS = 400_000
LIFETIMES = 16
PERIOD = 24
PROBES, SCANS = 16, 4
PROBED = 500
"""A key that is in every file of every table, so that a probe opens all of them."""

ROUND_SLOTS = 6
WIDE_NEW, NARROW_NEW, NARROW_AGAIN = 0, 3, 4
"""Places in a round. Many rows come, are written again in the next slot, and then are gone."""

_START = "TIMESTAMP'2024-01-01 00:00:00Z'"
_HOUR = "\"yyyy-MM-dd'T'HH\""
_NOTHING = "''"
_INDEX = TypeAdapter(Index)


@dataclass(frozen=True)
class ReadTimes:
    """A table as it stands, and how long it takes to read it."""

    rows: int
    bytes: int
    files: int
    marked: int
    """Files with a deletion vector."""

    probe_s: float
    scan_s: float


class Trial:
    """One table of the calibration."""

    def __init__(
        self, spark: SparkSession, folder: str, name: str, source: str, scheme: Mapping[str, Any]
    ) -> None:
        self.index: Index = _INDEX.validate_python(
            {
                "name": name,
                "source": {
                    "path": f"{folder}/source/{source}/hour={{%Y-%m-%dT%H}}",
                    "format": "parquet",
                    "arrived_at": "arrived_at",
                    "recount_every": 0,
                },
                "key": "key",
                "inserted_at": "arrived_at",
                "expires_at": "expires_at",
                "update_every": "1h",
                "longest_lifetime": f"{PERIOD}h",
                "start": "2024-01-01T00:00:00Z",
                "table": f"{folder}/{name}",
                "scheme": dict(scheme),
                "quality": {"check_rows_every": 0},
            },
            context={"base": folder},
        )
        self._updater = Updater(spark, self.index)

    def to(self, slot: int) -> float:
        """Updates the table to the slot; what the last update took, in seconds."""
        return [report.seconds for report in self._updater.catch_up(slot)][-1]

    def probe(self) -> None:
        sorted_rows(view(self.index), Restriction(keys=(str(PROBED),)))

    def scan(self) -> None:
        for _ in batches(view(self.index), Restriction()):
            pass


def read_times(trials: Sequence[Trial]) -> list[ReadTimes]:
    """Of each table. They are read in turns: what else goes on must not look like a difference."""
    probes = [[_timed(trial.probe) for trial in trials] for _ in range(PROBES)]
    scans = [[_timed(trial.scan) for trial in trials] for _ in range(SCANS)]
    # The first of each finds files that nobody has read yet.
    probe_s = [median(times) for times in zip(*probes[1:], strict=True)]
    scan_s = [min(times) for times in zip(*scans[1:], strict=True)]
    return [
        _stood(trial, *seconds) for trial, *seconds in zip(trials, probe_s, scan_s, strict=True)
    ]


def _stood(trial: Trial, probe_s: float, scan_s: float) -> ReadTimes:
    log = view(trial.index).log
    return ReadTimes(
        rows=log.rows,
        bytes=log.files.bytes,
        files=len(log.files),
        marked=sum(file.has_deletions for file in log.files),
        probe_s=probe_s,
        scan_s=scan_s,
    )


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Source:
    """The rows, made by Spark: one folder for each slot."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder

    def add_round(self, number: int) -> range:
        """The rows of another round; its slots."""
        slots = range(number * ROUND_SLOTS + 1, (number + 1) * ROUND_SLOTS + 1)
        wide, narrow = slots[WIDE_NEW], slots[NARROW_NEW]
        self._write(FEW, self._few(slots))
        large = self._few([slot for slot in slots if slot not in (wide, narrow)])
        # The many live for two slots, to be written again just once.
        large = large.unionByName(self._rows([wide], WIDE_ROWS, lives="2", is_wide=True))
        self._write(LARGE, large.unionByName(self._rows([narrow], NARROW_ROWS, lives="2")))
        return slots

    def add_standing(self) -> None:
        """Wide rows of all lifetimes that a table is loaded with."""
        lives = f"1 + n % {LIFETIMES}"
        self._write(STANDING, self._rows([0], WIDE_ROWS, lives=lives, is_wide=True))

    def _few(self, slots: Sequence[int]) -> DataFrame:
        # In each file of a few rows the probed key lies between two others.
        key, lives = f"{PROBED} + (n div {LIFETIMES}) % 3 - 1", f"1 + n % {LIFETIMES}"
        return self._rows(slots, FEW_ROWS, key=key, lives=lives)

    def _rows(
        self,
        slots: Sequence[int],
        rows: int,
        *,
        lives: str,
        key: str = "pmod(hash(n), 1000)",
        is_wide: bool = False,
    ) -> DataFrame:
        """So many rows in each of the slots, in the middle of the hour before its end."""
        digest = "sha2(concat(slot, '/', n, '/', i), 256)"
        payload = f"concat_ws('', transform(sequence(1, {WIDE_BYTES // 64}), i -> {digest}))"
        every = f"explode(array({', '.join(map(str, slots))})) AS slot"
        return self._spark.range(rows).selectExpr("CAST(id AS INT) AS n", every).selectExpr(
            f"CAST({key} AS BIGINT) AS key",
            f"{_START} + make_dt_interval(0, slot - 1, 30) AS arrived_at",
            f"{_START} + make_dt_interval(0, slot - 1 + {lives}, 30) AS expires_at",
            f"{payload if is_wide else _NOTHING} AS payload",
            f"date_format({_START} + make_dt_interval(0, slot - 1), {_HOUR}) AS hour",
        )  # fmt: skip

    def _write(self, source: str, rows: DataFrame) -> None:
        rows.write.partitionBy("hour").mode("append").parquet(f"{self._folder}/source/{source}")


@contextmanager
def workplace(spark: SparkSession, index: Index, saved: str) -> Iterator[str]:
    """A folder beside the index's table that is gone afterwards."""
    folder = f"{index.table.rstrip('/')}_calibration_{uuid.uuid4().hex[:8]}"
    local = folder.removeprefix("file://")
    connected = "SPARK_CONNECT_MODE_ENABLED" in os.environ
    if "://" in local and connected:
        raise UserError(
            f"A calibration at {index.table} would leave files behind: through Spark Connect they "
            f"cannot be deleted again. Calibrate with `engine: submit`, and save it at {saved}, "
            "or name its file with --calibration."
        )
    try:
        yield folder
    finally:
        if "://" in local:
            path = spark._jvm.org.apache.hadoop.fs.Path(folder)
            path.getFileSystem(spark._jsc.hadoopConfiguration()).delete(path, True)
        else:
            shutil.rmtree(local, ignore_errors=True)
