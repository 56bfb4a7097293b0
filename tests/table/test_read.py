"""Reading without a JVM."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tidetable.table.log import arrow
from tidetable.table.read import FILES_AT_ONCE, query


def test_a_probe_opens_several_files_at_a_time(tmp_path: Path) -> None:
    """However few cores there are: a probe waits for files more than it computes."""
    # Tables below 10 MB are read one file after the other in any case.
    text = pa.array([Random(0).randbytes(1_000_000)] * 2)
    table = pa.table({"key": [0, 10], "text": text})
    for _ in range(2 * FILES_AT_ONCE):
        write_deltalake(str(tmp_path), table, mode="append")
    asked = query(DeltaTable(str(tmp_path))).execute("EXPLAIN SELECT text FROM t WHERE key = 5")
    plan = "\n".join(arrow(asked).read_all().column("plan").to_pylist())
    found = re.search(r"file_groups=\{(\d+) groups", plan)
    assert found is not None, plan
    assert int(found[1]) >= FILES_AT_ONCE
