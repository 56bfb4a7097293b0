"""A source whose folders are not where its path says: told by `update`, `check` and the report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.runner import tidetable
from tests.workspace import SCHEMA, START, Workspace, row
from tidetable.config import Index
from tidetable.engine.updater import Updater
from tidetable.quality import Outcome, validate
from tidetable.quality.volume import of_preview

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOURS = 6  # to a slot: four slots are a day


@pytest.fixture
def days(tmp_path: Path) -> Workspace:
    """Rows in every slot of two days, in a folder for each day."""
    workspace = Workspace(tmp_path)
    for day in range(2):
        folder = workspace.source / f"day={START.day + day:02d}"
        folder.mkdir()
        rows = list(_rows_of_day(day))
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "part.parquet")
    return workspace


def _rows_of_day(day: int) -> Iterator[dict[str, Any]]:
    for hour in range(24):
        for number in range(10):
            slots = (day * 24 + hour + 0.5) * 6  # row() counts in slots of ten minutes
            one = row(day * 1000 + hour * 10 + number, slots, slots + 60)
            yield dict(one)


def described(workspace: Workspace, name: str = "day", **quality: Any) -> Index:
    return workspace.index(
        source={"path": f"{workspace.source}/{name}={{%d}}"},
        update_every=f"{HOURS}h",
        longest_lifetime="24h",
        quality={"check_rows_every": 0, "imbalance_max": 100, **quality},
    )


def outcome_of(index: Index) -> Outcome:
    return validate(index, due_slot=None, reports=Path(index.table).parent / "reports")


def names(outcome: Outcome) -> list[str]:
    """Without what a table that is drained looks like."""
    told = [finding.name for finding in outcome.warnings]
    return [name for name in told if name != "balance_as_predicted"]


def test_a_deleted_day_is_told_and_warned_of(spark: SparkSession, days: Workspace) -> None:
    index = described(days, volume={"over": 3})
    *_, fourth = Updater(spark, index).catch_up(4)
    # The slot ends at midnight; of the next day it has that moment only.
    assert fourth.folders == {"expected": 1, "missing": 0, "named": []}
    assert outcome_of(index).warnings == []
    gone = days.source / "day=02"
    shutil.rmtree(gone)
    (report,) = Updater(spark, index).catch_up(5)
    assert (report.inserted, report.folders) == (
        0, {"expected": 1, "missing": 1, "named": [str(gone)]}
    )  # fmt: skip
    outcome = outcome_of(index)
    assert (outcome.success, names(outcome)) == (True, ["folders", "volume"])
    assert [finding.sentence for finding in outcome.warnings[:2]] == [
        f"Every folder that source.path names for slot 5 is there. Found: {gone} is missing.",
        "Slot 5 brought as many rows as is usual at this time, 6 to 600. Found: 0 rows; the last 3 "
        "updates brought 60, by the median.",
    ]
    strict = outcome_of(described(days, volume={"over": 3, "on_failure": "fail"}))
    assert [finding.name for finding in strict.failed] == ["folders", "volume"]
    preview = Updater(spark, index).preview(6)
    assert of_preview(index, preview, 6)["warnings"] == [
        f"Of the folders that source.path names for slot 6, {gone} is missing.",
        "Slot 6 should bring 6 to 600 rows: 0 rows; the last 3 updates brought 60, by the median.",
    ]
    found = tidetable("check", days.yaml)
    assert f"warning: Of the folders that source.path names for slot 6, {gone}" in found.sentence
    assert found.status == 0
    # A slot that is not over has no volume yet.
    assert of_preview(index, preview, 5)["warnings"] == []


def test_a_wrong_pattern_is_told_before_there_is_a_table(
    spark: SparkSession, days: Workspace
) -> None:
    index = described(days, name="date")
    updater = Updater(spark, index)
    preview = updater.preview(16)
    (told,) = of_preview(index, preview, 16)["warnings"]
    assert told.startswith("Of the folders that source.path names, all 3 are missing: ")
    assert "date=01" in told
    first, second = updater.catch_up(1)
    assert (first.folders, second.live) == (None, 0)
    assert second.folders is not None
    assert second.folders["missing"] == 1
    assert names(outcome_of(index)) == ["folders"]
    right = Updater(spark, described(days)).preview(16)
    assert right["folders"] is None or not right["folders"]["missing"]
