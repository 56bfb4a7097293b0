"""What tables of ClickHouse have in common: a MergeTree ORDER BY key in this process (chdb).

`exp_slot` is the slot in which a row expires.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data import Rows
from bench.systems.base import Found, Standing, System
from bench.workload import SLOT, START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "bench.live"
_COLUMNS = "key, arrived_at, inserted_at, expires_at, payload"
_TYPES = (
    "key Int32, arrived_at DateTime64(6, 'UTC'), inserted_at DateTime64(6, 'UTC'), "
    "expires_at DateTime64(6, 'UTC'), payload String, exp_slot Int32"
)


class MergeTree(System):
    """A table of ClickHouse. How its rows expire is for those below to say."""

    only_live = True
    """Whether no expired row is left after an update, so that readers need not leave any out."""

    def __init__(self, spark: SparkSession, rows: Rows, folder: Path) -> None:
        super().__init__(spark, rows, folder)
        self._slot = 0
        self._session: Any = None

    def load(self) -> None:
        from chdb import session  # type: ignore[import-not-found, unused-ignore]

        self._session = session.Session(str(self.folder / "clickhouse"))
        self._run("CREATE DATABASE IF NOT EXISTS bench")
        self._make()
        self._insert([slot for slot in self.workload.slots if slot <= 0])

    def _make(self) -> None:
        self._run(f"CREATE TABLE {TABLE} ({_TYPES}{self._more_columns()}) {self._engine()}")

    @abstractmethod
    def _engine(self) -> str:
        """From ENGINE on."""

    def _more_columns(self) -> str:
        """Columns besides those that all have."""
        return ""

    def _more_values(self) -> str:
        """Their values, where `e` is the slot in which a row expires."""
        return ""

    def _insert_settings(self) -> dict[str, int]:
        return {"use_hive_partitioning": 0}

    def _insert(self, slots: list[int]) -> None:
        there = [f"slot={slot}" for slot in slots if self.rows.slot_folder(slot).is_dir()]
        files = f"{self.rows.folder}/{{{','.join(there)}}}/*.parquet"
        start_us = int(START.timestamp() * 1_000_000)
        slot_us = int(SLOT.total_seconds() * 1_000_000)
        # Rows expire inside a slot, never on its edge.
        expires = f"toInt32(intDiv(toUnixTimestamp64Micro(expires_at) - {start_us}, {slot_us}) + 1)"
        settings = ", ".join(f"{name} = {value}" for name, value in self._insert_settings().items())
        self._run(
            f"INSERT INTO {TABLE} SELECT {_COLUMNS}, {expires} AS e{self._more_values()} "
            f"FROM file('{files}', Parquet) SETTINGS {settings}"
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
        (expired,) = self._row(f"SELECT countIf(exp_slot <= {self._slot}) FROM {TABLE}")
        return Standing(parts, stored, written, expired)

    def found(self, slot: int) -> Found:
        found = self._row(
            f"SELECT count(), countIf(exp_slot > {slot}), sumIf(key, exp_slot > {slot}) "
            f"FROM {TABLE}"
        )
        return Found(*found)

    def probe(self, key: int) -> int:
        alive = "" if self.only_live else f" AND exp_slot > {self._slot}"
        found = self._session.query(
            f"SELECT key, inserted_at, expires_at, payload FROM {TABLE} WHERE key = {key}{alive}",
            "ArrowTable",
        )
        return int(found.num_rows)

    def scan(self) -> int:
        alive = "" if self.only_live else f" WHERE exp_slot > {self._slot}"
        return self._row(f"SELECT sum(length(payload)) FROM {TABLE}{alive}")[0]

    def close(self) -> None:
        if self._session is not None:
            self._run("DROP DATABASE IF EXISTS bench SYNC")
            self._session.close()
            self._session = None

    def _run(self, sql: str) -> str:
        return str(self._session.query(sql, "TSV")).strip()

    def _row(self, sql: str) -> list[int]:
        return [int(value) for value in self._run(sql).split("\t")]
