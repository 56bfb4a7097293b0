"""Mistakes in the YAML, and indexes that are not there: all named, status 2, no JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import tidetable
from tests.workspace import Workspace

PROJECT = Path(__file__).resolve().parents[2]
READERS = ("check", "plan", "update", "scan", "status")


@pytest.mark.parametrize("command", READERS)
def test_all_mistakes_are_named_with_file_and_line(command: str, workspace: Workspace) -> None:
    workspace.describe(update_every="often", colour="blue", scheme={"name": "sweep", "groups": 0})
    lines = workspace.yaml.read_text().splitlines()
    found = tidetable(command, workspace.yaml)
    assert (found.status, found.out) == (2, "")
    for field, mark in (("update_every", "often"), ("colour", "blue"), ("scheme.groups", "0")):
        name = field.split(".")[-1]
        number = next(n for n, line in enumerate(lines, 1) if line.strip().startswith(name))
        assert f"{workspace.yaml}:{number}: {field}: " in found.sentence, mark


def test_yaml_that_is_none(workspace: Workspace) -> None:
    workspace.describe()
    workspace.yaml.write_text(workspace.yaml.read_text() + "key: [unclosed\n")
    found = tidetable("check", workspace.yaml, "--yaml-only")
    assert (found.status, found.out) == (2, "")
    assert f"{workspace.yaml}:" in found.sentence


def test_a_mistake_for_programs(workspace: Workspace) -> None:
    workspace.describe(start="2024-03-01T00:00:00")
    found = tidetable("check", workspace.yaml, "--json")
    assert (found.status, found.out) == (2, "")
    told = json.loads(found.err)
    assert told["retry_can_help"] is False
    assert "start" in told["error"]["found"]
    assert "no zone" in told["error"]["found"]


def test_an_unknown_index_lists_those_that_exist() -> None:
    found = tidetable("status", "flights_swep", TIDETABLE_HOME=str(PROJECT))
    assert found.status == 2
    assert "flights_rebuild" in found.sentence
    assert "did you mean 'flights_sweep'?" in found.sentence


def test_a_file_that_is_not_there() -> None:
    found = tidetable("check", "elsewhere/thing.yaml", TIDETABLE_HOME=str(PROJECT))
    assert found.status == 2
    assert "elsewhere/thing.yaml: no such file" in found.sentence


def test_the_yaml_alone_needs_neither_source_nor_table(workspace: Workspace) -> None:
    workspace.describe(source={"path": "/nonexistent/source"})
    (found,) = tidetable("check", workspace.yaml, "--yaml-only", "--json").objects
    assert found == {
        "index": "things",
        "scheme": "Sweep(3,1) without deletion vectors",
        "ok": True,
    }
    assert "The YAML is right." in tidetable("check", workspace.yaml, "--yaml-only").out


@pytest.mark.parametrize("index", ["flights_rebuild", "flights_no_rebuild", "flights_sweep"])
def test_the_indexes_of_the_sample_are_right(index: str) -> None:
    found = tidetable("check", index, "--yaml-only", TIDETABLE_HOME=str(PROJECT))
    assert (found.status, found.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["probe"], "A probe needs a key"),
        (["probe", "k1", "--from", "a"], "not both"),
        (["update", "--until", "2024-03-01T01:00:00Z", "--slots", "1"], "not both"),
        (["update", "--until", "2024-03-01T01:00:00"], "no zone"),
        (["update", "--until", "tomorrow"], "is not a time"),
        (["update", "--until", "2024-02-29T23:59:59Z"], "before things starts"),
        (["scan", "--alive-at", "now"], "is not a time"),
        (["probe", "k", "--inserted-from", "2024"], "--inserted-from"),
    ],
)
def test_options_that_make_no_sense(arguments: list[str], told: str, workspace: Workspace) -> None:
    command, *rest = arguments
    found = tidetable(command, workspace.describe(), *rest)
    assert (found.status, found.out) == (2, "")
    assert told in found.sentence


@pytest.mark.parametrize("arguments", [["status"], ["scan"], ["probe", "k"], ["scan", "--count"]])
def test_without_a_table_it_says_how_to_make_one(
    arguments: list[str], workspace: Workspace
) -> None:
    command, *rest = arguments
    found = tidetable(command, workspace.describe(), *rest)
    assert (found.status, found.out) == (2, "")
    assert f"tidetable update {workspace.yaml}" in found.sentence


def test_a_replay_without_a_table(workspace: Workspace) -> None:
    found = tidetable("replay", workspace.describe(), "--from", 1)
    assert found.status == 2
    assert "nothing to replay" in found.sentence


def test_a_plan_without_a_table(workspace: Workspace) -> None:
    (found,) = tidetable("plan", workspace.describe(), "--json").objects
    assert found["creates_table"] is True
    assert found["slot"] == 0
    assert "makes it and loads slot 0" in tidetable("plan", workspace.yaml).out
    later = tidetable("plan", workspace.yaml, "--slot", 2).out
    assert "Update 2, as of 2024-03-01T00:20:00Z" in later


def test_an_index_that_starts_in_the_future_has_nothing_to_do(workspace: Workspace) -> None:
    found = tidetable("update", workspace.describe(start="2999-01-01T00:00:00Z"))
    assert (found.status, found.out) == (0, "")
    assert "Nothing to do: things starts at 2999-01-01T00:00:00Z" in found.sentence
