"""status of all indexes, history and quarantine, with no Java anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.cli.handmade import make_table, make_update
from tests.cli.runner import tidetable
from tests.page.pages import Project
from tests.workspace import Workspace, at, row
from tidetable.config import Index
from tidetable.table.beside import QUARANTINE, QUARANTINE_PROPERTIES, Kind, own_table
from tidetable.table.history import Updates
from tidetable.table.reasons import Reason, blamed_column


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("This must not start Spark.")

    monkeypatch.setattr("tidetable.cli.running.start_spark", started)


# -- all indexes -----------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    return Project(tmp_path)


def test_a_project_without_indexes_says_where_they_belong(project: Project) -> None:
    found = tidetable("status")
    assert (found.status, found.out) == (2, "")
    assert "include/indexes" in found.sentence


def test_all_indexes_in_one_table(project: Project) -> None:
    project.make("good", [row(1, 0, 5)], end="2024-03-01T00:05:00Z")
    project.make("old", [row(1, 0, 5)])
    hurt = project.make("hurt", [row(1, 0, 5)])
    next((Path(hurt.table) / "_delta_log").glob("*.json")).write_text("{")
    (project.indexes / "wrong.yaml").write_text("name: wrong\n")

    by_name = {one["index"]: one for one in tidetable("status", "--json").objects}
    assert list(by_name) == ["good", "hurt", "old", "wrong"]
    assert list(by_name["good"]) == [
        "index", "file", "scheme", "slot", "as_of", "live", "due", "lag", "health", "sentence",
    ]  # fmt: skip
    assert (by_name["good"]["health"], by_name["good"]["lag"]) == ("ok", 0)
    assert (by_name["good"]["slot"], by_name["good"]["live"]) == (0, 1)
    assert by_name["old"]["health"] == "late"
    assert by_name["old"]["lag"] == by_name["old"]["due"] > 1000
    assert by_name["hurt"]["slot"] is None
    assert by_name["wrong"]["health"] == "broken"

    found = tidetable("status")
    assert found.status == 0
    lines = {line.split()[0]: line for line in found.out.splitlines()}
    assert list(lines) == ["index", "good", "hurt", "old", "wrong"]
    assert lines["good"].rstrip().endswith("ok")
    assert "late" in lines["old"]
    assert "updates behind: slot" in lines["old"]
    assert "include/indexes/wrong.yaml" in lines["wrong"]
    assert all(len(line) < 140 for line in lines.values())


def test_a_narrow_terminal_keeps_name_slot_lag_and_health(project: Project) -> None:
    project.make("old", [row(1, 0, 5)])
    head, line = tidetable("status", COLUMNS="50").out.splitlines()
    assert head.split() == ["index", "slot", "lag", "live", "health"]
    assert line.split()[0] == "old"
    assert line.split()[-1] == "late"


@pytest.mark.parametrize("command", [["status"], ["history", "old"], ["quarantine", "old"]])
def test_they_import_neither_spark_nor_airflow_nor_the_checks(
    project: Project, command: list[str]
) -> None:
    project.make("old", [row(1, 0, 5)])
    code = (
        "import sys; sys.argv[0] = 'tidetable'; from tidetable.cli import app; "
        "app(standalone_mode=False); print(*{name.split('.')[0] for name in sys.modules})"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, *command, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = set(found.stdout.splitlines()[-1].split())
    assert "deltalake" in imported
    assert not imported & {"pyspark", "delta", "airflow", "great_expectations", "pandas"}


# -- history ---------------------------------------------------------------------------------------


@pytest.fixture
def index(workspace: Workspace) -> Index:
    index = make_table(workspace, [row(1, -0.5, 5), row(2, -1, 5)])
    for slot in (1, 2, 3):
        make_update(workspace, index, [row(2 + slot, slot, 7)], slot)
    Updates(index).record()
    return index


def test_the_history_has_a_line_for_each_commit(workspace: Workspace, index: Index) -> None:
    head, *lines = tidetable("history", workspace.yaml).out.splitlines()
    assert head.split()[:4] == ["slot", "as", "of", "kind"]
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "3"]
    assert "load" in lines[0]
    assert "update" in lines[3]
    last = tidetable("history", workspace.yaml, "--last", 2).out.splitlines()
    assert [line.split()[0] for line in last[1:]] == ["2", "3"]


def test_the_history_for_programs_is_the_whole_row(workspace: Workspace, index: Index) -> None:
    found = tidetable("history", workspace.yaml, "--last", 2, "--json").objects
    assert found == [one.as_json() for one in Updates(index).last(2)]
    assert [one["slot"] for one in found] == [2, 3]


def test_a_history_that_does_not_fit_gives_up_columns(workspace: Workspace, index: Index) -> None:
    lines = tidetable("history", workspace.yaml, COLUMNS="60").out.splitlines()
    assert max(map(len, lines)) <= 60
    assert {"slot", "kind", "inserted", "live"} <= set(lines[0].split())


@pytest.mark.parametrize("command", ["history", "quarantine"])
def test_without_a_table_they_say_how_to_make_one(workspace: Workspace, command: str) -> None:
    found = tidetable(command, workspace.describe())
    assert (found.status, found.out) == (2, "")
    assert "has no table yet" in found.sentence


# -- quarantine ------------------------------------------------------------------------------------

LONG = "not a time at all, " * 20
BAD = [
    (1, Reason.NO_KEY, at(1), {"id": 7, "key": None}),
    (1, "wrong type: id", at(1), {"id": "seven", "key": "a"}),
    (2, Reason.NO_EXPIRATION, at(2), {"id": 8, "key": "it's", "expires_at": LONG}),
    (3, Reason.NO_ARRIVAL, None, "sha256:00ff"),
]


@pytest.fixture
def quarantined(index: Index) -> Index:
    table = own_table(index, Kind.QUARANTINE, QUARANTINE_PROPERTIES).table
    rows = [
        {"slot": slot, "reason": str(reason), "arrived_at": arrived,
         "row": raw if isinstance(raw, str) else json.dumps(raw)}
        for slot, reason, arrived, raw in BAD
    ]  # fmt: skip
    write_deltalake(table, pa.Table.from_pylist(rows, schema=QUARANTINE), mode="append")
    return index


def test_bad_rows_name_the_column_and_its_value(workspace: Workspace, quarantined: Index) -> None:
    head, *lines, told = tidetable("quarantine", workspace.yaml).out.splitlines()
    assert head.split() == ["slot", "arrived", "reason", "column", "value"]
    assert [line.split()[0] for line in lines] == ["1", "1", "2", "3"]
    assert any("no key " in line and line.split()[-2:] == ["key", "null"] for line in lines)
    assert any("wrong type: id" in line and line.split()[-1] == "seven" for line in lines)
    long = next(line for line in lines if "expires_at" in line)
    assert long.rstrip().endswith("…")
    assert len(long) < 140
    assert "sha256:00ff" in lines[3]
    assert told == "4 bad rows; --json shows them whole"


def test_bad_rows_for_programs_are_whole(workspace: Workspace, quarantined: Index) -> None:
    found = tidetable("quarantine", workspace.yaml, "--json", "--slot", 2).objects
    assert found == [
        {
            "slot": 2,
            "reason": "no readable expiration time",
            "arrived_at": "2024-03-01T00:20:00Z",
            "column": "expires_at",
            "value": LONG,
            "row": BAD[2][3],
        }
    ]


@pytest.mark.parametrize(
    ("options", "slots"),
    [
        (["--slot", 1], [1, 1]),
        (["--slot", 9], []),
        (["--reason", "READABLE"], [2, 3]),
        (["--reason", "wrong type: id"], [1]),
        (["--reason", "it's ' OR 1=1"], []),
        (["--last", 1], [3]),
        (["--last", 1, "--slot", 1, "--reason", "key"], [1]),
    ],
)
def test_bad_rows_that_are_asked_for(
    workspace: Workspace, quarantined: Index, options: list[object], slots: list[int]
) -> None:
    found = tidetable("quarantine", workspace.yaml, "--json", *options)
    assert found.status == 0
    assert [one["slot"] for one in found.objects] == slots


def test_of_many_bad_rows_it_says_how_many_there_are(
    workspace: Workspace, quarantined: Index
) -> None:
    told = tidetable("quarantine", workspace.yaml, "--last", 2).out.splitlines()[-1]
    assert told == "the newest 2 of 4 bad rows; --json shows them whole"


def test_no_bad_row_is_an_answer(workspace: Workspace, index: Index) -> None:
    found = tidetable("quarantine", workspace.yaml)
    assert (found.status, found.out) == (0, "No such row is in quarantine.\n")


def test_every_reason_but_an_unreadable_record_has_a_column(index: Index) -> None:
    without = [reason for reason in Reason if not blamed_column(index, reason)]
    assert without == [Reason.NO_RECORD, Reason.WRONG_TYPE]
    assert blamed_column(index, f"{Reason.WRONG_TYPE}size") == "size"
    assert (
        blamed_column(replace(index, expires_at=None, lifetime="interval 1 hour"), Reason.OUTLIVES)
        == index.inserted_at
    )
    assert timedelta(0) < index.update_every
