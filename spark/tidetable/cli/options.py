"""Arguments and options that several commands have, and what they mean."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from tidetable.cli.commands import Argument, Option
from tidetable.core.errors import UserError

if TYPE_CHECKING:
    from tidetable.config import Index


def _index_names(incomplete: str) -> list[str]:
    """What a shell offers for INDEX."""
    from tidetable.config import index_files, project_root

    names = (path.stem for path in index_files(project_root()))
    return [name for name in names if name.startswith(incomplete)]


IndexName = Annotated[
    str, Argument("INDEX", "A name under include/indexes, or a YAML file.", _index_names)
]
OptionalIndexName = Annotated[
    str | None,
    Argument(
        "INDEX", "A name under include/indexes, or a YAML file; without it all indexes.",
        _index_names,
    ),
]  # fmt: skip
AsJson = Annotated[
    bool, Option("--json", "One JSON object per line, for programs.", asks_for_json=True)
]
Last = Annotated[int, Option("--last", "The newest N.", "N", min=1)]
Slot = Annotated[int | None, Option("--slot", "The table as it was after this earlier update.")]
InsertedFrom = Annotated[str | None, Option("--inserted-from", "Inserted at T or later.", "T")]
InsertedTo = Annotated[str | None, Option("--inserted-to", "Inserted at T or earlier.", "T")]
AliveAt = Annotated[str | None, Option("--alive-at", "Still alive at T.", "T")]
KeyFrom = Annotated[str | None, Option("--from", "Keys from K on.", "K")]
KeyTo = Annotated[str | None, Option("--to", "Keys up to K.", "K")]


class Engine(StrEnum):
    """What reads the table."""

    DELTA_RS = "delta-rs"
    SPARK = "spark"


EngineOption = Annotated[Engine, Option(help="What reads: delta-rs needs no JVM.")]


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
