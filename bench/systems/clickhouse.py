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
from typing import TYPE_CHECKING

from bench.data import Rows
from bench.systems.base import Found
from bench.systems.merge_tree import TABLE, MergeTree

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

_TRIAL = "bench.trial"


class FellBehind(Exception):
    """An update took longer than its slot, so rows expired that should be alive."""


class ClickHouse(MergeTree):
    """A MergeTree with a TTL; with `final` every update also merges everything by force."""

    def __init__(self, spark: SparkSession, rows: Rows, folder: Path, final: bool) -> None:
        super().__init__(spark, rows, folder)
        self.final = self.only_live = final
        work = self.workload.live_bytes if final else self.rows.bytes_of(1)
        self.slot_s = max(_SLOT_S_MIN, math.ceil(work / _MERGED_BYTES_PER_S))
        self._edge_0 = 0

    def load(self) -> None:
        super().load()
        self._check_pace(0)

    def _make(self) -> None:
        if self.final:
            self.slot_s = min(self.slot_s, self._tried_slot_s())
        super()._make()
        self._edge_0 = math.ceil(time.time() + 3 + self.workload.live_bytes / _LOADED_BYTES_PER_S)

    def _engine(self) -> str:
        return (
            "ENGINE = MergeTree ORDER BY key TTL ttl_at "
            f"SETTINGS merge_with_ttl_timeout = {TTL_TIMER_SLOTS * self.slot_s}"
        )

    def _more_columns(self) -> str:
        return ", ttl_at DateTime('UTC')"

    def _more_values(self) -> str:
        return f", toDateTime({self._edge_0} + e * {self.slot_s}, 'UTC')"

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
            self._run(f"OPTIMIZE TABLE {TABLE} FINAL")
        self._slot = slot
        self._check_pace(slot)

    def _check_pace(self, slot: int) -> None:
        late = time.time() - (self._edge_0 + (slot + 1) * self.slot_s)
        if late > 0:
            raise FellBehind(
                f"slot {slot} ended {late:.1f} s after the next one had begun (a slot is "
                f"{self.slot_s} s here); the machine is too slow or too busy for it"
            )

    def found(self, slot: int) -> Found:
        # Time goes on while others are read: from here on nothing more may expire.
        found = super().found(slot)
        self._run(f"SYSTEM STOP TTL MERGES {TABLE}")
        return found
