"""The command itself: its options, and what becomes of an error.

Exit status: 0 done (also when there was nothing to do), 1 failed but a retry can help,
2 the user's input is wrong.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from tidetable import __version__
from tidetable.cli.options import wants_json
from tidetable.cli.output import output
from tidetable.core.errors import TidetableError


class Panel(StrEnum):
    """How --help groups the commands."""

    DAILY = "Daily"
    REPAIR = "Repair"
    PLANNING = "Planning"


class Command(TyperCommand):
    """One command; its help shows what follows an option, and of a flag that is nothing."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


def _without_types_of_flags(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Commands(TyperGroup):
    """All commands: whatever they raise becomes a sentence and an exit status."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (TyperException, typer.Exit, typer.Abort):
            raise  # wrong usage, --help: typer's own affair
        except BrokenPipeError:  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt as stop:
            # What was under way knows more than nothing, or says nothing.
            stopped = "Stopped. What was committed stays, and nothing is half done."
            output(wants_json(ctx)).say(str(stop) or stopped)
            raise typer.Exit(130) from None
        except Exception as error:
            if os.environ.get("TIDETABLE_DEBUG") and not isinstance(error, TidetableError):
                raise
            raise typer.Exit(output(wants_json(ctx)).error(error)) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of Rust, which is no Exception
                raise
            raise typer.Exit(output(wants_json(ctx)).error(error)) from None


app = typer.Typer(
    name="tidetable",
    cls=Commands,
    help="Delta tables whose rows expire.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def command(
    panel: Panel, example: str, *, hidden: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function: where --help lists it, and a call that works."""
    told = f"[bold]Example:[/] {escape(example)}"
    return app.command(cls=Command, rich_help_panel=panel.value, epilog=told, hidden=hidden)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidetable {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Delta tables whose rows expire."""


def main() -> None:
    """The entry point."""
    if not os.environ.get("TIDETABLE_DEBUG"):
        # Libraries log what they raise as well (Py4J a whole stack for Ctrl-C); we say it once.
        logging.getLogger().addHandler(logging.NullHandler())
    app()
