"""Which systems there are: name, kind, setting in words, and what each is good at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data import Rows
from bench.systems.base import System
from bench.systems.optimize import (
    DELTAS_FILE_BYTES,
    FILE_SIZES,
    OPTIMIZE_EVERY,
    OPTIMIZED_FILE_MB,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Maker = Callable[["SparkSession", Rows, Path], System]
SESSION = {
    **dict.fromkeys(FILE_SIZES, str(OPTIMIZED_FILE_MB * 1024**2)),
    # Parquet's own. Ours asks for smaller pages when it writes a plain table.
    "spark.hadoop.parquet.page.size": str(1024**2),
}
"""Settings of the Spark session that all share, besides our own."""


@dataclass(frozen=True)
class Entry:
    """A system that can be chosen."""

    name: str
    kind: str
    """`ours`, `delta`, `clickhouse`, `iceberg` or `limit`."""

    setting: str
    wins_because: str
    """Said where it beats our default."""

    make: Maker

    sort: str = ""
    """Those of one sort use the same parts of an engine: one of them warms up for all."""

    needs: str | None = None
    """What has to be installed for it besides what the project has (extra.py)."""

    @property
    def is_ours(self) -> bool:
        return self.kind == "ours"

    @property
    def is_limit(self) -> bool:
        """Whether it is no system that anybody could use, but a floor under ours."""
        return self.kind == "limit"

    @property
    def takes_turns(self) -> bool:
        """Whether it works in the process that all share; another engine is measured alone."""
        return self.kind in ("ours", "delta", "limit")


def _index(spark: SparkSession, rows: Rows, folder: Path, **scheme: Any) -> System:
    from bench.systems.ours import Tidetable

    return Tidetable(spark, rows, folder, scheme)


def _by_expiration(spark: SparkSession, rows: Rows, folder: Path) -> System:
    return _index(spark, rows, folder, name="sweep", groups=rows.workload.period)


def _peer(spark: SparkSession, rows: Rows, folder: Path, **habit: Any) -> System:
    from bench.systems.peers import Habit, Peer

    return Peer(spark, rows, folder, Habit(**habit))


def _by_pyarrow(spark: SparkSession, rows: Rows, folder: Path) -> System:
    from bench.systems.limit import Limit
    from bench.systems.limit_pyarrow import Pyarrow

    return Limit(spark, rows, folder, Pyarrow(), GROUPS)


def _by_polars(spark: SparkSession, rows: Rows, folder: Path) -> System:
    from bench.systems.limit import Limit
    from bench.systems.limit_polars import Polars

    return Limit(spark, rows, folder, Polars(), GROUPS)


def _clickhouse(spark: SparkSession, rows: Rows, folder: Path, final: bool) -> System:
    from bench.systems.clickhouse import ClickHouse

    return ClickHouse(spark, rows, folder, final)


def _clickhouse_partitions(spark: SparkSession, rows: Rows, folder: Path) -> System:
    from bench.systems.clickhouse_partitions import ClickHouseByPartition

    return ClickHouseByPartition(spark, rows, folder)


def _iceberg(spark: SparkSession, rows: Rows, folder: Path, rewrite_every: int) -> System:
    from bench.systems.iceberg import Iceberg

    return Iceberg(spark, rows, folder, rewrite_every)


def _ours(name: str, setting: str, wins_because: str, /, **scheme: Any) -> Entry:
    plain = scheme["name"] == "rebuild" or (
        scheme["name"] == "sweep" and not scheme.get("deletion_vectors", False)
    )
    sort = "ours, whole files" if plain else "ours, deletion vectors"
    return Entry(name, "ours", setting, wins_because, partial(_index, **scheme), sort)


def _delta(name: str, setting: str, wins_because: str, /, **habit: Any) -> Entry:
    return Entry(name, "delta", setting, wins_because, partial(_peer, **habit), _sort(habit))


def _sort(habit: Mapping[str, Any]) -> str:
    """What of Delta a habit uses: another write, another DELETE, another OPTIMIZE."""
    if habit.get("partitioned_by"):
        return "delta, partitions"
    if habit.get("clustered"):
        return "delta, clustered"
    if habit.get("optimize_every"):
        return "delta, ZORDER" if habit.get("zorder") else "delta, OPTIMIZE"
    return "delta, vectors" if habit.get("deletion_vectors", True) else "delta, whole files"


_REWRITES_ALL = "few, sorted files: it writes the whole table at every update to have them"
_MARKS_ONLY = (
    "it writes each row once and only marks what expired; what it saves, readers pay, and the "
    "marked rows stay on disk"
)

_VECTORS_AND_FILES = f"deletion vectors, files of {OPTIMIZED_FILE_MB} MB"

DEFAULT = "sweep"
GROUPS = 8
"""Of the default: without deletion vectors they make 36 files."""

_LIMIT = "limit: a floor, not a system"

ENTRIES = (
    _ours(
        DEFAULT, f"Sweep({GROUPS},1) without deletion vectors", "it is the default itself",
        name="sweep", groups=GROUPS,
    ),
    _ours(
        "sweep_log", "Sweep(9,1) with a log (deletion vectors)",
        "new rows wait in one file instead of eight; deletion vectors cost it seconds",
        name="sweep", groups=9, deletion_vectors=True,
    ),
    _ours(
        "rebuild", "Rebuild 4x4 round-robin",
        "a probe opens one file in each of 16 cells and none that waits; for that it rewrites 7 "
        "cells at every update",
        name="rebuild", insertion=4, expiration=4,
    ),
    _ours(
        "no_rebuild", "NoRebuild 4x4 round-robin", _MARKS_ONLY,
        name="no_rebuild", insertion=4, expiration=4,
    ),
    _ours(
        "r_ins", "R-ins 12", _REWRITES_ALL,
        name="rebuild", insertion=12, expiration=1, placement="chronological",
    ),
    _ours(
        "d_ins", "D-ins 12", _MARKS_ONLY,
        name="no_rebuild", insertion=12, expiration=1, placement="chronological",
    ),
    _ours(
        "r_exp", "R-exp 12", _REWRITES_ALL,
        name="rebuild", insertion=1, expiration=12, placement="chronological",
    ),
    _ours(
        "d_exp", "D-exp 12", _MARKS_ONLY,
        name="no_rebuild", insertion=1, expiration=12, placement="chronological",
    ),
    _ours(
        "tiers", "Tiers(4,4)",
        "it writes a row again only when runs of one level are merged; half of what it stores is "
        "dead, and some updates are much larger than others",
        name="tiers", groups=4, fan_in=4,
    ),
    _ours(
        "sweep_merged", "Sweep(27,4) with a log that is merged every 10 updates",
        "made for long windows: groups are swept rarely, and a merged log keeps files few",
        name="sweep", groups=27, every=4, deletion_vectors=True, merge_log=10,
    ),
    Entry(
        "sweep_by_expiration", "ours",
        "Sweep(p,1) without deletion vectors: a partition for each expiration slot, by our commits",
        "each row is written once and dropped without a look; its files grow with the square of p",
        _by_expiration, "ours, whole files",
    ),
    _delta(
        "append_delete", "append, DELETE; no deletion vectors",
        "a DELETE by file rewrites all that holds an expired row, in one plain pass",
        deletion_vectors=False,
    ),
    _delta("append_delete_dv", "append, DELETE; deletion vectors", _MARKS_ONLY),
    _delta(
        "optimize", f"append, DELETE, OPTIMIZE every {OPTIMIZE_EVERY}; {_VECTORS_AND_FILES}",
        f"four of {OPTIMIZE_EVERY} updates only append and mark; its files are few, but not by key",
        optimize_every=OPTIMIZE_EVERY,
    ),
    _delta(
        "zorder", f"append, DELETE, OPTIMIZE ZORDER BY key at every update; {_VECTORS_AND_FILES}",
        "a probe opens one or two files instead of one for each slot that waits; for that it "
        "writes the whole table at every update",
        optimize_every=1, zorder=True,
    ),
    _delta(
        "zorder_no_dv",
        "append, DELETE, OPTIMIZE ZORDER BY key at every update; no deletion vectors, files of "
        f"{OPTIMIZED_FILE_MB} MB",
        "a probe opens one or two files instead of one for each slot that waits; for that it "
        "writes the whole table twice at every update",
        deletion_vectors=False, optimize_every=1, zorder=True,
    ),
    _delta(
        "zorder_1gb",
        "append, DELETE, OPTIMIZE ZORDER BY key at every update; deletion vectors, files of up to "
        "1 GB as Delta makes them unless told otherwise",
        "one file or a few; for that it writes the whole table at every update",
        optimize_every=1, zorder=True, file_bytes=DELTAS_FILE_BYTES,
    ),
    _delta(
        f"zorder_{OPTIMIZE_EVERY}",
        f"append, DELETE, OPTIMIZE ZORDER BY key every {OPTIMIZE_EVERY}; {_VECTORS_AND_FILES}",
        f"four of {OPTIMIZE_EVERY} updates only append and mark, the fifth rewrites the table; "
        "until then a probe opens the few new files besides",
        optimize_every=OPTIMIZE_EVERY, zorder=True,
    ),
    _delta(
        "liquid",
        f"CLUSTER BY (key), append, DELETE, OPTIMIZE every {OPTIMIZE_EVERY}; {_VECTORS_AND_FILES}",
        f"four of {OPTIMIZE_EVERY} updates only append and mark, the fifth rewrites the table by "
        "key; until then a probe opens the few new files besides",
        clustered=True, optimize_every=OPTIMIZE_EVERY,
    ),
    _delta(
        "by_expiration", "PARTITIONED BY expiration slot, append, drop the partition",
        "each row is written once and dropped without a look; its files grow with the square of p",
        deletion_vectors=False, partitioned_by="expiration_slot",
    ),
    _delta(
        "by_insertion", "PARTITIONED BY insertion slot, append, DELETE; deletion vectors",
        _MARKS_ONLY, partitioned_by="insertion_slot",
    ),
    Entry(
        "clickhouse_drop", "clickhouse",
        "MergeTree PARTITION BY expiration slot, ORDER BY key; ALTER TABLE DROP PARTITION",
        "another engine: a server's native code; each row is written once and dropped without a "
        "look, and merges in the background are not in its seconds",
        _clickhouse_partitions, "clickhouse", "chdb",
    ),
    Entry(
        "clickhouse", "clickhouse", "MergeTree ORDER BY key, TTL; background merges",
        "another engine: a server's native code and a sparse index of its own, merges in the "
        "background that are not in its seconds, and expired rows that stay visible until then",
        partial(_clickhouse, final=False), "clickhouse", "chdb",
    ),
    Entry(
        "clickhouse_final", "clickhouse",
        "MergeTree ORDER BY key, TTL; OPTIMIZE FINAL at every update",
        "another engine: a server's native code and a sparse index of its own; it merges the whole "
        "table at every update so that no expired row stays",
        partial(_clickhouse, final=True), "clickhouse", "chdb",
    ),
    Entry(
        "iceberg", "iceberg",
        "Iceberg 1.12 on Spark 4.1: append, DELETE (merge-on-read), rewrite_data_files sorted by "
        f"key every {OPTIMIZE_EVERY}; files of {OPTIMIZED_FILE_MB} MB",
        f"four of {OPTIMIZE_EVERY} updates only append and mark, the fifth rewrites the table by "
        "key; until then a probe opens the few new files besides",
        partial(_iceberg, rewrite_every=OPTIMIZE_EVERY), "iceberg", "iceberg",
    ),
    Entry(
        "limit_pyarrow", "limit", f"{_LIMIT}; the bytes of `{DEFAULT}` by pyarrow and delta-rs",
        "no system: it judges no row and is safe from nothing", _by_pyarrow, "limit, pyarrow",
    ),
    Entry(
        "limit_polars", "limit", f"{_LIMIT}; the bytes of `{DEFAULT}` by Polars and delta-rs",
        "no system: it judges no row and is safe from nothing", _by_polars, "limit, Polars",
        "polars",
    ),
)  # fmt: skip

SYSTEMS = {entry.name: entry for entry in ENTRIES}

FOR_LONG_WINDOWS = ("tiers", "sweep_merged")
"""They pay only for windows of hundreds of slots, and are left out elsewhere."""

LIMITS = tuple(entry.name for entry in ENTRIES if entry.is_limit)
SWEEPS = ("sweep", "sweep_log", "sweep_merged", "sweep_by_expiration")
"""Those of ours whose updates are held against the limits."""


def warming_up(entries: Iterable[Entry]) -> list[Entry]:
    """Who warms up for these: the first of each sort in the process that all share, even if only
    some of them are measured, so that a part of a run begins as the whole does. Of engines that
    are measured alone only those that are in it."""
    alone = {entry.sort for entry in entries if not entry.takes_turns}
    first: dict[str, Entry] = {}
    for entry in ENTRIES:
        if entry.takes_turns or entry.sort in alone:
            first.setdefault(entry.sort, entry)
    return list(first.values())
