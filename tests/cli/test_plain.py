"""Daily commands without Typer: what they import, and that both ways read a call alike."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import Any

import pytest
import typer

from tests.cli.handmade import make_table
from tests.workspace import Workspace, row
from tidetable.cli import app, daily
from tidetable.cli.commands import commands_of
from tidetable.cli.plain import plain_call

DAILY = {one.function.__name__: one for one in commands_of(daily)}
TYPERS = typer.main.get_command(app).commands  # type: ignore[attr-defined]

NEVER = {
    "typer", "pandas", "pyspark", "delta", "airflow", "great_expectations", "sqlglot",
    "pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet", "tidetable.advisor",
    "tidetable.engine",
}  # fmt: skip
"""What no such call may import: it takes longer than the answer, or leads to what does."""

RUN = (
    "import sys; from tidetable.cli import main\n"
    "try:\n    main()\n"
    "finally:\n    print(*sys.modules, file=sys.stderr)"
)


@pytest.fixture
def things(workspace: Workspace) -> Workspace:
    make_table(workspace, [row(n, 0, 2, key=f"k{n % 3}") for n in range(9)])
    return workspace


def called(*words: object, **environment: str) -> tuple[int, str, str]:
    """Status, output and what was said by a process of its own."""
    found = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, words)],
        capture_output=True, text=True, check=False, env=os.environ | environment,
    )  # fmt: skip
    return found.returncode, found.stdout, found.stderr


@pytest.mark.parametrize("for_programs", [True, False])
@pytest.mark.parametrize("command", ["probe", "status", "plan"])
def test_a_daily_call_imports_nothing_heavy(
    command: str, for_programs: bool, things: Workspace
) -> None:
    keys = ["k1"] if command == "probe" else []
    options = ["--json"] if for_programs else []
    status, out, said = called(command, things.yaml, *keys, *options)
    assert status == 0, said
    imported = set(said.splitlines()[-1].split())
    assert "deltalake" in imported
    assert not imported & NEVER
    assert ("rich" in imported) is not for_programs
    if for_programs:
        assert all(json.loads(line) for line in out.splitlines())


def test_an_error_is_told_without_typer(things: Workspace) -> None:
    status, out, said = called("plan", things.yaml, "--slot", 0, "--json")
    error, modules = said.splitlines()
    assert (status, out) == (2, "")
    assert "Slot 0 of 'things' is done" in json.loads(error)["error"]["found"]
    assert "typer" not in modules.split()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["probe", "x", "--no-such-option"], "No such option"),
        (["plan", "x", "--slot", "-1"], "greater than or equal to 0"),
        (["probe"], "Missing argument"),
        (["status", "--help"], "Usage:"),
    ],
)
def test_what_is_not_plain_is_typers_affair(words: list[str], told: str) -> None:
    _, out, said = called(*words, COLUMNS="120")
    assert told in out + said
    assert "typer" in said.splitlines()[-1].split()


# -- both ways -------------------------------------------------------------------------------------

PLAIN = (
    "status", "status x --json", "plan x --slot 7", "probe x k1 k2", "probe x --from a --to b",
    "probe x --json k1", "probe x k --alive-at 2013-01-02T16:30:00Z --slot 3",
    "scan x --count", "history x --last 5", "quarantine x --slot 2 --reason expiration",
    "update x --until 2013-01-02T16:30:00Z --fold", "update x --slots 0",
    "probe x ''", "scan x --from '' --inserted-from a --inserted-to b",
)  # fmt: skip
ODD = (
    "probe x k --engine spark", "probe x k --json --json", "probe x -- -k", "probe x k --slot=3",
    "plan x --slot 1.5", "plan x --slot", "plan x --slot --json", "plan x y", "plan", "plan -h",
    "history x --last 0", "probe x -1",
)  # fmt: skip


def by_typer(words: list[str]) -> dict[str, Any]:
    found = dict(TYPERS[words[0]].make_context(words[0], words[1:]).params)
    # Typer gives () for none to the context, and the default to the function.
    return {name: None if value == () else value for name, value in found.items()}


@pytest.mark.parametrize("call", PLAIN)
def test_a_plain_call_means_what_typer_says(call: str) -> None:
    command, *words = shlex.split(call)
    found = plain_call(DAILY[command], words)
    assert found is not None
    assert found == by_typer([command, *words])


@pytest.mark.parametrize("call", ODD)
def test_what_is_odd_is_not_judged(call: str) -> None:
    command, *words = shlex.split(call)
    assert plain_call(DAILY[command], words) is None


def test_a_shell_that_completes_is_answered_by_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain_call(DAILY["status"], []) is not None
    monkeypatch.setenv("_TIDETABLE_COMPLETE", "complete_bash")
    assert plain_call(DAILY["status"], []) is None


def test_every_daily_example_is_plain() -> None:
    for command in DAILY.values():
        assert plain_call(command, shlex.split(command.example)[2:]) is not None
