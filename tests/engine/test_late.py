"""Rows that the source shows only after their slot was done are found by a recount."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from tests.workspace import Workspace, row
from tidetable.engine.late import recount_slot
from tidetable.engine.updater import Updater

pytestmark = pytest.mark.spark


def test_every_nth_update_recounts_folded_or_not(workspace: Workspace) -> None:
    index = workspace.index(source={"recount_every": 3})
    assert [recount_slot(index, slot, slot) for slot in range(1, 8)] == [
        None, None, 3, None, None, 6, None,
    ]  # fmt: skip
    assert recount_slot(index, 4, 5) is None
    assert recount_slot(index, 4, 20) == 6
    never = workspace.index(source={"recount_every": 0})
    assert recount_slot(never, 1, 1000) is None


def test_late_rows_are_taken_by_the_next_recount(spark: SparkSession, workspace: Workspace) -> None:
    """Live, dead and bad ones; an equal row is a new row; none is taken twice."""
    known = row(1, 0.5, 6)
    workspace.add([known, row(2, 1.5, 7)])
    index = workspace.index(source={"recount_every": 2})
    updater = Updater(spark, index)
    list(updater.catch_up(1))
    # Less than a millisecond apart from the known row, and otherwise equal to it.
    near = known | {"expires_at": known["expires_at"] + timedelta(microseconds=7)}
    workspace.add(
        [
            near,
            known,
            row(3, 0.7, 5.5),
            row(4, 0.7, 1.5),  # dead before anybody saw it
            row(5, 0.7, 2),  # dies on the edge of the slot that finds it
            row(6, 0.7, 4, key=""),
            row(7, 0.7, 8),
        ]
    )
    (second,) = updater.catch_up(2)
    assert second.late == 7
    assert (second.inserted, second.dead_on_arrival, second.quarantined) == (1 + 3, 2, 2)
    assert second.reasons == {"no key": 1, "outlives the longest lifetime": 1}
    stored = sorted(
        (one["id"], one["_insertion_slot"], one["expires_at"]) for one in workspace.stored()
    )
    assert stored == sorted(
        [
            (1, 1, known["expires_at"]),
            (1, 2, known["expires_at"]),
            (1, 2, near["expires_at"]),
            (2, 2, row(2, 1.5, 7)["expires_at"]),
            (3, 2, row(3, 0.7, 5.5)["expires_at"]),
        ]
    )
    bad = [(one["slot"], json.loads(one["row"])["id"]) for one in workspace.quarantined(index)]
    assert bad == [(2, 6), (2, 7)]

    # The next recount looks at slots 2 and 3, and finds one more row of slot 2.
    workspace.add([row(8, 1.2, 6)])
    third, fourth = updater.catch_up(4)
    assert (third.late, fourth.late, fourth.inserted, fourth.missing) == (0, 1, 1, 0)
    assert workspace.slots()[8] == (4, 6)
    assert workspace.ids() == [1, 1, 1, 2, 3, 8]
    (sixth,) = updater.catch_up(6, fold=True)
    assert (sixth.late, sixth.missing, sixth.inserted) == (0, 0, 0)


def test_late_rows_are_quarantined_where_the_yaml_says_so(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Once: two recounts look at the same slot. Dead ones are counted, bad ones keep the reason."""
    workspace.add([row(1, 0.5, 6), row(2, 1.5, 7), row(3, 2.5, 6)])
    index = workspace.index(source={"recount_every": 2, "late": "quarantine"})
    updater = Updater(spark, index)
    list(updater.catch_up(3, fold=True))
    late = row(4, 2.7, 6)
    workspace.add([late, row(5, 2.7, 3.2), row(6, 2.7, 6, key="")])
    (fourth,) = updater.catch_up(4)
    assert (fourth.late, fourth.inserted, fourth.dead_on_arrival) == (3, 0, 1)
    assert fourth.reasons == {"arrived late": 1, "no key": 1}
    assert workspace.reasons(index) == [(4, "arrived late"), (4, "no key")]
    assert workspace.ids() == [1, 2, 3]
    # One equal to the quarantined row, found by the same recount if it had been there.
    assert [report.late for report in updater.catch_up(6)] == [0, 0]
    assert workspace.reasons(index) == [(4, "arrived late"), (4, "no key")]


def test_rows_that_vanish_from_the_source_are_reported_and_change_nothing(
    spark: SparkSession, workspace: Workspace
) -> None:
    """A slot that lost a row and a slot that got one, in one recount."""
    workspace.add([row(1, 0.5, 6)])
    gone = workspace.add([row(2, 0.5, 6), row(3, 0.5, 6)])
    workspace.add([row(4, 1.5, 6)])
    index = workspace.index(source={"recount_every": 3})
    updater = Updater(spark, index)
    list(updater.catch_up(2, fold=True))
    gone.unlink()
    workspace.add([row(5, 1.7, 6)])
    (third,) = updater.catch_up(3)
    assert (third.missing, third.late, third.inserted) == (2, 1, 1)
    assert workspace.ids() == [1, 2, 3, 4, 5]
