"""What a probe of one key reads, by how the same rows lie in files: bytes and milliseconds.

    python -m bench.layouts

Tables of a few files, made by pyarrow and committed by delta-rs, with as many keys as rows; no
system, no updates. docs/benchmark.md tells what it has shown about ZORDER and deletion vectors.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.transaction import AddAction
from rich.console import Console

from bench.run import KEYS_DELTA_RS, bytes_read
from bench.systems.catalog import GROUPS, SESSION
from bench.systems.optimize import OPTIMIZED_FILE_MB
from bench.workload import PAYLOAD_BYTES, ROW_BYTES
from tidetable.table.bounds import statistics_json
from tidetable.table.log import arrow
from tidetable.table.parts import GROUP_BYTES, PAGE_BYTES
from tidetable.table.read import query

MB = 1_000_000
ROUNDS = 5
SEED = 7
DELTAS_PAGE_BYTES = int(SESSION["spark.hadoop.parquet.page.size"])
console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Layout:
    """Files of a table, and whether deletion vectors are enabled in it; there is none of them."""

    name: str
    files: Sequence[pa.Table]
    page_bytes: int
    vectors: bool = False


def layouts(rows: pa.Table, random: np.random.Generator) -> Iterator[Layout]:
    """The same rows as Sweep and as ZORDER leave them, and as nobody does."""
    waiting = GROUPS * (GROUPS + 1) // 2
    by_key = _cut(rows.sort_by("key"), ceil(rows.num_rows * ROW_BYTES / (OPTIMIZED_FILE_MB << 20)))
    # Delta cuts the table by key and leaves the rows inside a file as they come.
    shuffled = [file.take(pa.array(random.permutation(file.num_rows))) for file in by_key]
    ours = [file.sort_by("key") for file in _cut(rows, waiting)]
    yield Layout(f"Sweep({GROUPS},1): {waiting} files, sorted", ours, PAGE_BYTES)
    yield Layout("ZORDER, vectors enabled", shuffled, DELTAS_PAGE_BYTES, vectors=True)
    yield Layout("ZORDER, no vectors", shuffled, DELTAS_PAGE_BYTES)
    yield Layout("ZORDER, no vectors, sorted inside", by_key, PAGE_BYTES)


def made(layout: Layout, folder: Path) -> Path:
    """The layout as a table."""
    schema = layout.files[0].schema
    properties = {"delta.enableDeletionVectors": str(layout.vectors).lower()}
    DeltaTable.create(str(folder), schema, configuration=properties)
    added = []
    for number, file in enumerate(layout.files):
        path = folder / f"part-{number}.parquet"
        pq.write_table(
            file, path, row_group_size=GROUP_BYTES // ROW_BYTES, compression="snappy",
            use_dictionary=False, data_page_size=layout.page_bytes,
            write_batch_size=max(1, layout.page_bytes // (2 * ROW_BYTES)),
            write_page_index=True, store_schema=False,
        )  # fmt: skip
        keys = pc.min_max(file.column("key"))
        bounds = {"key": (str(keys["min"]), str(keys["max"]))}
        stats = statistics_json(file.num_rows, bounds, {"key": 0})
        added.append(AddAction(path.name, path.stat().st_size, {}, 0, True, stats))
    DeltaTable(str(folder)).create_write_transaction(added, "append", schema)
    return folder


def probed(table: Path, keys: Sequence[int], builder: Callable[[DeltaTable], QueryBuilder]) -> str:
    """Bytes and milliseconds of a probe, medians."""
    read, took = [], []
    for key in [keys[0], *keys * ROUNDS]:  # the first finds files that nobody has read yet
        before, began = bytes_read() or 0, time.monotonic()
        answer = builder(DeltaTable(str(table))).execute(f"SELECT * FROM t WHERE key = {key}")
        arrow(answer).read_all()
        took.append(1000 * (time.monotonic() - began))
        read.append(((bytes_read() or 0) - before) / MB)
    return f"{median(read[1:]):6.2f} MB {median(took[1:]):7.1f} ms"


def _one_by_core(table: DeltaTable) -> QueryBuilder:
    return QueryBuilder().register("t", table)


def _cut(rows: pa.Table, files: int) -> list[pa.Table]:
    step = ceil(rows.num_rows / files)
    return [rows.slice(at, step) for at in range(0, rows.num_rows, step)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.layouts")
    parser.add_argument("--live-mb", type=int, default=64)
    live = parser.parse_args().live_mb * MB
    random = np.random.default_rng(SEED)
    number = live // ROW_BYTES
    payload = [random.bytes(PAYLOAD_BYTES // 2).hex() for _ in range(number)]
    keys = random.integers(1, number + 1, number).astype("int32")
    rows = pa.table({"key": keys, "payload": payload})
    wanted = [int(key) for key in keys[:KEYS_DELTA_RS]]
    with tempfile.TemporaryDirectory(prefix="tidetable-layouts-") as folder:
        for place, layout in enumerate(layouts(rows, random)):
            table = made(layout, Path(folder, str(place)))
            usual, at_once = (probed(table, wanted, how) for how in (_one_by_core, query))
            console.print(f"{layout.name:36} {usual} | 8 files at once {at_once}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
