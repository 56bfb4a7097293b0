"""Reads, plans and refusals on a table that is there, with no Java anywhere."""

from __future__ import annotations

import json
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.cli.handmade import make_table, version
from tests.cli.runner import tidetable
from tests.workspace import SCHEMA, Workspace, at, row

ROWS = [row(n, arrived=-n / 2, expires=1 + n % 5, key=f"k{n % 3}") for n in range(1, 11)]


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("This must not start Spark.")

    monkeypatch.setattr("tidetable.cli.running.start_spark", started)


@pytest.fixture
def things(workspace: Workspace) -> Workspace:
    make_table(workspace, ROWS)
    return workspace


# -- status and plan -------------------------------------------------------------------------------


def test_status_for_programs(things: Workspace) -> None:
    (found,) = tidetable("status", things.yaml, "--json").objects
    assert list(found) == [
        "slot", "as_of", "scheme", "live", "files", "bytes", "imbalance", "cells", "drift",
    ]  # fmt: skip
    assert found["slot"] == 0
    assert found["as_of"] == "2024-03-01T00:00:00Z"
    assert found["live"] == sum(cell["rows"] for cell in found["cells"]) == 10
    assert found["files"] == sum(cell["files"] for cell in found["cells"])
    assert found["bytes"] == sum(cell["bytes"] for cell in found["cells"]) > 0
    assert all(list(cell) == ["g", "e", "rows", "files", "bytes"] for cell in found["cells"])
    # Expiration slots 1 to 5, two rows each, in groups 0 1 2 0 1: 4, 4 and 2 rows.
    assert [cell["rows"] for cell in found["cells"]] == [4, 4, 2]
    assert found["imbalance"] == 1.2


def test_status_for_people(things: Workspace) -> None:
    found = tidetable("status", things.yaml)
    assert found.status == 0
    assert "slot 0, as of 2024-03-01 00:00Z" in found.out
    assert "10 live rows" in found.out
    assert "e: expiration part" in found.out
    assert max(len(line) for line in found.out.splitlines()) <= 80


def test_status_of_an_empty_table(workspace: Workspace) -> None:
    make_table(workspace, [])
    (found,) = tidetable("status", workspace.yaml, "--json").objects
    assert (found["live"], found["imbalance"]) == (0, None)
    assert "0 live rows" in tidetable("status", workspace.yaml).out


def test_plan_of_the_next_update(things: Workspace) -> None:
    (found,) = tidetable("plan", things.yaml, "--json").objects
    assert (found["slot"], found["creates_table"], found["expiring"]) == (1, False, 2)
    swept = [cell for cell in found["cells"] if cell["action"] == "rewrite"]
    assert [(cell["g"], cell["e"], cell["rows"]) for cell in swept] == [(0, 0, 4)]
    assert found["rewritten_rows"] == 4
    assert "rewrite" in tidetable("plan", things.yaml).out


def test_a_plan_of_the_past_is_refused(things: Workspace) -> None:
    found = tidetable("plan", things.yaml, "--slot", 0)
    assert found.status == 2
    assert "Plan slot 1 or a later one." in found.sentence


# -- nothing to do ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [["--slots", 0], ["--until", "2024-03-01T00:09:59Z"]])
def test_an_update_with_nothing_to_do(things: Workspace, options: list[object]) -> None:
    found = tidetable("update", things.yaml, "--json", *options)
    assert (found.status, found.out) == (0, "")
    assert "Nothing to do: things stands at slot 0 already" in found.sentence


def test_beyond_the_end_it_goes_no_further_and_says_so(workspace: Workspace) -> None:
    make_table(workspace, ROWS, end="2024-03-01T00:05:00Z")  # in the middle of slot 1
    found = tidetable("update", workspace.yaml, "--slots", 3)
    assert found.status == 0
    assert "things ends with slot 0, 2024-03-01T00:00:00Z: no further than that." in found.sentence
    assert "Nothing to do" in found.sentence
    assert "Nothing to do" in tidetable("update", workspace.yaml).sentence


@pytest.mark.parametrize("first", [0, 1, -3])
def test_a_replay_of_what_was_never_done(things: Workspace, first: int) -> None:
    found = tidetable("replay", things.yaml, "--from", first)
    assert found.status == 2
    assert "stands at slot 0" in found.sentence


# -- reads -----------------------------------------------------------------------------------------


def test_a_probe_gives_the_users_columns_and_the_slots_sorted(things: Workspace) -> None:
    found = tidetable("probe", things.yaml, "k2", "k1", "--json").objects
    assert list(found[0]) == [
        "id", "key", "arrived_at", "inserted_at", "expires_at", "_insertion_slot",
        "_expiration_slot",
    ]  # fmt: skip
    assert [(one["key"], one["_expiration_slot"]) for one in found] == sorted(
        (one["key"], 1 + one["id"] % 5) for one in ROWS if one["key"] in ("k1", "k2")
    )
    first = next(one for one in found if one["id"] == 1)
    assert first == {
        "id": 1,
        "key": "k1",
        "arrived_at": "2024-02-29T23:55:00Z",
        "inserted_at": "2024-02-29T23:55:00Z",
        "expires_at": "2024-03-01T00:20:00Z",
        "_insertion_slot": 0,
        "_expiration_slot": 2,
    }


def test_a_row_wider_than_the_terminal_is_shown_one_value_a_line(things: Workspace) -> None:
    narrow = tidetable("probe", things.yaml, "k1", COLUMNS="80").out
    assert "── 1 ─" in narrow
    assert "expires_at        2024-03-01T00:20:00Z" in narrow
    assert "4 rows as of 2024-03-01T00:00:00Z (slot 0)" in narrow
    wide = tidetable("probe", things.yaml, "k1", COLUMNS="140").out
    assert "──" not in wide
    assert wide.splitlines()[0].split() == [*SCHEMA.names, "_insertion_slot", "_expiration_slot"]


def test_a_scan_shows_the_first_rows_and_json_all(workspace: Workspace) -> None:
    make_table(workspace, [row(n, 0, 2) for n in range(50)])
    assert "the first 20 rows" in tidetable("scan", workspace.yaml).out
    assert len(tidetable("scan", workspace.yaml, "--json").objects) == 50
    (counted,) = tidetable("scan", workspace.yaml, "--count", "--json").objects
    assert counted == {"count": 50, "slot": 0, "as_of": "2024-03-01T00:00:00Z"}


def test_before_its_own_time_a_table_does_not_know_who_was_alive(things: Workspace) -> None:
    found = tidetable("scan", things.yaml, "--alive-at", "2024-02-29T23:59:59Z")
    assert (found.status, found.out) == (2, "")
    assert "--slot" in found.sentence


def test_a_slot_that_never_was(things: Workspace) -> None:
    found = tidetable("scan", things.yaml, "--slot", 7)
    assert (found.status, found.out) == (2, "")
    assert "Slot 7 of 'things' cannot be read" in found.sentence


KINDS = {
    "integer": (pa.int32(), [-1, 7, 8], "7", "eight"),
    "double": (pa.float64(), [0.1, 1.5, 2e300], "1.5", "one"),
    "float": (pa.float32(), [0.1, 1.1, 2.2], "1.1", "1,1"),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.23"), Decimal("7.00")], "7", "seven"),
    "date": (pa.date32(), [date(2024, 3, 1), date(2024, 3, 2)], "2024-03-02", "2.3.2024"),
    "boolean": (pa.bool_(), [False, True], "True", "yes"),
    "binary": (pa.binary(), [b"\x00\xff", b"\x01"], "00ff", "xyz"),
    "time": (
        pa.timestamp("us", "UTC"), [at(0), at(1)], "2024-03-01T02:10:00+02:00", "noon"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_every_type(kind: str, workspace: Workspace) -> None:
    data_type, values, typed, wrong = KINDS[kind]
    schema = SCHEMA.set(SCHEMA.get_field_index("key"), pa.field("key", data_type))
    rows = [row(n, 0, 2, key=value) for n, value in enumerate(values)]  # type: ignore[arg-type]
    make_table(workspace, rows, schema)
    assert len(tidetable("probe", workspace.yaml, typed, "--json").objects) == 1
    assert len(tidetable("probe", workspace.yaml, "--from", typed, "--json").objects) >= 1
    found = tidetable("probe", workspace.yaml, wrong)
    assert (found.status, found.out) == (2, "")
    assert "is not a value of the key 'key'" in found.sentence
    assert "Write " in found.sentence


def test_a_decimal_is_not_rounded_to_the_keys_scale(workspace: Workspace) -> None:
    schema = SCHEMA.set(SCHEMA.get_field_index("key"), pa.field("key", pa.decimal128(9, 2)))
    make_table(workspace, [row(1, 0, 2, key=Decimal("1.23"))], schema)  # type: ignore[arg-type]
    assert tidetable("probe", workspace.yaml, "1.234", "--json").objects == []
    assert len(tidetable("probe", workspace.yaml, "1.230", "--json").objects) == 1
    assert tidetable("probe", workspace.yaml, "9" * 39).status == 2


def test_a_number_no_column_can_hold_is_found_nowhere(workspace: Workspace) -> None:
    schema = SCHEMA.set(SCHEMA.get_field_index("key"), pa.field("key", pa.int64()))
    make_table(workspace, [row(1, 0, 2, key=1)], schema)  # type: ignore[arg-type]
    found = tidetable("probe", workspace.yaml, "9" * 30, "--json")
    assert (found.status, found.out) == (0, "")


# -- a YAML that has changed, a place that is taken ------------------------------------------------


@pytest.mark.parametrize("command", ["update", "status"])
@pytest.mark.parametrize(
    "change",
    [
        {"key": "id"},
        {"update_every": "5m"},
        {"scheme": {"name": "sweep", "groups": 2}},
        {"scheme": {"name": "rebuild", "insertion": 2, "expiration": 2}},
        {"longest_lifetime": "2h"},
        {"start": "2024-03-01T00:10:00Z"},
    ],
    ids=lambda change: "-".join(change),
)
def test_the_yaml_has_changed_since_the_table_was_made(
    things: Workspace, change: dict[str, object], command: str
) -> None:
    things.describe(**change)
    found = tidetable(command, things.yaml)
    assert (found.status, found.out) == (2, "")
    (name,) = change
    assert f"{name} was " in found.sentence
    assert "Put the old values back" in found.sentence
    assert version(things) == 0


def test_a_folder_that_is_not_ours(workspace: Workspace) -> None:
    workspace.table.mkdir()
    (workspace.table / "thesis.txt").write_text("precious")
    found = tidetable("update", workspace.describe(), "--slots", 0)
    assert (found.status, found.out) == (2, "")
    assert "holds no table of Tidetable" in found.sentence
    assert [path.name for path in workspace.table.iterdir()] == ["thesis.txt"]


def test_a_delta_table_that_is_not_ours(workspace: Workspace) -> None:
    write_deltalake(str(workspace.table), pa.table({"id": [1]}))
    found = tidetable("update", workspace.describe(), "--slots", 0)
    assert (found.status, found.out) == (2, "")
    assert "a Delta table that Tidetable did not make" in found.sentence
    assert version(workspace) == 0


def test_a_table_of_another_index(things: Workspace) -> None:
    found = tidetable("status", things.describe(name="others"))
    assert found.status == 2
    assert "belongs to the index 'things'" in found.sentence


def test_rows_that_somebody_else_wrote(things: Workspace) -> None:
    folder = things.table
    first = folder / "_delta_log" / f"{0:020d}.json"
    adds = [json.loads(line) for line in first.read_text().splitlines() if '"add"' in line]
    file = Path(adds[0]["add"]["path"])
    adds[0]["add"]["path"] = str(file.with_name("copy.parquet"))
    shutil.copy(folder / file, folder / file.with_name("copy.parquet"))
    info = {"commitInfo": {"operation": "WRITE", "timestamp": 0, "operationParameters": {}}}
    (folder / "_delta_log" / f"{1:020d}.json").write_text(
        json.dumps(info) + "\n" + json.dumps(adds[0]) + "\n"
    )
    for command in ("status", "update", "scan"):
        found = tidetable(command, things.yaml)
        assert (found.status, found.out) == (2, "")
        assert "was not made by Tidetable" in found.sentence
        assert f"tidetable replay {things.yaml}" in found.sentence
