"""What the command says and returns before it comes near a table."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tests.cli.runner import tidetable
from tidetable.cli import app
from tidetable.core.errors import TransientError, UserError
from tidetable.core.failures import gist

COMMANDS = (
    "init", "check", "plan", "update", "replay", "rebuild", "probe", "scan", "status", "history",
    "quarantine", "validate",
    "maintain", "simulate", "advise",
)  # fmt: skip
HIDDEN = ("purge",)  # a name of before
ALL = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS + HIDDEN)
def test_every_command_has_help(command: str) -> None:
    found = tidetable(command, "--help")
    assert found.status == 0
    assert "Usage:" in found.out
    assert "--json" in found.out


def test_there_are_these_commands_and_no_others() -> None:
    names = [one.callback.__name__ for one in app.registered_commands]  # type: ignore[union-attr]
    assert sorted(names) == sorted(COMMANDS + HIDDEN)


def test_without_arguments_it_lists_the_commands() -> None:
    found = tidetable()
    assert all(command in found.out + found.err for command in COMMANDS)
    assert not any(f" {command} " in found.out + found.err for command in HIDDEN)


def test_the_commands_are_listed_in_groups() -> None:
    lines = tidetable("--help").out.splitlines()
    panels: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("╭─"):
            panels[line.split()[1]] = []
        elif line.startswith("│ ") and line[2] not in " -":
            panels[list(panels)[-1]].append(line.split()[1])
    assert panels == {
        "Options": [],
        "Daily": ["update", "status", "plan", "probe", "scan", "history", "quarantine"],
        "Repair": ["replay", "rebuild", "validate", "maintain"],
        "Planning": ["init", "check", "simulate", "advise"],
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_in_its_help_is_a_call_of_the_command(command: str) -> None:
    found = tidetable(command, "--help", COLUMNS="120").out
    example = next(line for line in found.splitlines() if line.startswith(" Example: "))
    program, name, *arguments = shlex.split(example.removeprefix(" Example: "))
    assert (program, name) == ("tidetable", command)
    ALL[command].make_context(command, arguments)  # raises if it is not understood


@pytest.mark.parametrize("command", ["", *COMMANDS, *HIDDEN])
def test_a_flag_is_shown_without_a_type(command: str) -> None:
    found = tidetable(*([command] if command else []), "--help").out
    assert "--help" in found
    assert "bool" not in found


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tidetable hist", ["history"]),
        ("tidetable maintain --p", ["--purge"]),
        ("tidetable status fl", ["flights_sweep"]),
        ("tidetable probe fl", ["flights_sweep"]),
    ],
)
def test_a_shell_completes_commands_options_and_indexes(
    words: str, offered: list[str], tmp_path: Path
) -> None:
    indexes = tmp_path / "include" / "indexes"
    indexes.mkdir(parents=True)
    for name in ("flights_sweep", "other"):
        (indexes / f"{name}.yaml").touch()
    found = tidetable(
        _TIDETABLE_COMPLETE="complete_bash", COMP_WORDS=words, TIDETABLE_HOME=str(tmp_path),
        COMP_CWORD=str(len(words.split()) - 1),
    )  # fmt: skip
    assert found.out.split() == offered


def test_version() -> None:
    assert tidetable("--version").out.startswith("tidetable ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["no_such_command"],
        ["update", "x", "--no-such-option"],
        ["update", "x", "--slots", "many"],
        ["update", "x", "--slots", "-1"],
        ["probe", "x", "k", "--engine", "duckdb"],
        ["replay", "x"],
        ["simulate", "--scheme", "sweep"],
        ["simulate", "--scheme", "wheel", "--period", "36"],
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str]) -> None:
    found = tidetable(*arguments)
    assert found.status == 2
    assert found.out == ""
    assert found.err


# -- simulate --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("{name: rebuild, insertion: 4, expiration: 4}", (8.00, 8.00, 16.0, 16, 0.00)),
        ("{name: no_rebuild, insertion: 4, expiration: 4}", (1.00, 1.00, 138.0, 138, 0.46)),
        ("{name: sweep, groups: 8, deletion_vectors: true}", (2.78, 2.78, 15.0, 15, 0.13)),
        ("{name: sweep, groups: 8}", (2.78, 2.78, 36.0, 36, 0.00)),
        (
            "{name: sweep, groups: 4, every: 4, deletion_vectors: true}",
            (2.00, 5.00, 17.1, 19, 0.37),
        ),
        (
            "{name: rebuild, insertion: 12, expiration: 1, placement: chronological}",
            (18.50, 18.50, 12.0, 12, 0.00),
        ),
    ],
)
def test_simulate_gives_the_published_figures(
    scheme: str, expected: tuple[float, float, float, int, float]
) -> None:
    (found,) = tidetable("simulate", "--json", "--scheme", scheme, "--period", 36).objects
    figures = (
        round(found["written_avg"], 2),
        round(found["written_max"], 2),
        round(found["files_avg"], 1),
        found["files_max"],
        round(found["dead_avg"], 2),
    )
    assert figures == expected


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ("sweep --groups 8", "Sweep(8,1)"),
        ("sweep --groups 8 --no-deletion-vectors", "Sweep(8,1) without deletion vectors"),
        ("sweep --groups 4 --every 4 --merge-log 8", "Sweep(4,4), log merged every 8"),
        ("tiers --groups 4 --fan-in 3", "Tiers(4,3)"),
        ("rebuild --insertion 12 --expiration 1 --placement chronological", "R-ins 12"),
    ],
)
def test_simulate_takes_the_options_of_version_0_1(options: str, label: str) -> None:
    found = tidetable("simulate", "--json", "--period", 36, "--scheme", *options.split())
    assert [one["scheme"] for one in found.objects] == [label]


def test_simulate_for_people() -> None:
    found = tidetable("simulate", "--scheme", "{name: sweep, groups: 8}", "--period", "36")
    assert found.status == 0
    assert "Sweep(8,1) without deletion vectors, p = 36" in found.out
    assert "2.78" in found.out


@pytest.mark.parametrize(
    ("scheme", "told"),
    [
        ("sweep", "scheme.groups: is missing; write it: expiration groups"),
        ("{name: rebuild, insertion: 4}", "scheme.expiration: is missing"),
        ("{name: sweep, groups: 4, every: 2}", "scheme.every: 2 without deletion vectors would"),
        ("{name: sweep, groups: 37}", "scheme.groups: 37 is more than the 36 updates"),
        ("{name: rebuild, insertion: 0, expiration: 4}", "scheme.insertion: 0 is too small"),
        ("{name: wheel}", "scheme.name: 'wheel' is not a scheme; allowed are rebuild, no_rebuild"),
        ("{name: sweep, groups: 4, groups: 5}", "scheme.groups: written twice"),
        ("{name: sweep", "a { or [ that is not closed"),
        ("[sweep]", "scheme: a list is not a mapping; write a name and its settings"),
        ("auto", "scheme.name: auto is the advisor's to choose"),
    ],
)
def test_simulate_names_mistakes_as_in_a_file(scheme: str, told: str) -> None:
    found = tidetable("simulate", "--scheme", scheme, "--period", 36)
    assert found.status == 2
    assert found.sentence.startswith("error: --scheme: ")
    assert told in found.sentence


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (UserError("The input is wrong."), 2, "bad_input"),
        (TransientError("Another was first."), 1, "try_again"),
        (TransientError("Another was first.", code="lost_race"), 1, "lost_race"),
        (RuntimeError("The disk is on fire, which nobody expected to happen."), 1, "unexpected"),
    ],
)
def test_the_type_of_an_error_decides_the_status(
    raised: Exception, status: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str) -> None:
        raise raised

    monkeypatch.setattr("tidetable.cli.daily.load", fails)
    found = tidetable("status", "x")
    assert (found.status, found.out) == (status, "")
    assert str(raised) in found.err
    for_programs = tidetable("status", "x", "--json")
    assert (for_programs.status, for_programs.out) == (status, "")
    told = json.loads(for_programs.err)
    assert set(told) == {"error", "retry_can_help"}
    assert set(told["error"]) == {"code", "found", "required", "remedy"}
    assert str(raised) in told["error"]["found"]
    assert told["error"]["code"] == code
    assert told["retry_can_help"] is (status == 1)


def test_a_stop_by_the_user_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tidetable.cli.daily.load", stopped)
    found = tidetable("status", "x")
    assert found.status == 130
    assert "What was committed stays" in found.err
    assert len(found.err.splitlines()) == 1


JAVA = """An error occurred while calling o57.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed.
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            OSError(JAVA),
            "Job aborted due to stage failure: Task 0 in stage 3.0 failed. "
            "No space left on device",
        ),
        (OSError("[DIVIDE_BY_ZERO] Division by zero.\n\nJVM stacktrace:\n\tat a.b.C"),
         "[DIVIDE_BY_ZERO] Division by zero."),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError"),
    ],
)  # fmt: skip
def test_of_a_java_stack_only_the_message_is_told(error: Exception, expected: str) -> None:
    assert gist(error) == expected


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """`tidetable ... | head -0`"""
    code = "import sys; sys.argv[0] = 'tidetable'; from tidetable.cli import main; main()"
    arguments = ["simulate", "--json", "--scheme", "{name: sweep, groups: 8}", "--period", "36"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read()
        assert process.wait(60) == 0
    assert told == b""
