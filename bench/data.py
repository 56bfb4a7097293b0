"""The rows of a workload, made by Spark once and kept as Parquet with a folder for each slot."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bench.workload import PAYLOAD_BYTES, SLOT, START, Workload, end_of, sql_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "key INT, arrived_at TIMESTAMP, inserted_at TIMESTAMP, expires_at TIMESTAMP, payload STRING"
)
_EVEN = "(shiftrightunsigned(xxhash64(id, {salt}), 11) / 9007199254740992D)"
_HASH_CHARACTERS = 88
"""Of a SHA-512 in base64: text that no codec makes much smaller."""


@dataclass(frozen=True)
class Expected:
    """What a reader must find at the end: the live rows, counted."""

    rows: int
    key_sum: int


class Rows:
    """The rows of one workload on disk."""

    def __init__(self, workload: Workload, cache: Path) -> None:
        self.workload = workload
        self.folder = cache / "rows" / f"{workload.name}-{workload.digest}"

    @property
    def facts(self) -> Path:
        return self.folder / "facts.json"

    def slot_folder(self, slot: int) -> Path:
        return self.folder / f"slot={slot}"

    def make(self, spark: SparkSession) -> None:
        """Writes the rows if they are not there, whole: the facts are written last."""
        if self.facts.is_file():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        generated(spark, self.workload).write.partitionBy("slot").parquet(str(self.folder))
        last = end_of(self.workload.updates)
        found = self.read(spark, *self.workload.slots).where(f"expires_at > {sql_time(last)}")
        counted = found.selectExpr("count(*)", "sum(key)").first()
        assert counted is not None
        facts = {
            "rows": counted[0],
            "key_sum": counted[1] or 0,
            "rows_by_slot": self._by_slot(spark),
        }
        self.facts.write_text(json.dumps(facts))

    def _by_slot(self, spark: SparkSession) -> dict[str, int]:
        rows = spark.read.parquet(str(self.folder)).groupBy("slot").count().collect()
        return {str(row["slot"]): row["count"] for row in rows}

    def read(self, spark: SparkSession, *slots: int) -> DataFrame:
        """The rows of these slots, without a pass to find out their columns."""
        folders = [str(path) for slot in slots if (path := self.slot_folder(slot)).is_dir()]
        return spark.read.schema(SCHEMA).parquet(*folders)

    def read_history(self, spark: SparkSession) -> DataFrame:
        """What is alive at the start, with the column `slot`."""
        return spark.read.schema(f"{SCHEMA}, slot INT").parquet(str(self.folder)).where("slot <= 0")

    @cached_property
    def _facts(self) -> dict[str, object]:
        return dict(json.loads(self.facts.read_text()))

    @property
    def expected(self) -> Expected:
        return Expected(int(str(self._facts["rows"])), int(str(self._facts["key_sum"])))

    def bytes_of(self, slot: int) -> int:
        """Bytes of a slot's rows as plain Parquet: the measure for what is written."""
        return sum(file.stat().st_size for file in self.slot_folder(slot).glob("*.parquet"))

    @cached_property
    def bytes_per_row(self) -> float:
        """Of plain Parquet in the order of arrival, by the slots that updates take."""
        by_slot = dict(self._facts["rows_by_slot"])  # type: ignore[call-overload]
        slots = [slot for slot in self.workload.slots if slot >= 1]
        return sum(map(self.bytes_of, slots)) / max(1, sum(by_slot[str(slot)] for slot in slots))

    @property
    def live_bytes(self) -> int:
        """Bytes of the rows alive after the last update, as plain Parquet."""
        return round(self.expected.rows * self.bytes_per_row)


def generated(spark: SparkSession, workload: Workload) -> DataFrame:
    """All rows of all slots; of the slots before the start only what is alive at it."""
    slots = workload.slots
    counts = [workload.arrivals(slot) for slot in slots]
    most = max(counts)
    arrived = int(START.timestamp() * 1_000_000)
    step = int(SLOT.total_seconds() * 1_000_000)
    blocks = -(-PAYLOAD_BYTES // _HASH_CHARACTERS)
    hashes = ", ".join(f"base64(unhex(sha2(concat_ws('-', id, {n}), 512)))" for n in range(blocks))
    return (
        spark.range(0, most * len(slots), 1, len(slots))
        .selectExpr("id", f"int(id div {most}) + {slots.start} AS slot", f"id % {most} AS n")
        .where(f"n < element_at(array({', '.join(map(str, counts))}), slot - {slots.start} + 1)")
        .selectExpr("*", f"{workload.lifetime_sql(_EVEN.format(salt=1))} AS lives")
        .where("slot > 0 OR slot + lives > 0")
        .selectExpr(
            "slot",
            "lives",
            f"{workload.key_sql(_EVEN.format(salt=2))} AS key",
            # Strictly inside the slot: neither edge needs a thought then.
            f"{arrived} + (slot - 1L) * {step} + 1 + bigint({_EVEN.format(salt=3)} * {step - 2}) "
            "AS at",
            f"left(concat({hashes}), {PAYLOAD_BYTES}) AS payload",
        )
        .selectExpr(
            "slot",
            "key",
            "timestamp_micros(at) AS arrived_at",
            "timestamp_micros(at) AS inserted_at",
            f"timestamp_micros(at + lives * {step}) AS expires_at",
            "payload",
        )
    )
