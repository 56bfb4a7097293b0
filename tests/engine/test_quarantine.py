"""Bad rows are put aside with the reason, once, and never silently away."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.workspace import SCHEMA, Workspace, at, row
from tidetable.core.errors import UserError
from tidetable.engine import updater as update
from tidetable.engine.replay import replay
from tidetable.engine.updater import Updater
from tidetable.table.forget import forget
from tidetable.table.log import open_log

pytestmark = pytest.mark.spark

UNREADABLE = "no readable arrival time"


def version(path: object) -> int:
    log = open_log(str(path))
    assert log is not None
    return log.version


def test_each_kind_of_bad_row_is_quarantined_with_its_reason(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Typed source. The good row goes in, the dead one is counted, each bad one has its reason."""
    workspace.add(
        [
            row(1, 0.5, 3),
            row(2, 0.5, 1),  # dead on arrival: exactly at the end of its slot
            row(3, 0.5, 3) | {"key": None},
            row(4, 0.5, 3, key=""),
            row(5, 0.5, 3) | {"arrived_at": None},
            row(6, 0.5, 3) | {"inserted_at": None},
            row(7, 0.5, 3) | {"expires_at": None},
            row(8, 0.5, 0.4),
            row(9, 0.5, 3) | {"inserted_at": at(0.6)},
            row(10, 0.5, 6.5),  # exactly as long as a row may live
            row(11, 0.5, 6.501),
        ]
    )
    index = workspace.index()
    load, first = Updater(spark, index).catch_up(1)
    assert load.reasons == {UNREADABLE: 1}
    assert first.reasons == {
        "no key": 2,
        "no readable insertion time": 1,
        "no readable expiration time": 1,
        "expires before it was inserted": 1,
        "inserted after it arrived": 1,
        "outlives the longest lifetime": 1,
    }
    assert (first.inserted, first.dead_on_arrival, first.quarantined, first.live) == (2, 1, 7, 2)
    assert workspace.ids() == [1, 10]
    found = workspace.quarantined(index)
    reasons = {json.loads(one["row"])["id"]: one["reason"] for one in found}
    assert reasons == {
        3: "no key",
        4: "no key",
        5: UNREADABLE,
        6: "no readable insertion time",
        7: "no readable expiration time",
        8: "expires before it was inserted",
        9: "inserted after it arrived",
        11: "outlives the longest lifetime",
    }
    assert {one["slot"] for one in found if one["reason"] != UNREADABLE} == {1}
    assert {one["arrived_at"] for one in found} == {at(0.5), None}


def test_text_that_does_not_parse_is_quarantined_as_it_came(
    spark: SparkSession, workspace: Workspace
) -> None:
    """CSV: a time, a number, and a line with too few fields."""
    columns = ("id", "key", "arrived_at", "inserted_at", "expires_at", "seats")
    workspace.add_csv(
        [
            row(1, 0.5, 3, seats="180"),
            row(2, 0.5, 3, seats="many"),
            row(3, 0.5, 3, seats="1") | {"inserted_at": "yesterday"},
            row(4, 0.5, 3, seats="1") | {"expires_at": "2024-02-30T00:00:00Z"},
            row(5, 0.5, 3, seats="1") | {"arrived_at": "2024-03-01 00:05"},
            row(6, 0.5, 3, seats=""),
        ],
        columns,
    )
    short = f"7,k,{at(0.5).isoformat()}\n"
    workspace.add_text(",".join(columns) + "\n" + short, "csv")
    index = workspace.index(source={"format": "csv", "schema": "id bigint, seats int"})
    load, first = Updater(spark, index).catch_up(1)
    assert load.reasons == {UNREADABLE: 1}
    assert first.reasons == {
        "wrong type: seats": 1,
        "no readable insertion time": 1,
        "no readable expiration time": 1,
        "not readable as a record": 1,
    }
    stored = {one["id"]: one["seats"] for one in workspace.stored()}
    assert stored == {1: 180, 6: None}
    rows = [json.loads(one["row"]) for one in workspace.quarantined(index)]
    assert {one["seats"] for one in rows if one["id"] == "2"} == {"many"}
    assert {one["inserted_at"] for one in rows if one["id"] == "3"} == {"yesterday"}


def test_json_of_the_wrong_type_and_broken_json_are_quarantined(
    spark: SparkSession, workspace: Workspace
) -> None:
    """A record that is no JSON has no arrival time either: it is quarantined once."""
    workspace.add_json(
        [row(1, 0.5, 3), row(2, 0.5, 3) | {"id": "two"}, row(3, 1.5, 3) | {"expires_at": 12}]
    )
    workspace.add_text('{"id": 4, "key": "k", "arrived_at": \n', "json")
    index = workspace.index(source={"format": "json", "schema": "id bigint, key string"})
    reports = list(Updater(spark, index).catch_up(2))
    assert [report.reasons for report in reports] == [
        {UNREADABLE: 1},
        {"not readable as a record": 1},
        {"no readable expiration time": 1},
    ]
    assert workspace.ids() == [1]
    rows = {one["slot"]: one["row"] for one in workspace.quarantined(index)}
    assert '\\"arrived_at\\":' in rows[0]
    assert '\\"two\\"' in rows[1]


def test_an_unreadable_arrival_is_quarantined_once_however_often_it_is_read(
    spark: SparkSession, workspace: Workspace
) -> None:
    """It is in every batch, also in those of a replay; equal rows are different rows."""
    unreadable = row(1, 0.5, 3) | {"arrived_at": None}
    workspace.add([unreadable, unreadable, row(2, 0.5, 3)])
    index = workspace.index()
    updater = Updater(spark, index)
    assert [report.quarantined for report in updater.catch_up(1)] == [2, 0]
    # Kept for long enough, only their digests are left: they are known by these.
    assert forget(index, 5000) == {"dropped_rows": 0, "digested_rows": 2}
    assert [report.quarantined for report in updater.catch_up(2)] == [0]
    # One more, equal to those before, when the table stands at slot 2.
    workspace.add([unreadable, row(3, 2.5, 5)])
    assert [report.quarantined for report in updater.catch_up(3)] == [1]
    assert workspace.reasons(index) == [(0, UNREADABLE)] * 2 + [(3, UNREADABLE)]
    # The replay meets the third row two slots earlier than before.
    reports = list(replay(Updater(spark, index), 2))
    assert [report.quarantined for report in reports] == [1, 0]
    assert workspace.reasons(index) == [(0, UNREADABLE)] * 2 + [(2, UNREADABLE)]
    assert workspace.ids() == [3]


def test_more_bad_rows_than_allowed_fail_the_update_and_change_nothing(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Two of three rows are bad; a third may be. A wrong YAML can be corrected afterwards."""
    workspace.add([row(0, -0.5, 3), row(1, 0.5, 3), row(2, 0.5, 3, key=""), row(3, 0.5, 3, key="")])
    half = workspace.index(quality={"bad_rows_max": "50%"})
    list(Updater(spark, half).catch_up(0))
    before = version(workspace.table)
    with pytest.raises(UserError, match=r"2 of the 3 rows for slot 1 .*no key: 2.*allows 50%"):
        list(Updater(spark, half).catch_up(1))
    assert version(workspace.table) == before
    assert workspace.quarantined(half) == []
    lenient = workspace.index(quality={"bad_rows_max": 2})
    assert [report.quarantined for report in Updater(spark, lenient).catch_up(1)] == [2]


def test_a_first_load_of_bad_rows_leaves_no_table_behind(
    spark: SparkSession, workspace: Workspace
) -> None:
    """The YAML named a wrong column: with the right one the same place can be used."""
    workspace.add([row(0, -0.5, 3), row(1, -0.5, 2)])
    wrong = workspace.index(expires_at="other", quality={"bad_rows_max": 0})
    workspace.source.joinpath("part-0001.parquet").unlink()
    schema = SCHEMA.append(SCHEMA.field("expires_at").with_name("other"))
    workspace.add([row(0, -0.5, 3), row(1, -0.5, 2)], schema=schema)
    with pytest.raises(UserError, match="no readable expiration time: 2"):
        list(Updater(spark, wrong).catch_up(0))
    right = workspace.index(quality={"bad_rows_max": 0})
    assert [report.live for report in Updater(spark, right).catch_up(0)] == [2]


@pytest.mark.parametrize("fold_first", [False, True], ids=["one_by_one", "after_a_fold"])
def test_a_repeated_update_does_not_double_the_quarantine(
    spark: SparkSession,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    fold_first: bool,
) -> None:
    """The first attempt got as far as the quarantine; the second may cover other slots."""
    unreadable = row(9, 0.5, 3) | {"arrived_at": None}
    workspace.add([row(1, 0.5, 3), row(2, 0.5, 3, key=""), row(3, 1.5, 3, key="")])
    index = workspace.index()
    list(Updater(spark, index).catch_up(0))
    workspace.add([unreadable])

    def crash(*_: Any) -> None:
        raise RuntimeError("the power is gone")

    with monkeypatch.context() as patch:
        patch.setattr(update, "write_commit", crash)
        with pytest.raises(RuntimeError, match="power"):
            list(Updater(spark, index).catch_up(2, fold=fold_first))
    assert Counter(reason for _, reason in workspace.reasons(index))["no key"] == 1 + fold_first

    reports = list(Updater(spark, index).catch_up(2))
    assert [report.quarantined for report in reports] == [2, 1]
    assert workspace.reasons(index) == [(1, "no key"), (1, UNREADABLE), (2, "no key")]
    assert workspace.ids() == [1]


def test_bad_rows_that_were_corrected_before_the_second_attempt_leave_the_quarantine(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is what the update that was committed saw."""
    good = workspace.add([row(1, 0.5, 3)])
    index = workspace.index()
    list(Updater(spark, index).catch_up(0))
    bad = workspace.add([row(2, 0.5, 3, key="")])

    def crash(*_: Any) -> None:
        raise RuntimeError("the power is gone")

    with monkeypatch.context() as patch:
        patch.setattr(update, "write_commit", crash)
        with pytest.raises(RuntimeError, match="power"):
            list(Updater(spark, index).catch_up(1))
    assert workspace.reasons(index) == [(1, "no key")]
    bad.unlink()
    assert [report.inserted for report in Updater(spark, index).catch_up(1)] == [1]
    assert workspace.reasons(index) == []
    assert good.exists()
