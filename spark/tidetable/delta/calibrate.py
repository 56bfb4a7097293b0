"""What updates, probes and scans cost on this machine: measured on small tables of our own.

The tables lie beside the index's own, so that the storage is the same, and are updated by the very
code that updates real ones. One source serves all of them: a few rows in most slots,
many wide rows in one and many narrow ones in another.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import TypeAdapter
from pyspark.sql import SparkSession

from tidetable import __version__
from tidetable.core.advise import Calibration, Machine
from tidetable.core.advise.model import PROBED_BYTES
from tidetable.core.config import Index
from tidetable.core.errors import UserError
from tidetable.delta.read import batches, sorted_rows, view
from tidetable.delta.restriction import Restriction
from tidetable.delta.session import cores

FILE = "calibration.json"
Progress = Callable[[str], None]

FEW, FEW_SLOTS = 100, 5
WIDE_SLOT, WIDE_ROWS, WIDE_BYTES = 6, 40_000, 1_000
NARROW_SLOT, NARROW_ROWS = 9, 400_000
LAST_SLOT = 12
PERIOD = 24
MANY_GROUPS = 16
PROBES = 5
PROBED = 500
"""A key that is in every file of every table, so that a probe opens all of them."""

SCHEMES: dict[str, dict[str, Any]] = {
    "one": {"name": "sweep", "groups": 1},
    "many": {"name": "sweep", "groups": MANY_GROUPS},
    "marked": {"name": "sweep", "groups": 4, "deletion_vectors": True},
}
_INDEX = TypeAdapter(Index)


def calibration_path(index: Index) -> Path:
    """Where the calibration of this index's storage is kept: beside its table if that is local."""
    local = index.table.removeprefix("file://")
    home = Path(os.environ.get("TIDETABLE_HOME", ".")) / ".tidetable"
    return (home if "://" in local else Path(local).parent) / FILE


def machine_of(spark: SparkSession) -> Machine:
    """What a calibration depends on."""
    packages = ("delta-spark", "deltalake")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return Machine(cores(spark), {"tidetable": __version__, "spark": spark.version, **versions})


def calibrated(
    spark: SparkSession,
    index: Index,
    say: Progress,
    *,
    path: Path | None = None,
    anew: bool = False,
) -> Calibration:
    """The saved calibration if it is of this machine and these versions, or a new one, saved.

    A file that the caller names is taken as it is: it may be of the machine that is to do the work.
    """
    place = calibration_path(index) if path is None else path
    if not anew:
        found = Calibration.read(place)
        if found is not None and (path is not None or found.machine == machine_of(spark)):
            return found
    made = calibrate(spark, index, say)
    try:
        made.save(place)
    except OSError as error:
        say(f"The calibration was not saved at {place}: {error}")
    return made


def calibrate(spark: SparkSession, index: Index, say: Progress) -> Calibration:
    """A short measured run; nothing of it stays."""
    with _workplace(spark, index) as folder:
        say("calibrating: making rows")
        _make_source(spark, folder)
        trials = {name: _Trial(spark, folder, name, scheme) for name, scheme in SCHEMES.items()}
        seconds: dict[str, float] = {}
        for slot in range(1, FEW_SLOTS + 1):
            say(f"calibrating: small updates, {slot} of {FEW_SLOTS}")
            for name, trial in trials.items():
                # In turns: a JVM gets faster all the time, which must not look like a difference.
                took = trial.to(slot)
                # The first ones are slow where the JVM is new; in slot 1 no row expires yet.
                if slot > FEW_SLOTS - 3:
                    seconds[name] = min(took, seconds.get(name, took))
        few, many_read, marked_read = (trial.read_times() for trial in trials.values())
        commit_s, many_s, marked_s = seconds.values()
        one = _one_cell(trials["one"], commit_s, say)
    file_s = _positive((many_s - commit_s) / (MANY_GROUPS - 1))
    insert = _per_row_and_byte(one.wide, one.narrow, one.wide_insert_s, one.narrow_insert_s)
    rewrite = _per_row_and_byte(one.wide, one.narrow, one.wide_rewrite_s, one.narrow_rewrite_s)
    scan = _per_row_and_byte(
        one.wide, one.narrow, one.wide.scan_s - few.scan_s, one.narrow.scan_s - few.scan_s
    )
    per_file = _positive((many_read.probe_s - few.probe_s) / max(1, many_read.files - 1))
    expected = few.probe_s + (marked_read.files - 1) * per_file
    return Calibration(
        machine=machine_of(spark),
        commit_s=_positive(one.commit_s - file_s),
        vectors_s=_positive(marked_s - commit_s),
        insert_s_per_row=insert[0],
        insert_s_per_byte=insert[1],
        rewrite_s_per_row=rewrite[0],
        rewrite_s_per_byte=rewrite[1],
        file_s=file_s,
        probe_s=few.probe_s,
        probe_s_per_file=per_file,
        probe_s_per_marked_file=_positive(
            (marked_read.probe_s - expected) / max(1, marked_read.marked)
        ),
        probe_s_per_byte=_positive(
            (one.wide.probe_s - few.probe_s) / min(one.wide.bytes, PROBED_BYTES)
        ),
        scan_s=few.scan_s,
        scan_s_per_row=scan[0],
        scan_s_per_byte=scan[1],
        scan_s_per_file=_positive((many_read.scan_s - few.scan_s) / max(1, many_read.files - 1)),
    )


# -- what is measured ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ReadTimes:
    """A table as it stands, and how long it takes to read it."""

    rows: int
    bytes: int
    files: int
    marked: int
    probe_s: float
    scan_s: float


@dataclass(frozen=True)
class _OneCell:
    """What updates with many rows took longer than one with few: each writes all of them again."""

    commit_s: float
    wide_insert_s: float
    wide_rewrite_s: float
    narrow_insert_s: float
    narrow_rewrite_s: float
    wide: _ReadTimes
    narrow: _ReadTimes


def _one_cell(trial: _Trial, commit_s: float, say: Progress) -> _OneCell:
    seconds: dict[int, float] = {}
    reads: dict[int, _ReadTimes] = {}
    # The slot after the many rows writes them again; the one after that lets them go.
    for slot in range(WIDE_SLOT, LAST_SLOT + 1):
        say(f"calibrating: large updates, {slot - WIDE_SLOT + 1} of {LAST_SLOT - WIDE_SLOT + 1}")
        seconds[slot] = trial.to(slot)
        if slot in (WIDE_SLOT + 1, NARROW_SLOT + 1):
            reads[slot] = trial.read_times()
    # Of the last slot nothing is large any more, and the JVM is as quick as it was for the others.
    commit_s = min(commit_s, seconds[LAST_SLOT])
    return _OneCell(
        commit_s=commit_s,
        wide_insert_s=seconds[WIDE_SLOT] - commit_s,
        wide_rewrite_s=seconds[WIDE_SLOT + 1] - commit_s,
        narrow_insert_s=seconds[NARROW_SLOT] - commit_s,
        narrow_rewrite_s=seconds[NARROW_SLOT + 1] - commit_s,
        wide=reads[WIDE_SLOT + 1],
        narrow=reads[NARROW_SLOT + 1],
    )


class _Trial:
    """One table of the calibration."""

    def __init__(self, spark: SparkSession, folder: str, name: str, scheme: Any) -> None:
        from tidetable.delta.update import Updater

        self.index: Index = _INDEX.validate_python(
            {
                "name": name,
                "source": {
                    "path": f"{folder}/source/hour={{%H}}",
                    "format": "parquet",
                    "arrived_at": "arrived_at",
                },
                "key": "key",
                "inserted_at": "arrived_at",
                "expires_at": "expires_at",
                "update_every": "1h",
                "longest_lifetime": f"{PERIOD}h",
                "start": "2024-01-01T00:00:00Z",
                "table": f"{folder}/{name}",
                "scheme": scheme,
                "quality": {"check_rows_every": 0},
            },
            context={"base": folder},
        )
        self.updater = Updater(spark, self.index)

    def to(self, slot: int) -> float:
        """Updates the table to the slot; what the last update took, in seconds."""
        return [report.seconds for report in self.updater.catch_up(slot)][-1]

    def read_times(self) -> _ReadTimes:
        log = view(self.index).log
        return _ReadTimes(
            rows=log.rows,
            bytes=sum(file.bytes for file in log.files),
            files=len(log.files),
            marked=sum(file.has_deletions for file in log.files),
            probe_s=median(_timed(self._probe) for _ in range(PROBES)),
            scan_s=min(_timed(self._scan) for _ in range(2)),
        )

    def _probe(self) -> None:
        sorted_rows(view(self.index), Restriction(keys=(str(PROBED),)))

    def _scan(self) -> None:
        for _ in batches(view(self.index), Restriction()):
            pass


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _per_row_and_byte(
    wide: _ReadTimes, narrow: _ReadTimes, wide_s: float, narrow_s: float
) -> tuple[float, float]:
    """Seconds per row and per byte such that both tables take as long as they did.

    Where one of the two would be negative, which only noise can make, all is put on the other.
    """
    wide_s, narrow_s = max(wide_s, 0.0), max(narrow_s, 0.0)
    determinant = wide.rows * narrow.bytes - narrow.rows * wide.bytes
    if determinant:
        per_row = (wide_s * narrow.bytes - narrow_s * wide.bytes) / determinant
        per_byte = (wide.rows * narrow_s - narrow.rows * wide_s) / determinant
        if per_row >= 0 and per_byte >= 0:
            return per_row, per_byte
        if per_row < 0:
            return 0.0, (wide_s + narrow_s) / (wide.bytes + narrow.bytes)
    return (wide_s + narrow_s) / (wide.rows + narrow.rows), 0.0


def _positive(seconds: float) -> float:
    return max(seconds, 0.0)


# -- rows and a place for them ---------------------------------------------------------------------


def _make_source(spark: SparkSession, folder: str) -> None:
    """One folder for each slot: slot j arrives in the middle of the hour before its end."""
    start = "TIMESTAMP'2024-01-01 00:00:00Z'"
    few = f"CASE WHEN slot IN ({WIDE_SLOT}, {NARROW_SLOT}) THEN 0 ELSE {FEW} END"
    slots = spark.range(1, LAST_SLOT + 1).selectExpr("CAST(id AS INT) AS slot")
    sizes = {"few": few, "wide": f"IF(slot = {WIDE_SLOT}, {WIDE_ROWS}, 0)",
             "narrow": f"IF(slot = {NARROW_SLOT}, {NARROW_ROWS}, 0)"}  # fmt: skip
    # Few rows have all lifetimes; the many live for two slots, to be written again just once.
    lifetimes = {"few": f"1 + n % {MANY_GROUPS}", "wide": "2", "narrow": "2"}
    # In each file of few rows the probed key lies between two others.
    keys = dict.fromkeys(sizes, "pmod(hash(n), 1000)")
    keys["few"] = f"{PROBED} + (n div {MANY_GROUPS}) % 3 - 1"
    payload = {"few": "''", "narrow": "''", "wide": "concat_ws('', transform(sequence(1, "
               f"{WIDE_BYTES // 64}), i -> sha2(concat(slot, '/', n, '/', i), 256)))"}  # fmt: skip
    parts = [
        slots.where(f"{size} > 0").selectExpr(
            "slot", f"explode(sequence(0, {size} - 1)) AS n"
        ).selectExpr(
            f"CAST({keys[kind]} AS BIGINT) AS key",
            f"{start} + make_dt_interval(0, slot - 1, 30) AS arrived_at",
            f"{start} + make_dt_interval(0, slot - 1 + {lifetimes[kind]}, 30) AS expires_at",
            f"{payload[kind]} AS payload",
            "lpad(CAST(slot - 1 AS STRING), 2, '0') AS hour",
        )
        for kind, size in sizes.items()
    ]  # fmt: skip
    rows = parts[0].unionByName(parts[1]).unionByName(parts[2])
    rows.write.partitionBy("hour").parquet(f"{folder}/source")


@contextmanager
def _workplace(spark: SparkSession, index: Index) -> Iterator[str]:
    """A folder beside the index's table that is gone afterwards."""
    folder = f"{index.table.rstrip('/')}_calibration_{uuid.uuid4().hex[:8]}"
    local = folder.removeprefix("file://")
    connected = "SPARK_CONNECT_MODE_ENABLED" in os.environ
    if "://" in local and connected:
        raise UserError(
            f"A calibration at {index.table} would leave files behind: through Spark Connect they "
            f"cannot be deleted again. Calibrate with `engine: submit`, and save it at "
            f"{calibration_path(index)}, or name its file with --calibration."
        )
    try:
        yield folder
    finally:
        if "://" in local:
            path = spark._jvm.org.apache.hadoop.fs.Path(folder)
            path.getFileSystem(spark._jsc.hadoopConfiguration()).delete(path, True)
        else:
            shutil.rmtree(local, ignore_errors=True)
