"""The command `tidetable`: what can be done to an index, and what can be asked of it.

A module for each group of commands, root.py for what all of them share. Only what needs Spark
imports it: a probe does not wait for a JVM. Nor does it for Typer, see plain.py.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidetable.cli.root import app

__all__ = ["app", "main"]


def main() -> None:
    """The entry point."""
    if not os.environ.get("TIDETABLE_DEBUG"):
        # Libraries log what they raise as well (Py4J a whole stack for Ctrl-C); we say it once.
        logging.getLogger().addHandler(logging.NullHandler())
    status = _run_plainly(sys.argv[1:])
    if status is not None:
        sys.exit(status)
    from tidetable.cli.root import app

    app()


def _run_plainly(words: list[str]) -> int | None:
    """Runs a daily command whose call is plain, for its exit status; None if it is not one."""
    from tidetable.cli import daily  # what is called most, and imports next to nothing
    from tidetable.cli.commands import commands_of
    from tidetable.cli.ending import status_of
    from tidetable.cli.plain import plain_call

    daily_commands = {one.function.__name__: one for one in commands_of(daily)}
    if not words or words[0] not in daily_commands:
        return None
    command = daily_commands[words[0]]
    values = plain_call(command, words[1:])
    if values is None:
        return None
    try:
        command.function(**values)
    except BaseException as error:
        return status_of(error, values["as_json"])
    return 0


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tidetable.cli.root import app

    return app
