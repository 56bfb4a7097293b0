"""What is shown of an update that fails or is stopped, and what of data reaches a screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from tests.cli.handmade import make_table
from tests.cli.runner import Outcome, tidetable
from tests.workspace import SCHEMA, Workspace, row
from tidetable.core.errors import UserError
from tidetable.output.characters import visible, visible_json
from tidetable.output.terminal import Output
from tidetable.table.report import UpdateReport

REPORT = UpdateReport(
    slot=1, as_of="2024-03-01T00:10:00Z", inserted=10, expired=2, dead_on_arrival=0,
    quarantined=1, live=1_234, rewritten_rows=50, written_bytes=70_000, cells=7, seconds=2.345,
    version=1,
)  # fmt: skip
HOSTILE = "a\x1b[31m\nb\x9b\u202ec\u2066\x7f\r\x08"
SHOWN = "a\\x1b[31m\\nb\\x9b\\u202ec\\u2066\\x7f\\r\\x08"


@pytest.fixture
def things(workspace: Workspace) -> Workspace:
    make_table(workspace, [row(1, 0, 2)])
    return workspace


def update(
    things: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    ends: BaseException,
    *options: str,
    named: object = None,
) -> Outcome:
    """An update that commits two slots and then ends like this; all but the commits is real."""

    class Updater:
        def __init__(self, *_: object) -> None: ...

        def catch_up(self, target: int, *, fold: bool) -> Iterator[UpdateReport]:
            yield REPORT
            yield replace(REPORT, slot=2)
            raise ends

    monkeypatch.setattr("tidetable.cli.running.start_spark", lambda *_, **__: None)
    monkeypatch.setattr("tidetable.engine.updater.Updater", Updater)
    return tidetable("update", named or things.yaml, "--slots", 3, *options)


def test_slots_that_are_committed_are_shown_before_the_error(
    things: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = update(things, monkeypatch, UserError("The third is wrong."))
    assert found.status == 2
    assert [line.split()[0] for line in found.out.splitlines()] == ["slot", "1", "2"]
    assert "2 bad rows are in quarantine" in found.sentence
    assert found.err.splitlines()[-1] == "error: The third is wrong."
    for_programs = update(things, monkeypatch, UserError("The third is wrong."), "--json")
    assert [one["slot"] for one in for_programs.objects] == [1, 2]


def test_without_a_terminal_a_line_says_how_many_commits_are_to_come(
    things: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = update(things, monkeypatch, UserError("The third is wrong."))
    line = "things: 3 commits to make; each is shown once it is made."
    assert found.err.splitlines()[0] == line
    assert line not in update(things, monkeypatch, UserError("No."), "--json").err


def test_a_terminal_shows_which_commit_of_how_many_is_under_way(
    things: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Output(file=StringIO(), force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr("tidetable.output.terminal.OUT", screen)
    found = update(things, monkeypatch, UserError("The third is wrong."))
    assert "commits to make" not in found.err
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "things: commit 3 of 3" in shown


def test_a_stop_says_where_the_table_stands_and_how_to_go_on(
    things: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = update(things, monkeypatch, KeyboardInterrupt())
    assert found.status == 130
    assert [line.split()[0] for line in found.out.splitlines()] == ["slot", "1", "2"]
    assert found.err.splitlines()[-1] == (
        "Stopped. things stands at slot 0, as of 2024-03-01T00:00:00Z: what was committed stays, "
        f"and nothing is half done. To go on: tidetable update {things.yaml}"
    )


def test_advice_is_a_command_that_works_as_it_is_printed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace.folder / "my indexes"
    folder.mkdir()
    workspace.describe().rename(folder / "things.yaml")
    monkeypatch.chdir(workspace.folder)
    told = tidetable("status", "./my indexes/things.yaml").sentence
    assert told.endswith("Make it: tidetable update './my indexes/things.yaml'")
    monkeypatch.setenv("TIDETABLE_HOME", str(workspace.folder))
    (workspace.folder / "include").mkdir()
    folder.rename(workspace.folder / "include" / "indexes")
    assert tidetable("status", "things").sentence.endswith("Make it: tidetable update things")


def test_without_a_terminal_nothing_is_wrapped_or_cut(workspace: Workspace) -> None:
    long = "x" * 500
    make_table(workspace, [row(1, 0, 2, key=long), row(2, 0, 2, key="k" * 300)])
    head, *lines = tidetable("scan", workspace.yaml).out.splitlines()
    assert head.split() == [*SCHEMA.names, "_insertion_slot", "_expiration_slot"]
    assert len(lines) == 3
    assert any(long in line for line in lines)


def test_a_value_too_long_for_a_table_stays_on_its_line(workspace: Workspace) -> None:
    make_table(workspace, [row(1, 0, 2, key="x" * 200_000)])
    lines = tidetable("scan", workspace.yaml).out.splitlines()
    assert f"key               {'x' * 200_000}" in lines
    assert len(lines) == len(SCHEMA.names) + 3


# -- characters that nobody sees -------------------------------------------------------------------


@pytest.mark.parametrize("width", ["", "40", "300"])
def test_control_characters_of_data_do_not_reach_the_screen(
    workspace: Workspace, width: str
) -> None:
    make_table(workspace, [row(1, 0, 2, key=HOSTILE)])
    environment = {"COLUMNS": width} if width else {}
    for command in (["scan"], ["probe", "--from", ""]):
        name, *options = command
        found = tidetable(name, workspace.yaml, *options, **environment)
        assert all(line.isprintable() for line in found.out.splitlines())
        assert SHOWN in found.out.replace("\n" + 18 * " ", "").replace(" ", "")


def test_json_keeps_such_values_exact_and_harmless(workspace: Workspace) -> None:
    make_table(workspace, [row(1, 0, 2, key=HOSTILE)])
    found = tidetable("probe", workspace.yaml, "--json", "--", HOSTILE)
    assert found.objects[0]["key"] == HOSTILE
    assert found.out.strip().isprintable()


def test_errors_that_quote_data_are_harmless_too(things: Workspace, tmp_path: Path) -> None:
    schema = SCHEMA.set(1, SCHEMA.field("id").with_name("key"))
    workspace = Workspace(tmp_path)
    make_table(workspace, [row(1, 0, 2, key=1)], schema, table=str(tmp_path / "other"))
    for text in (HOSTILE, "\u202e1"):
        found = tidetable("probe", workspace.yaml, "--", text)
        assert found.status == 2
        assert all(line.isprintable() for line in found.err.splitlines())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 東京 🛫", "plain é 東京 🛫"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),  # a joiner of Persian
        ("\x00\x1b\x7f\x9b", "\\x00\\x1b\\x7f\\x9b"),
        ("\u200e\u200f\u061c", "\\u200e\\u200f\\u061c"),
        ("\u202a\u202e\u2066\u2069", "\\u202a\\u202e\\u2066\\u2069"),
        ("\u2028\ufeff\U000e0041", "\\u2028\\ufeff\\U000e0041"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_nobody_sees_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown
    line = json.dumps({"x": text}, ensure_ascii=False)
    assert json.loads(visible_json(line)) == {"x": text}
