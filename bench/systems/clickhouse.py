"""ClickHouse's own row TTL, inside this process (chdb): MergeTree ORDER BY key, TTL on the expiry.

ClickHouse lets rows go by the wall clock, in background merges. So for it time really passes, only
faster: a slot takes some seconds instead of an hour, and the timer between two TTL merges, four
hours by default, is shortened by the same factor. The columns `exp_slot` and `ttl_at` say when a
row expires on that clock.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data import Rows
from bench.systems.base import Found, Standing, System
from bench.workload import SLOT, START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TTL_TIMER_SLOTS = 4
"""ClickHouse's default for merge_with_ttl_timeout is four hours; a slot is one."""

_SLOT_S_MIN = 2
_LOADED_BYTES_PER_S = 20_000_000
_MERGED_BYTES_PER_S = 25_000_000
"""Careful guesses: by them the clock is set, and it must not run ahead of the updates. A merge of
1 GB has taken up to 22 s on two slow cores, and 4 s on two quick ones."""

_CARE = 3
"""A slot is so many times as long as a merge of everything should take, going by a trial."""

_TABLE = "bench.live"
_TRIAL = "bench.trial"
_COLUMNS = "key, arrived_at, inserted_at, expires_at, payload"


class FellBehind(Exception):
    """An update took longer than its slot, so rows expired that should be alive."""


class ClickHouse(System):
    """A MergeTree with a TTL; with `final` every update also merges everything by force."""

    def __init__(self, spark: SparkSession, rows: Rows, folder: Path, final: bool) -> None:
        super().__init__(spark, rows, folder)
        self.final = final
        work = self.workload.live_bytes if final else self.rows.bytes_of(1)
        self.slot_s = max(_SLOT_S_MIN, math.ceil(work / _MERGED_BYTES_PER_S))
        self._edge_0 = 0
        self._slot = 0
        self._session: Any = None

    def load(self) -> None:
        from chdb import session  # type: ignore[import-not-found, unused-ignore]

        self._session = session.Session(str(self.folder / "clickhouse"))
        self._run("CREATE DATABASE IF NOT EXISTS bench")
        if self.final:
            self.slot_s = min(self.slot_s, self._tried_slot_s())
        self._run(
            f"CREATE TABLE {_TABLE} (key Int32, arrived_at DateTime64(6, 'UTC'), "
            "inserted_at DateTime64(6, 'UTC'), expires_at DateTime64(6, 'UTC'), payload String, "
            "exp_slot Int32, ttl_at DateTime('UTC')) ENGINE = MergeTree ORDER BY key TTL ttl_at "
            f"SETTINGS merge_with_ttl_timeout = {TTL_TIMER_SLOTS * self.slot_s}"
        )
        self._edge_0 = math.ceil(time.time() + 3 + self.workload.live_bytes / _LOADED_BYTES_PER_S)
        self._insert([slot for slot in self.workload.slots if slot <= 0])
        self._check_pace(0)

    def _tried_slot_s(self) -> int:
        """How long a slot has to be, by a forced merge of some rows: quick machines wait less."""
        files = f"{self.rows.slot_folder(1)}/*.parquet"
        self._run(
            f"CREATE TABLE {_TRIAL} (key Int32, payload String) ENGINE = MergeTree ORDER BY key"
        )
        for _ in range(2):
            self._run(
                f"INSERT INTO {_TRIAL} SELECT key, payload FROM file('{files}', Parquet) "
                "SETTINGS use_hive_partitioning = 0"
            )
        began = time.monotonic()
        self._run(f"OPTIMIZE TABLE {_TRIAL} FINAL")
        per_byte = (time.monotonic() - began) / (2 * self.rows.bytes_of(1))
        self._run(f"DROP TABLE {_TRIAL} SYNC")
        return max(_SLOT_S_MIN, math.ceil(_CARE * per_byte * self.workload.live_bytes))

    def wait(self, slot: int) -> None:
        time.sleep(max(0.0, self._edge_0 + slot * self.slot_s - time.time()))

    def update(self, slot: int) -> None:
        self._insert([slot])
        if self.final:
            self._run(f"OPTIMIZE TABLE {_TABLE} FINAL")
        self._slot = slot
        self._check_pace(slot)

    def _insert(self, slots: list[int]) -> None:
        there = [f"slot={slot}" for slot in slots if self.rows.slot_folder(slot).is_dir()]
        files = f"{self.rows.folder}/{{{','.join(there)}}}/*.parquet"
        start_us = int(START.timestamp() * 1_000_000)
        slot_us = int(SLOT.total_seconds() * 1_000_000)
        # Rows expire inside a slot, never on its edge.
        expires = f"toInt32(intDiv(toUnixTimestamp64Micro(expires_at) - {start_us}, {slot_us}) + 1)"
        self._run(
            f"INSERT INTO {_TABLE} SELECT {_COLUMNS}, {expires} AS e, "
            f"toDateTime({self._edge_0} + e * {self.slot_s}, 'UTC') "
            f"FROM file('{files}', Parquet) SETTINGS use_hive_partitioning = 0"
        )

    def _check_pace(self, slot: int) -> None:
        late = time.time() - (self._edge_0 + (slot + 1) * self.slot_s)
        if late > 0:
            raise FellBehind(
                f"slot {slot} ended {late:.1f} s after the next one had begun (a slot is "
                f"{self.slot_s} s here); the machine is too slow or too busy for it"
            )

    # -- reading ---------------------------------------------------------------------------------

    def standing(self) -> Standing:
        parts, stored = self._row(
            "SELECT count(), sum(bytes_on_disk) FROM system.parts "
            "WHERE active AND database = 'bench' AND table = 'live'"
        )
        (written,) = self._row(
            "SELECT sum(value) FROM system.events "
            "WHERE event = 'WriteBufferFromFileDescriptorWriteBytes'"
        )
        (expired,) = self._row(f"SELECT countIf(exp_slot <= {self._slot}) FROM {_TABLE}")
        return Standing(parts, stored, written, expired)

    def found(self, slot: int) -> Found:
        # Time goes on while others are read: from here on nothing more may expire.
        found = self._row(
            f"SELECT count(), countIf(exp_slot > {slot}), sumIf(key, exp_slot > {slot}) "
            f"FROM {_TABLE}"
        )
        self._run(f"SYSTEM STOP TTL MERGES {_TABLE}")
        return Found(*found)

    def probe(self, key: int) -> int:
        alive = "" if self.final else f" AND exp_slot > {self._slot}"
        found = self._session.query(
            f"SELECT key, inserted_at, expires_at, payload FROM {_TABLE} WHERE key = {key}{alive}",
            "ArrowTable",
        )
        return int(found.num_rows)

    def scan(self) -> int:
        alive = "" if self.final else f" WHERE exp_slot > {self._slot}"
        return self._row(f"SELECT sum(length(payload)) FROM {_TABLE}{alive}")[0]

    def close(self) -> None:
        if self._session is not None:
            self._run("DROP DATABASE IF EXISTS bench SYNC")
            self._session.close()
            self._session = None

    def _run(self, sql: str) -> str:
        return str(self._session.query(sql, "TSV")).strip()

    def _row(self, sql: str) -> list[int]:
        return [int(value) for value in self._run(sql).split("\t")]
