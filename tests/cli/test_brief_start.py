"""Which Java options a command asks for: those that start soon where little is to be done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.handmade import make_table
from tests.cli.runner import tidetable
from tests.workspace import Workspace, row
from tidetable.cli import running

SOON = "-XX:TieredStopAtLevel=1"


class NotNeededAnyMore(Exception):
    """All that the test wants to know is known."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each session that a command wanted was to be brief."""
    found: list[bool] = []

    def started(*_: object, brief: bool = False) -> None:
        found.append(brief)
        raise NotNeededAnyMore

    monkeypatch.setattr("tidetable.cli.running.start_spark", started)
    return found


def test_an_update_of_a_small_table_is_brief(workspace: Workspace, asked: list[bool]) -> None:
    make_table(workspace, [row(1, 0, 2)])
    tidetable("update", workspace.yaml, "--slots", 1)
    assert asked == [True]


def test_many_commits_or_a_large_table_are_not(
    workspace: Workspace, asked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(workspace, [row(1, 0, 2)])
    (size,) = (file.stat().st_size for file in workspace.table.rglob("*.parquet"))
    monkeypatch.setattr(running, "LITTLE_BYTES", 3 * size)
    tidetable("update", workspace.yaml, "--slots", 3)
    tidetable("update", workspace.yaml, "--slots", 4)
    tidetable("update", workspace.yaml, "--slots", 4, "--fold")
    assert asked == [True, False, True]


def test_of_a_first_load_nobody_knows(workspace: Workspace, asked: list[bool]) -> None:
    workspace.index()
    tidetable("update", workspace.yaml, "--slots", 1)
    assert asked == [False]


@pytest.mark.parametrize("brief", [True, False])
@pytest.mark.parametrize("wish", [None, "-XX:+UseG1GC"])
def test_what_the_user_wants_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brief: bool, wish: str | None
) -> None:
    from pyspark.sql import SparkSession

    from tidetable.engine import session

    given: list[str] = []

    def start_jvm(settings: Mapping[str, str], log: Path) -> None:
        given.append(settings["spark.driver.extraJavaOptions"])
        raise NotNeededAnyMore

    monkeypatch.delenv("TIDETABLE_JAVA_OPTIONS", raising=False)
    if wish is not None:
        monkeypatch.setenv("TIDETABLE_JAVA_OPTIONS", wish)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(session, "find_java", lambda: None)
    monkeypatch.setattr(session, "start_jvm", start_jvm)
    with pytest.raises(NotNeededAnyMore):
        session.spark_session(tmp_path, brief=brief)
    assert (SOON in given[0]) == (brief and wish is None)
    assert wish is None or wish in given[0]
