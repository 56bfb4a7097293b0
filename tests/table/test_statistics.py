"""Bounds that go into the log: every value lies between them, and what is not sure is left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.workspace import Workspace
from tidetable.core.columns import EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.table.bounds import TEXT_MAX
from tidetable.table.log import Log, open_log
from tidetable.table.statistics import (
    file_statistics,
    statistics_columns,
    statistics_property,
)

MOMENT = pa.timestamp("us", "UTC")


def log_with(folder: Path, kind: pa.DataType) -> Log:
    """The log of an empty table with one column, of which it keeps bounds."""
    DeltaTable.create(
        str(folder / "table"),
        pa.schema([("x", kind)]),
        configuration={"delta.dataSkippingStatsColumns": "`x`"},
    )
    log = open_log(str(folder / "table"))
    assert log is not None
    return log


def told(folder: Path, kind: pa.DataType, values: Sequence[Any], **options: Any) -> dict[str, Any]:
    log = open_log(str(folder / "table")) or log_with(folder, kind)
    file = folder / "file.parquet"
    pq.write_table(pa.table({"x": pa.array(values, kind)}), file, row_group_size=2, **options)
    found: dict[str, Any] = json.loads(file_statistics(log, file), parse_float=Decimal)
    return found


@pytest.mark.parametrize(
    ("kind", "values", "bounds"),
    [
        (pa.int64(), [3, None, -(2**63), 2**63 - 1], (-(2**63), 2**63 - 1)),
        (pa.int32(), [7, 3, 5], (3, 7)),
        (pa.string(), ["b", "ä", "日本", "", None], ("", "日本")),
        (pa.decimal128(20, 2), [Decimal("1234567890123456.78"), Decimal("-0.01")],
         (Decimal("-0.01"), Decimal("1234567890123456.78"))),
        (pa.date32(), [date(2024, 2, 29), date(1, 1, 1)], ("0001-01-01", "2024-02-29")),
        (MOMENT, [datetime(2024, 3, 1, 12, 0, 0, 1, UTC), datetime(987, 1, 1, tzinfo=UTC)],
         ("0987-01-01T00:00:00.000000Z", "2024-03-01T12:00:00.000001Z")),
        (pa.float64(), [1.5, -2.25], (Decimal("-2.25"), Decimal("1.5"))),
    ],
    ids=["long", "integer", "string", "decimal", "date", "timestamp", "double"],
)  # fmt: skip
def test_bounds_over_all_row_groups(
    tmp_path: Path, kind: pa.DataType, values: list[Any], bounds: tuple[Any, Any]
) -> None:
    found = told(tmp_path, kind, values)
    assert (found["minValues"]["x"], found["maxValues"]["x"]) == bounds
    assert found["numRecords"] == len(values)
    assert found["nullCount"] == {"x": values.count(None)}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), [None, None, None]),
        (pa.int64(), []),
        (pa.float64(), [1.0, float("inf")]),
        (MOMENT, [10**18]),  # in the year 33658, which Python does not know
        (pa.string(), ["a" * TEXT_MAX + "\U0010ffff"]),
    ],
    ids=["only nulls", "nothing", "infinite", "far away", "no greater prefix"],
)
def test_what_cannot_be_told_is_left_out(
    tmp_path: Path, kind: pa.DataType, values: list[Any]
) -> None:
    found = told(tmp_path, kind, values)
    assert found["minValues"] == found["maxValues"] == {}
    assert found["numRecords"] == len(values)


def test_a_file_without_statistics_has_a_row_count(tmp_path: Path) -> None:
    found = told(tmp_path, pa.int64(), [1, 2], write_statistics=False)
    assert found == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}


def test_times_of_another_unit_are_left_out(tmp_path: Path) -> None:
    found = told(tmp_path, MOMENT, [datetime(2024, 3, 1, tzinfo=UTC)], coerce_timestamps="ms")
    assert found["minValues"] == {}


@given(st.lists(st.text(max_size=3 * TEXT_MAX), min_size=1, max_size=6))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_text_lies_between_its_bounds(tmp_path: Path, values: list[str]) -> None:
    found = told(tmp_path, pa.string(), values)
    if found["minValues"]:
        low, high = (found[name]["x"].encode() for name in ("minValues", "maxValues"))
        assert all(low <= value.encode() <= high for value in values)


def test_names_of_columns_may_hold_anything(tmp_path: Path) -> None:
    DeltaTable.create(
        str(tmp_path / "table"),
        pa.schema([("a`b", pa.int64())]),
        configuration={"delta.dataSkippingStatsColumns": "`a``b`,`c`"},
    )
    log = open_log(str(tmp_path / "table"))
    assert log is not None
    assert statistics_columns(log) == ["a`b", "c"]


KINDS = {"key": "string", "inserted_at": "timestamp", "expires_at": "timestamp", "price": "decimal"}


def named(workspace: Workspace, kinds: dict[str, str], **changes: Any) -> list[str]:
    """The columns in the property that a table of this index gets."""
    (told,) = statistics_property(workspace.index(**changes), kinds).values()
    return told.split(",")


def test_what_updates_and_probes_look_at_has_bounds(workspace: Workspace) -> None:
    slots = ["`_insertion_slot`", "`_expiration_slot`"]
    times = ["`inserted_at`", "`expires_at`"]
    assert named(workspace, KINDS) == ["`key`", *times, *slots]
    for kind in ("binary", "boolean"):  # Delta refuses to be asked for them
        assert named(workspace, {**KINDS, "key": kind}) == [*times, *slots]
    lives = {"expires_at": None, "lifetime": "INTERVAL 1 HOUR"}
    told = named(workspace, KINDS, **lives)
    assert told == ["`key`", "`inserted_at`", "`_expires_at`", *slots]


def test_so_has_what_the_yaml_adds_once(workspace: Workspace) -> None:
    kinds = {**KINDS, "odd`one": "integer", "photo": "binary"}
    told = named(workspace, kinds, statistics=["price", "key", "odd`one", "photo", "nowhere"])
    assert told == [*named(workspace, KINDS), "`price`", "`odd``one`"]
    assert statistics_columns(log_named(workspace.folder, ",".join(told))) == [
        "key",
        "inserted_at",
        "expires_at",
        INSERTION_SLOT,
        EXPIRATION_SLOT,
        "price",
        "odd`one",
    ]


def log_named(folder: Path, columns: str) -> Log:
    path = str(folder / "named")
    configuration = {"delta.dataSkippingStatsColumns": columns}
    DeltaTable.create(path, pa.schema([("x", pa.int64())]), configuration=configuration)
    log = open_log(path)
    assert log is not None
    return log


def test_bounds_are_no_part_of_the_layout(workspace: Workspace) -> None:
    more = workspace.index(statistics=["price"])
    assert more.layout_fingerprint == workspace.index().layout_fingerprint
