"""The commands as data: what each is called with, and what its help says.

Typer makes the command line of it (root.py), but takes a tenth of a second to be imported. So the
commands that people and programs call all day are described in words of our own, which plain.py
reads without it. What options mean is written once, here and in options.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Panel(StrEnum):
    """How --help groups the commands."""

    DAILY = "Daily"
    REPAIR = "Repair"
    PLANNING = "Planning"


@dataclass(frozen=True)
class Argument:
    """What a command is called with, by its place."""

    metavar: str
    help: str
    completes: Callable[[str], list[str]] | None = None
    """What a shell offers for the beginning of a word."""


@dataclass(frozen=True)
class Option:
    """What a command is called with, by a name; without one by that of the parameter."""

    name: str | None = None
    help: str = ""
    metavar: str | None = None
    min: int | None = None
    asks_for_json: bool = False
    """Errors are told in the same way as answers: so it is heeded before everything else."""


@dataclass(frozen=True)
class Described:
    """A function that is a command."""

    function: Callable[..., None]
    panel: Panel
    example: str
    hidden: bool


COMMANDS: dict[str, Described] = {}
"""Those of the modules that have been imported, by name."""


def command(
    panel: Panel, example: str, *, hidden: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function: where --help lists it, and a call that works."""

    def described(function: Callable[..., None]) -> Callable[..., None]:
        COMMANDS[function.__name__] = Described(function, panel, example, hidden)
        return function

    return described


def commands_of(module: Any) -> list[Described]:
    """The commands that a module has, in its order."""
    return [one for one in COMMANDS.values() if one.function.__module__ == module.__name__]
