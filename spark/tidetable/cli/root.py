"""The whole command line, made by Typer of the commands' descriptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from tidetable import __version__
from tidetable.cli import daily, init, planning, repair
from tidetable.cli.commands import Argument, Described, Option, commands_of
from tidetable.cli.ending import status_of

_JSON = "tidetable.json"


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
        except BaseException as error:
            raise typer.Exit(status_of(error, bool(ctx.meta.get(_JSON, False)))) from None


app = typer.Typer(
    name="tidetable",
    cls=Commands,
    help="Delta tables whose rows expire.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


# -- what a description says to Typer --------------------------------------------------------------


def _remember_json(ctx: typer.Context, wanted: bool) -> bool:
    ctx.meta[_JSON] = wanted
    return wanted


def _for_typer(hint: Any) -> Any:
    """The type of a parameter with what is said of it in Typer's words."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, what = get_args(hint)[:2]
    told: Any = what
    if isinstance(what, Argument):
        told = typer.Argument(metavar=what.metavar, help=what.help, autocompletion=what.completes)
    elif isinstance(what, Option):
        names = [] if what.name is None else [what.name]
        told = typer.Option(
            *names, metavar=what.metavar, help=what.help, min=what.min,
            callback=_remember_json if what.asks_for_json else None, is_eager=what.asks_for_json,
        )  # fmt: skip
    return Annotated[kind, told]


def _with_typers_words(function: Callable[..., None]) -> Callable[..., None]:
    hints = get_type_hints(function, include_extras=True)

    @wraps(function)
    def called(**values: Any) -> None:
        function(**values)

    told = {name: _for_typer(hint) for name, hint in hints.items()}
    parameters = signature(function).parameters.values()
    made: Any = called
    del made.__wrapped__  # Typer would look at the function itself
    made.__annotations__ = told
    made.__signature__ = Signature([one.replace(annotation=told[one.name]) for one in parameters])
    return called


def _add(command: Described) -> None:
    told = f"[bold]Example:[/] {escape(command.example)}"
    app.command(
        cls=Command, rich_help_panel=command.panel.value, epilog=told, hidden=command.hidden
    )(_with_typers_words(command.function))


# In the order in which --help lists the commands.
for _module in (daily, repair, init, planning):
    for _command in commands_of(_module):
        _add(_command)


# -- the command itself ----------------------------------------------------------------------------


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
