"""Two indexes over one source with every kind of column, copied after all that changes a table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.oracle.oracle import Oracle
from tests.workspace import EVERY, SCHEMA, START, Row, Workspace, log_of, row
from tidetable.engine.rebuild import rebuild
from tidetable.engine.replay import replay
from tidetable.engine.updater import Updater
from tidetable.table.upkeep import maintain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidetable.config import Index

PLAIN = "plain"
VECTORS = "deletion vectors"
SCHEMES: dict[str, dict[str, Any]] = {
    PLAIN: {"name": "sweep", "groups": 3},
    VECTORS: {"name": "no_rebuild", "insertion": 2, "expiration": 2},
}

LAST = 5
"""Rows arrive up to this slot."""

STAGES = {"updates": 2, "fold": 4, "replay": 4, "rebuild": 4, "maintain": LAST}
"""What was done last, and the slot at which the table then stands."""

_POINT = pa.struct([("lat", pa.float64()), ("lon", pa.float64())])
_LEG = pa.struct([("stop", pa.string()), ("fare", pa.decimal128(12, 2))])
COLUMNS = pa.schema(
    [
        *SCHEMA,
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("whole", pa.int32()),
        ("single", pa.float32()),
        ("ratio", pa.float64()),
        ("is_open", pa.bool_()),
        ("price", pa.decimal128(9, 2)),
        ("balance", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("seen_at", pa.timestamp("us", "UTC")),
        ("payload", pa.binary()),
        ("place", pa.struct([("city", pa.string()), ("point", _POINT)])),
        ("tags", pa.list_(pa.string())),
        ("notes", pa.map_(pa.string(), pa.decimal128(12, 2))),
        ("legs", pa.list_(_LEG)),
    ]
)


def source_rows() -> Iterator[Row]:
    """Five rows for each slot; of these one has no value wherever a value may be missing."""
    number = 0
    for slot in range(-1, LAST + 1):
        for lives in (0.5, 1.5, 3, 4.5, 5.5):
            number += 1
            values = {} if number % 5 == 2 else _values(number)
            yield row(number, slot, slot + lives, **values)


def _values(number: int) -> dict[str, Any]:
    legs = [{"stop": "Zürich", "fare": Decimal(number)}, {"stop": None, "fare": None}]
    return {
        "tiny": number - 100,
        "small": -number,
        "whole": 2**31 - number,
        "single": number / 8,
        "ratio": -number / 3,
        "is_open": number % 2 == 0,
        "price": Decimal(f"{number}.25"),
        "balance": Decimal(f"-{number}234567890123456789.0123456789"),
        "day": date(1969, 12, 1) + timedelta(days=number),
        "seen_at": datetime(1999, 12, 31, 23, 59, 59, number, UTC),
        "payload": bytes([0, number, 255]),
        "place": {"city": f"Ort '{number}'", "point": {"lat": 47.5, "lon": None}},
        "tags": [] if number % 5 == 1 else ["", f"t{number}", None],
        "notes": {"a": Decimal(number), "b": None} if number % 2 else {},
        "legs": legs[: number % 3],
    }


def expected(slot: int) -> list[Row]:
    """The rows that live after the update of this slot, by the oracle."""
    oracle = Oracle(START, EVERY, 6 * EVERY)
    oracle.add(source_rows())
    return list(oracle.live_at_slot(slot))


def make(spark: SparkSession, folder: Path, kind: str) -> dict[str, Path]:
    """Makes the index of this kind; where its table was copied to after each stage."""
    workspace = Workspace(folder)
    workspace.add(source_rows(), schema=COLUMNS)
    index = workspace.index(scheme=SCHEMES[kind], keep_versions_for="1h")
    copies = {}
    for stage in STAGES:
        _do(stage, Updater(spark, index), index)
        copies[stage] = folder / stage
        shutil.copytree(workspace.table, copies[stage])
        # Else the column of tables with deletion vectors would be about plain ones.
        hides = log_of(index).deleted_rows() != {}
        assert hides == (kind == VECTORS and stage != "rebuild"), f"{kind} after {stage}"
    return copies


def _do(stage: str, updater: Updater, index: Index) -> None:
    slot = STAGES[stage]
    if stage == "replay":
        list(replay(updater, slot - 1))  # the fold too: back to the updates before it
    elif stage == "rebuild":
        rebuild(updater)
    else:
        list(updater.catch_up(slot, fold=stage == "fold"))
    if stage == "maintain":
        done = maintain(index, force=True, now=datetime.now(UTC) + timedelta(days=9))
        assert done["deleted_files"] > 0
        assert done["checkpoints"]
