"""update, check, plan, status, scan --slot and replay on one index, in the order of its life."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.cli.handmade import version
from tests.cli.runner import Outcome, tidetable
from tests.workspace import Row, Workspace, at, row

pytestmark = pytest.mark.spark

REPORT = [
    "slot", "as_of", "inserted", "expired", "dead_on_arrival", "quarantined", "live",
    "rewritten_rows", "written_bytes", "cells", "seconds", "version",
]  # fmt: skip

ROWS: list[Row] = [
    row(1, -1.5, 1.5),  # loaded with slot 0, expires in slot 2
    row(2, -0.5, 4.0),
    row(3, 0.5, 2.5),
    row(4, 0.9, 0.95),  # dead on arrival
    row(5, 1.0, 6.0),  # exactly on the edge: still slot 1
    row(6, 1.1, 3.3),
    row(7, 2.2, 1.9),  # expires before it came: bad
    row(8, 2.5, 7.0),
]


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("things"))
    workspace.add(ROWS)
    workspace.describe(end=at(3.5).isoformat())
    return workspace


@pytest.fixture(scope="module")
def checked(spark: SparkSession, things: Workspace) -> Outcome:
    """`check` before there is a table."""
    return tidetable("check", things.yaml, "--json")


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, things: Workspace, checked: Outcome) -> Outcome:
    return tidetable("update", things.yaml, "--slots", 0, "--json")


@pytest.fixture(scope="module")
def updated(things: Workspace, loaded: Outcome) -> Outcome:
    """Slots 1 to 3: more was asked for, but there the index ends."""
    return tidetable("update", things.yaml, "--slots", 9, "--json")


def ids(found: Outcome) -> list[int]:
    return sorted(one["id"] for one in found.objects)


def test_check_tells_what_waits_in_the_source_and_makes_nothing(checked: Outcome) -> None:
    (found,) = checked.objects
    assert found["ok"] is True
    assert (found["slot"], found["next_slot"]) == (None, 0)
    assert (found["read"], found["inserted"], found["quarantined"]) == (2, 2, 0)


def test_no_slots_means_the_load_alone(loaded: Outcome) -> None:
    assert (loaded.status, loaded.err) == (0, "")
    (found,) = loaded.objects
    assert list(found)[: len(REPORT)] == REPORT
    assert (found["slot"], found["as_of"]) == (0, "2024-03-01T00:00:00Z")
    assert (found["inserted"], found["live"], found["expired"]) == (2, 2, 0)


def test_an_update_for_programs(updated: Outcome) -> None:
    assert updated.status == 0
    found = updated.objects
    assert [one["slot"] for one in found] == [1, 2, 3]
    assert all(list(one)[: len(REPORT)] == REPORT for one in found)
    assert [one["inserted"] for one in found] == [2, 1, 1]
    assert [one["dead_on_arrival"] for one in found] == [1, 0, 0]
    assert [one["expired"] for one in found] == [0, 1, 1]
    assert [one["quarantined"] for one in found] == [0, 0, 1]
    assert [one["live"] for one in found] == [4, 4, 4]
    assert found[-1]["reasons"] == {"expires before it was inserted": 1}
    assert all(one["written_bytes"] > 0 and one["seconds"] > 0 for one in found)
    versions = [one["version"] for one in found]
    assert versions == list(range(versions[0], versions[0] + 3))


def test_at_the_end_of_the_index_it_goes_no_further(updated: Outcome) -> None:
    assert "things ends with slot 3, 2024-03-01T00:30:00Z" in updated.sentence


def test_with_nothing_left_an_update_says_so(things: Workspace, updated: Outcome) -> None:
    for options in ([], ["--slots", 1], ["--until", "2030-01-01T00:00:00Z"], ["--fold"]):
        found = tidetable("update", things.yaml, "--json", *options)
        assert (found.status, found.out) == (0, "")
        assert "Nothing to do: things stands at slot 3 already" in found.sentence


def test_status_after_updates(things: Workspace, updated: Outcome) -> None:
    (found,) = tidetable("status", things.yaml, "--json").objects
    assert (found["slot"], found["live"]) == (3, 4)
    assert sum(cell["rows"] for cell in found["cells"]) == 4


def test_plan_after_updates(things: Workspace, updated: Outcome) -> None:
    (found,) = tidetable("plan", things.yaml, "--json").objects
    assert (found["slot"], found["expiring"]) == (4, 2)
    assert found["rewritten_rows"] > 0


@pytest.mark.parametrize("engine", ["delta-rs", "spark"])
def test_an_earlier_update_can_be_read(things: Workspace, updated: Outcome, engine: str) -> None:
    expected = {0: [1, 2], 1: [1, 2, 3, 5], 2: [2, 3, 5, 6], 3: [2, 5, 6, 8]}
    # Spark takes its time: there the two ends will do.
    for slot, rows in expected.items() if engine == "delta-rs" else [(0, [1, 2]), (2, expected[2])]:
        options = ["--slot", slot, "--engine", engine, "--json"]
        assert ids(tidetable("scan", things.yaml, *options)) == rows
        (counted,) = tidetable("scan", things.yaml, "--count", *options).objects
        assert (counted["count"], counted["slot"]) == (len(rows), slot)


def test_alive_at_looks_ahead_but_not_back(things: Workspace, updated: Outcome) -> None:
    def alive(time: float, *more: object) -> Outcome:
        return tidetable("scan", things.yaml, "--alive-at", at(time).isoformat(), "--json", *more)

    assert ids(alive(3)) == [2, 5, 6, 8]
    assert ids(alive(3.3)) == [2, 5, 8]  # row 6 expires at 3.3, and is dead then
    assert ids(alive(4)) == [5, 8]
    assert ids(alive(2.6, "--slot", 2)) == [2, 5, 6]
    assert alive(2.9).status == 2


def test_the_time_of_insertion(things: Workspace, updated: Outcome) -> None:
    def inserted(*options: object) -> list[int]:
        return ids(tidetable("scan", things.yaml, "--json", *options))

    edge = at(1.0).isoformat()
    assert inserted("--inserted-from", edge) == [5, 6, 8]
    assert inserted("--inserted-to", edge) == [2, 5]
    assert inserted("--inserted-from", edge, "--inserted-to", edge) == [5]


# -- what changes the table comes last -------------------------------------------------------------


@pytest.fixture(scope="module")
def replayed(things: Workspace, updated: Outcome) -> tuple[int, Outcome]:
    before = version(things)
    return before, tidetable("replay", things.yaml, "--from", 3)


def test_a_dry_run_changes_nothing(things: Workspace, updated: Outcome) -> None:
    before = version(things)
    found = tidetable("replay", things.yaml, "--from", 3, "--dry-run")
    assert (found.status, found.out) == (0, "")
    assert "Nothing was changed." in found.sentence
    assert version(things) == before


def test_a_replay_brings_the_same_rows(things: Workspace, replayed: tuple[int, Outcome]) -> None:
    before, found = replayed
    assert found.status == 0
    assert version(things) > before
    assert ids(tidetable("scan", things.yaml, "--json")) == [2, 5, 6, 8]
    assert ids(tidetable("scan", things.yaml, "--slot", 1, "--json")) == [1, 2, 3, 5]


def test_an_update_for_people(replayed: tuple[int, Outcome]) -> None:
    _, found = replayed
    head, line, *_ = found.out.splitlines()
    assert head.split()[:4] == ["slot", "as", "of", "inserted"]
    assert line.split()[0] == "3"
    assert head.split()[-2:] == ["cells", "s"]  # no terminal: nothing is left out
    assert "1 bad row is in quarantine" in found.sentence


def test_what_spark_throws_is_a_sentence_and_status_1(
    spark: SparkSession, things: Workspace, updated: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        spark.sql("SELECT raise_error('a disk of the cluster is gone')").collect()

    monkeypatch.setattr("tidetable.engine.reading.frame", fails)
    found = tidetable("scan", things.yaml, "--engine", "spark")
    assert (found.status, found.out) == (1, "")
    assert "a disk of the cluster is gone" in found.sentence
    assert "TIDETABLE_DEBUG" in found.sentence
    assert "at org.apache" not in found.err
    assert len(found.err.splitlines()) <= 3


def test_a_fold_is_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.add(ROWS)
    workspace.describe()
    found = tidetable("update", workspace.yaml, "--until", at(3.9).isoformat(), "--fold", "--json")
    assert [one["slot"] for one in found.objects] == [0, 3]
    assert ids(tidetable("scan", workspace.yaml, "--json")) == [2, 5, 6, 8]
    refused = tidetable("scan", workspace.yaml, "--slot", 2)
    assert refused.status == 2
    assert "folded" in refused.sentence
