"""Arguments and options that several commands have, and what they mean."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidetable.core.errors import UserError

if TYPE_CHECKING:
    from tidetable.config import Index

_JSON = "tidetable.json"


def _remember_json(ctx: typer.Context, wanted: bool) -> bool:
    ctx.meta[_JSON] = wanted
    return wanted


def wants_json(ctx: typer.Context) -> bool:
    """Whether --json was given: errors are told in the same way as answers."""
    return bool(ctx.meta.get(_JSON, False))


def _index_names(incomplete: str) -> list[str]:
    """What a shell offers for INDEX."""
    from tidetable.config import index_files, project_root

    names = (path.stem for path in index_files(project_root()))
    return [name for name in names if name.startswith(incomplete)]


IndexName = Annotated[
    str,
    typer.Argument(
        metavar="INDEX", autocompletion=_index_names,
        help="A name under include/indexes, or a YAML file.",
    ),
]  # fmt: skip
OptionalIndexName = Annotated[
    str | None,
    typer.Argument(
        metavar="INDEX", autocompletion=_index_names,
        help="A name under include/indexes, or a YAML file; without it all indexes.",
    ),
]  # fmt: skip
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", callback=_remember_json, is_eager=True,
        help="One JSON object per line, for programs.",
    ),
]  # fmt: skip
Last = Annotated[int, typer.Option("--last", metavar="N", help="The newest N.", min=1)]
Slot = Annotated[
    int | None, typer.Option("--slot", help="The table as it was after this earlier update.")
]
InsertedFrom = Annotated[
    str | None, typer.Option("--inserted-from", metavar="T", help="Inserted at T or later.")
]
InsertedTo = Annotated[
    str | None, typer.Option("--inserted-to", metavar="T", help="Inserted at T or earlier.")
]
AliveAt = Annotated[str | None, typer.Option("--alive-at", metavar="T", help="Still alive at T.")]
KeyFrom = Annotated[str | None, typer.Option("--from", metavar="K", help="Keys from K on.")]
KeyTo = Annotated[str | None, typer.Option("--to", metavar="K", help="Keys up to K.")]


class Engine(StrEnum):
    """What reads the table."""

    DELTA_RS = "delta-rs"
    SPARK = "spark"


EngineOption = Annotated[Engine, typer.Option(help="What reads: delta-rs needs no JVM.")]


def load(name: str) -> Index:
    """The index of this name, or of this YAML file."""
    from tidetable import api

    return api.load(name)


def parse_when(text: str | None, option: str) -> datetime | None:
    """The time that was given with this option."""
    from tidetable.config import parse_time

    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None
