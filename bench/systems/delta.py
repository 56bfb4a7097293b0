"""What all tables in Delta have in common: how they are read, and what their log says."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, QueryBuilder

from bench.systems.base import Found, Standing, System
from bench.workload import end_of, sql_time
from tidetable.table.log import Log, arrow, open_log
from tidetable.table.read import query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeltaSystem(System):
    """A table in Delta. What it costs to read is measured in the same way for all of them."""

    @property
    def path(self) -> Path:
        return self.folder / "table"

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.path)

    def tidy(self) -> None:
        log = _log(self.path)
        current = {file.rsplit("/", 1)[-1] for file in _paths(log)}
        for file in self.path.rglob("*.parquet"):
            if "_delta_log" not in file.parts and file.name not in current:
                file.unlink()

    def standing(self) -> Standing:
        written = self._ledger.written()
        actions = arrow(_log(self.path).table.get_add_actions(flatten=True)).read_all()
        sizes = actions.column("size_bytes").to_pylist()
        return Standing(len(sizes), sum(sizes), written)

    # -- reading ---------------------------------------------------------------------------------

    def _frame(self) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.path))

    def found(self, slot: int) -> Found:
        alive = f"expires_at > {sql_time(end_of(slot))}"
        row = self._frame().selectExpr(
            "count(*)", f"count_if({alive})", f"sum(if({alive}, key, 0))"
        ).first()  # fmt: skip
        assert row is not None
        return Found(row[0], row[1], row[2] or 0)

    def probe(self, key: int) -> int:
        return int(arrow(self._query().execute(_probe_sql(key))).read_all().num_rows)

    def probe_at_once(self, key: int) -> bool:
        arrow(query(DeltaTable(str(self.path))).execute(_probe_sql(key))).read_all()
        return True

    def scan(self) -> int:
        found = arrow(self._query().execute("SELECT sum(character_length(payload)) AS n FROM t"))
        return int(found.read_all().column("n")[0].as_py() or 0)

    def _query(self) -> QueryBuilder:
        """Opens the table anew each time, as a reader that comes along does."""
        return QueryBuilder().register("t", DeltaTable(str(self.path)))

    def probe_spark(self, key: int) -> bool:
        columns = ("key", "inserted_at", "expires_at", "payload")
        self._frame().where(f"key = {key}").select(*columns).toArrow()
        return True

    def scan_spark(self) -> bool:
        self._frame().selectExpr("sum(length(payload))").first()
        return True

    def probe_files(self, keys: list[int]) -> float | None:
        bounds = key_bounds(self.path)
        opened = sum(first <= key <= last for key in keys for first, last in bounds)
        return opened / len(keys)


def _probe_sql(key: int) -> str:
    return f"SELECT key, inserted_at, expires_at, payload FROM t WHERE key = {key}"


def key_bounds(table: Path) -> list[tuple[int, int]]:
    """The smallest and the largest key of every file, as the log has them."""
    actions = arrow(_log(table).table.get_add_actions(flatten=True)).read_all()
    firsts, lasts = (actions.column(f"{bound}.key").to_pylist() for bound in ("min", "max"))
    return list(zip(firsts, lasts, strict=True))


class Ledger:
    """Adds up what the commits of a table have written: data files and deletion vectors."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self._version = -1
        self._known: set[str] = set()
        self._written = 0

    def written(self) -> int:
        log = _log(self.table)
        for version in range(self._version + 1, log.version + 1):
            for action in log.actions(version):
                if add := action.get("add"):
                    self._count(add)
        self._version = log.version
        return self._written

    def _count(self, add: dict[str, Any]) -> None:
        # A file that gets a deletion vector is added again under its old name, but not written.
        if add["path"] not in self._known:
            self._known.add(add["path"])
            self._written += add["size"]
        if vector := add.get("deletionVector"):
            name = f"{vector['pathOrInlineDv']}@{vector.get('offset')}"
            if name not in self._known:
                self._known.add(name)
                self._written += vector["sizeInBytes"]


def _log(table: Path) -> Log:
    log = open_log(str(table))
    assert log is not None, f"no table at {table}"
    return log


def _paths(log: Log) -> list[str]:
    actions = arrow(log.table.get_add_actions(flatten=True)).read_all()
    return [str(path) for path in actions.column("path").to_pylist()]
