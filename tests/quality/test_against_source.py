"""The live rows next to the source: what no count finds is found, named, and mended as told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tests.oracle.oracle import Oracle
from tests.steady import rows_of_every_slot
from tests.workspace import EVERY, SCHEMA, START, Workspace, row
from tidetable.cli import app
from tidetable.config import Index
from tidetable.engine.against_source import Difference, Kind, _hash_sql, compare_now
from tidetable.engine.commit import publish
from tidetable.engine.replay import replay
from tidetable.engine.staging import LATE
from tidetable.engine.updater import Updater
from tidetable.engine.workbench import Workbench
from tidetable.quality import Outcome, validate
from tidetable.quality.outcome import QualityFailed
from tidetable.table.forget import forget
from tidetable.table.state import IndexTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMES = {
    "plain": {"name": "sweep", "groups": 3},
    "deletion_vectors": {"name": "no_rebuild", "insertion": 2, "expiration": 3},
}


def stranger_says(spark: SparkSession, index: Index, statement: str, *, noted: bool) -> None:
    """Changes rows. Noted, it is a rebuild of ours that went wrong: nobody suspects the commit."""
    if not noted:
        spark.sql(statement.format(table=f"delta.`{index.table}`"))
        return
    state = IndexTable(index).state(trusting=True)
    assert state is not None
    with Workbench(state.log, None) as bench:
        spark.sql(statement.format(table=f"delta.`{bench.path}`"))
        outcome = bench.brought_over()
    publish(state.log, outcome.actions, state.note.as_rebuilt("wrong"), state.fence)


def judged(index: Index, **more: Any) -> Outcome:
    return validate(index, due_slot=None, reports=Path(index.table).parent / "reports", **more)


def advised(outcome: Outcome) -> int:
    """The slot that the error tells to replay from."""
    with pytest.raises(QualityFailed) as failed:
        outcome.require()
    told = re.search(r"tidetable replay things --from (\d+)", str(failed.value))
    assert told is not None
    return int(told[1])


def is_the_oracles(workspace: Workspace, slot: int) -> bool:
    """Whether the table has exactly the rows that live after the slot, whole."""
    oracle = Oracle(START, EVERY, 6 * EVERY)
    oracle.add(rows_of_every_slot())
    wanted = sorted((dict(one) for one in oracle.live_at_slot(slot)), key=lambda one: one["id"])
    stored = sorted(workspace.stored(), key=lambda one: one["id"])
    return [{name: one[name] for name in SCHEMA.names} for one in stored] == wanted


@pytest.mark.parametrize("kind", SCHEMES)
def test_a_row_replaced_by_another_is_found_and_mended_as_told(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """By the update that compares, and by its report; no count tells."""
    workspace = Workspace(tmp_path)
    workspace.add(rows_of_every_slot())
    quality = {"check_rows_every": 0, "against_source_every": 4}
    index = workspace.index(scheme=SCHEMES[kind], quality=quality)
    updater = Updater(spark, index)
    list(updater.catch_up(2, fold=True))
    list(updater.catch_up(3))
    stranger_says(spark, index, "UPDATE {table} SET key = 'hidden' WHERE id = 31", noted=True)
    (fourth,) = updater.catch_up(4)
    found = fourth.against_source
    assert found is not None
    assert (found["rows"], found["source_rows"], found["first"]) == (fourth.live, fourth.live, -1)
    assert (found["differs"], found["named"]) == (
        True, ["slot 3: 1 missing, 1 not in the source"]
    )  # fmt: skip
    outcome = judged(index)
    assert [finding.name for finding in outcome.failed] == ["against_source"]
    assert advised(outcome) == found["replay_from"] == 3
    list(replay(updater, 3))
    assert is_the_oracles(workspace, 4)
    assert judged(index).success


def test_what_statistics_show_is_mended_as_told(spark: SparkSession, tmp_path: Path) -> None:
    """Without a look at the source: the version to start from is right by the same checks."""
    workspace = Workspace(tmp_path)
    workspace.add(rows_of_every_slot())
    index = workspace.index(quality={"check_rows_every": 0})
    updater = Updater(spark, index)
    list(updater.catch_up(2, fold=True))
    list(updater.catch_up(3))
    stranger_says(spark, index, "UPDATE {table} SET key = '' WHERE id = 31", noted=True)
    list(updater.catch_up(5, fold=True))
    outcome = judged(index)
    assert [finding.name for finding in outcome.failed] == ["key"]
    assert advised(outcome) == 3  # 5 would put back a version that has the row
    list(replay(updater, 3))
    assert is_the_oracles(workspace, 5)

    # A stranger's commit that nobody has gone on from is undone by the last slot.
    stranger_says(spark, index, "UPDATE {table} SET key = 'x' WHERE id = 51", noted=False)
    assert advised(judged(index)) == 5
    told = CliRunner().invoke(
        app, ["validate", str(workspace.yaml), "--against-source", "--json"],
        env={"TIDETABLE_REPORTS": str(tmp_path / "reports")},
    )  # fmt: skip
    assert told.exit_code == 2
    said = json.loads(told.stdout.splitlines()[0])
    assert {one["name"] for one in said["failed"]} == {"foreign", "against_source"}
    assert said["figures"]["replay_from"] == 5
    list(replay(updater, 5))
    assert is_the_oracles(workspace, 5)
    assert not compare_now(spark, index).differences


@pytest.mark.parametrize("late", ["accept", "quarantine"])
def test_late_rows_are_no_damage_and_lost_ones_are_told(
    spark: SparkSession, tmp_path: Path, late: str
) -> None:
    workspace = Workspace(tmp_path)
    workspace.add(rows_of_every_slot())
    quality = {"check_rows_every": 0, "bad_rows_max": "100%"}
    index = workspace.index(source={"late": late, "recount_every": 4}, quality=quality)
    updater = Updater(spark, index)
    list(updater.catch_up(3))
    straggler = workspace.add([row(900, 1.5, 7)])
    before = compare_now(spark, index)
    assert before.differences == [Difference(2, 1, 0, 0, 2, 3, Kind.LATE)]
    assert not before.differs
    (fourth,) = updater.catch_up(4)
    assert fourth.late == 1
    assert compare_now(spark, index).differences == []
    straggler.unlink()
    after = compare_now(spark, index)
    if late == "quarantine":
        assert after.differences == []
        return
    assert after.differences == [Difference(2, 0, 1, 0, 3, 2, Kind.LOST)]
    outcome = judged(index, against_source=after.as_json())
    with pytest.raises(QualityFailed, match=r"The source no longer has rows .* --from 2"):
        outcome.require()


def test_a_late_row_that_the_quarantine_has_forgotten_is_not_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It lives on in the source for longer than its text is kept. Its digest goes with it."""
    workspace = Workspace(tmp_path)
    workspace.add(rows_of_every_slot())
    index = workspace.index(
        source={"late": "quarantine", "recount_every": 2}, quarantine={"keep_for": "0s"}
    )
    updater = Updater(spark, index)
    list(updater.catch_up(3))
    workspace.add([row(900, 2.5, 8), row(901, 2.5, 8, key="")])
    list(updater.catch_up(6))
    assert workspace.reasons(index) == [(4, LATE), (4, "no key")]
    assert forget(index, 6) == {"dropped_rows": 1, "digested_rows": 1}
    (kept,) = workspace.quarantined(index)
    assert re.fullmatch("sha256:[0-9a-f]{64}", kept["row"])
    assert compare_now(spark, index).differences == []
    assert forget(index, 9) == {"dropped_rows": 0, "digested_rows": 0}
    assert forget(index, 10) == {"dropped_rows": 1, "digested_rows": 0}


def test_a_version_that_is_wrong_is_no_place_to_start_from(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Slot 3 differs; but the version of slot 2 was wrong already, and that of slot 0 is not."""
    workspace = Workspace(tmp_path)
    workspace.add(rows_of_every_slot())
    index = workspace.index(quality={"check_rows_every": 0})
    updater = Updater(spark, index)
    list(updater.catch_up(1))
    # Row 10 is dead by slot 3: nothing of it is left to be found.
    stranger_says(spark, index, "UPDATE {table} SET key = 'hidden' WHERE id = 10", noted=True)
    list(updater.catch_up(3))
    statement = "UPDATE {table} SET _insertion_slot = 2, key = 'k9' WHERE id = 31"
    stranger_says(spark, index, statement, noted=True)
    found = compare_now(spark, index)
    assert [(one.slot, one.moved, one.kind) for one in found.differences] == [(3, 1, Kind.WRONG)]
    assert found.replay_from == 1
    list(replay(updater, 1))
    assert is_the_oracles(workspace, 3)


def test_no_two_different_rows_have_the_same_hash(spark: SparkSession) -> None:
    """Nulls that change places, what is nested, and texts that only look alike when joined."""
    rows = [
        "(1L, 'a', cast(null AS string), array('x', null), map('k', 1), named_struct('f', 1))",
        "(1L, cast(null AS string), 'a', array('x', null), map('k', 1), named_struct('f', 1))",
        "(1L, 'a', cast(null AS string), array(null, 'x'), map('k', 1), named_struct('f', 1))",
        "(1L, 'a', cast(null AS string), array('x', null), map('k', 2), named_struct('f', 1))",
        "(1L, 'a', cast(null AS string), array('x', null), map('k', 1), named_struct('f', 2))",
        "(1L, 'a', '', array('x', null), map('k', 1), named_struct('f', 1))",
        "(2L, 'a', cast(null AS string), array('x', null), map('k', 1), named_struct('f', 1))",
    ]
    names = "_expiration_slot, one, other, list, pairs, parts"
    frame = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t({names})")
    hashes = frame.selectExpr(f"{_hash_sql(frame.schema)} AS h").collect()
    assert len({one["h"] for one in hashes}) == len(rows)
