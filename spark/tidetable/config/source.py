"""The `source` of an index: where its rows come from and when they arrived."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)
from pydantic.dataclasses import dataclass

from tidetable.config import location, path_pattern
from tidetable.config.formats import (
    FORMATS,
    as_spark_spells,
    checked_format,
    option_mistakes,
)
from tidetable.config.mistakes import Misfits, shown, suggestion
from tidetable.config.quantities import Duration
from tidetable.core.columns import RESERVED

CLOSED = ConfigDict(extra="forbid", use_attribute_docstrings=True)
TEXT_MAX = 10_000
_COLUMNAR_FORMATS = frozenset({"parquet", "orc", "delta"})


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("empty text; write something, or leave the field out if it is optional")
    if len(text) > TEXT_MAX:
        raise ValueError(f"text of {len(text)} characters; write at most {TEXT_MAX}")
    return text


def _column(name: str) -> str:
    # Spark takes column names that differ only in case for the same.
    if name.lower() in RESERVED:
        raise ValueError(
            f"'{name}' is a column that the index adds itself; rename it in the source "
            f"(reserved: {', '.join(RESERVED)})"
        )
    return name


def _one_column(name: object) -> object:
    if isinstance(name, list):
        raise ValueError(
            f"{shown(name)} is a list; write the name of one column. If several make up the key, "
            "put them into one column of the source, such as concat_ws('|', a, b)"
        )
    return name


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; no name at all; a folder of names
        near = suggestion(name, available_timezones())
        raise ValueError(
            f"{shown(name)} is not a time zone; write an IANA name, such as UTC or "
            f"America/New_York{near}"
        ) from None
    return name


def _located(path: str, info: ValidationInfo) -> str:
    """Relative paths start at the folder that the loader names; without a loader they stay."""
    base = (info.context or {}).get("base")
    return path if base is None else location.resolved(path, base)


def _option(value: object) -> object:
    """Spark's reader takes text; the loader has put numbers and words as they were written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is no option; write text, a number, true or false")
    return value


Text: TypeAlias = Annotated[str, AfterValidator(_text), Field(json_schema_extra={"minLength": 1})]
Column: TypeAlias = Annotated[
    Text,
    BeforeValidator(_one_column),
    AfterValidator(_column),
    Field(json_schema_extra={"not": {"enum": list(RESERVED)}}),
]
Location: TypeAlias = Annotated[Text, AfterValidator(_located)]
Option: TypeAlias = Annotated[
    str,
    BeforeValidator(_option, json_schema_input_type=str | int | float | bool),
]


class Late(StrEnum):
    """What becomes of rows that arrive after the source promised to be complete."""

    ACCEPT = "accept"
    QUARANTINE = "quarantine"


class NewColumns(StrEnum):
    """What becomes of columns that the source has and the table has not."""

    IGNORE = "ignore"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, config=CLOSED)
class Source:
    """Where rows come from. In a loaded index `path` is absolute or a URI."""

    path: Annotated[Location, AfterValidator(path_pattern.checked)]
    """Folder or file of the rows; may hold time placeholders: data/{%Y-%m-%d}/{%H}"""

    format: Annotated[
        Text, AfterValidator(checked_format), Field(json_schema_extra={"enum": list(FORMATS)})
    ] = "parquet"
    """What the files are: parquet, csv, json, delta, orc, avro or xml."""

    arrived_at: Column
    """The column with the time at which a row arrived in the source."""

    timezone: Annotated[Text, AfterValidator(_zone)] | None = None
    """The IANA zone of timestamps that carry none; without it such timestamps are an error."""

    path_timezone: Annotated[Text, AfterValidator(_zone)] | None = None
    """The IANA zone of the path's placeholders; without it both UTC and timezone are looked at."""

    schema: Text | None = None
    """The columns as Spark DDL, for csv and json: tail_number string, seats int"""

    # Not pydantic's Field: it would be checked before `format`, on which it depends.
    options: dict[str, Option] = field(default_factory=dict)
    """Options of Spark's reader for this format, such as header: true"""

    new_columns: NewColumns = NewColumns.IGNORE
    """Columns that the table does not have: left out, which `check` says, or an error."""

    grace: Duration = timedelta(0)
    """How long after a slot's end the source may still be incomplete."""

    late: Late = Late.ACCEPT
    """Rows found later than that: taken into the next update, or put into quarantine."""

    recount_every: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] = 12
    """Every n-th update counts the last n slots again to find late rows; 0 is never."""

    @field_validator("options")
    @classmethod
    def _of_the_format(cls, options: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        if "format" in info.data:  # else it is a mistake already
            mistakes = tuple(option_mistakes(list(options), info.data["format"]))
            if mistakes:
                raise Misfits(mistakes)
            return as_spark_spells(options, info.data["format"])
        return options

    @property
    def root(self) -> str:
        """The last complete directory before the first placeholder, or the whole path."""
        return path_pattern.root(self.path)

    @property
    def has_placeholders(self) -> bool:
        """Whether its path goes by time."""
        return path_pattern.has_placeholders(self.path)

    @property
    def is_columnar(self) -> bool:
        """Whether it is cheap to look at a few columns first and at the rows later."""
        return self.format in _COLUMNAR_FORMATS

    @property
    def path_span(self) -> timedelta | None:
        """How much time one path holds at most; None if there is no end to it."""
        span = path_pattern.span(self.path)
        # A day has up to 25 hours, and an hour that clocks show twice has two.
        is_longer = span is not None and self.path_zones != ("UTC",)
        return span + timedelta(hours=1) if span is not None and is_longer else span

    @property
    def path_zones(self) -> tuple[str, ...]:
        """The zones by whose clocks the placeholders of the path are filled in."""
        if self.path_timezone is not None:
            return (self.path_timezone,)
        # Nobody has said it: folders are as often by local day as in UTC. Rows are chosen by
        # their time anyhow, so a folder too many costs a look, and one too few loses rows.
        return tuple(dict.fromkeys(("UTC", self.timezone or "UTC")))

    def paths_for(self, after: datetime, until: datetime) -> list[str]:
        """The paths that can hold rows which arrived in (after, until], in order, each once."""
        return path_pattern.expanded(self.path, after, until, self.path_zones)

    def expected_paths_for(self, after: datetime, until: datetime) -> list[str]:
        """Those of them that must be there if rows arrived all the time.

        Where it is not said by whose clocks the folders go: those that are right by both.
        """
        each = [path_pattern.expanded(self.path, after, until, (zone,)) for zone in self.path_zones]
        return [path for path in each[0] if all(path in paths for paths in each)]

    def reach(self, after: datetime, until: datetime) -> tuple[datetime, datetime] | None:
        """From when to when rows may have arrived that lie in these paths; None if at any time."""
        return path_pattern.reach(self.path, after, until, self.path_zones)
