"""The command itself: its options, and what becomes of an error.

Exit status: 0 done (also when there was nothing to do), 1 failed but a retry can help,
2 the user's input is wrong.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from tidetable import __version__
from tidetable.cli.options import wants_json
from tidetable.cli.output import output
from tidetable.core.errors import TidetableError


class Commands(TyperGroup):
    """All commands: whatever they raise becomes a sentence and an exit status."""

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
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


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
