"""Updates on real Delta, in small steps that can be followed by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.workspace import SCHEMA, Workspace, row
from tidetable.core.errors import UserError
from tidetable.engine import updater as update
from tidetable.engine.staging import BatchCounts, counted
from tidetable.engine.updater import Updater
from tidetable.table.read import batches, rows, view
from tidetable.table.restriction import Restriction
from tidetable.table.state import IndexTable

pytestmark = pytest.mark.spark


def ids(workspace: Workspace, **changes: object) -> list[int]:
    seen = view(workspace.index(**changes))
    return sorted(one["id"] for batch in batches(seen, Restriction()) for one in rows(batch))


def test_a_row_lives_from_its_arrival_slot_to_its_expiration_slot(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Row 2 arrives in slot 1 and expires on the edge of slot 3: it is gone after update 3."""
    workspace.add([row(1, -0.5, 2.5), row(2, 0.5, 3), row(3, 1, 1.7), row(4, 2.1, 2.9)])
    index = workspace.index()
    reports = {report.slot: report for report in Updater(spark, index).catch_up(3)}
    assert list(reports) == [0, 1, 2, 3]
    assert [reports[slot].live for slot in range(4)] == [1, 3, 2, 0]
    assert reports[3].dead_on_arrival == 1
    assert reports[3].expired == 2
    assert ids(workspace) == []


def test_the_tasks_that_write_count_the_batch(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of its own counts a load, and the update after it: nobody knows yet what to expect."""
    for slot in range(1, 5):
        good = [row(10 * slot + n, slot - 0.5, slot + n) for n in range(3)]
        workspace.add(good[:2])
        workspace.add([*good[2:], row(10 * slot + 9, slot - 0.5, slot + 1, key="")])
    counts = []

    def noted(batch: DataFrame, **how: Any) -> BatchCounts:
        counts.append(counted(batch, **how))
        return counts[-1]

    monkeypatch.setattr(update, "counted", noted)
    many = list(Updater(spark, workspace.index()).catch_up(4))
    assert [one.read for one in counts] == [0, 4]
    assert [(one.inserted, one.dead_on_arrival, one.reasons) for one in many[1:]] == [
        (2, 1, {"no key": 1})
    ] * 4


def test_a_changed_retention_is_taken_over_by_the_next_update(
    spark: SparkSession, workspace: Workspace
) -> None:
    """keep_versions_for is no part of the layout: it may change, at the cost of one ALTER."""
    workspace.add([row(1, 0.5, 4)])
    list(Updater(spark, workspace.index()).catch_up(0))
    index = workspace.index(keep_versions_for="3d")
    versions = [report.version for report in Updater(spark, index).catch_up(2)]
    kept = IndexTable(index).required_state().log.properties["delta.deletedFileRetentionDuration"]
    assert kept == "interval 259200 seconds"
    assert versions == [2, 4]


def test_a_column_name_that_delta_cannot_store_is_named(
    spark: SparkSession, workspace: Workspace
) -> None:
    workspace.add([row(1, 0.5, 4) | {"a b": 1}], schema=SCHEMA.append(pa.field("a b", pa.int64())))
    with pytest.raises(UserError, match="'a b' has a blank"):
        list(Updater(spark, workspace.index()).catch_up(0))
