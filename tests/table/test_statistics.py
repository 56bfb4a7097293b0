"""Bounds that go into the log: every value lies between them, and what is not sure is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tests.workspace import Workspace
from tidetable.core.columns import EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.table.log import Log, open_log
from tidetable.table.statistics import (
    statistics_columns,
    statistics_property,
)


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
