"""An index as its user describes it: one YAML file, one `Index`.

Checks that need two fields sit in the validator of the later one and look at those before it:
then one mistake does not hide another, as a check of the whole would, that runs only at the end.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from tidetable.config import location, path_pattern
from tidetable.config.lifetime import lifetime_sql
from tidetable.config.mistakes import Misfits, shown
from tidetable.config.names import DOCUMENTED, documented
from tidetable.config.quantities import (
    Duration,
    PositiveDuration,
    RowLimit,
    Size,
    Time,
    format_duration,
    format_time,
    parse_bad_rows_max,
)
from tidetable.config.scheme import (
    NOT_CHOSEN,
    AutoConfig,
    SchemeChoice,
    SchemeConfig,
    as_written,
)
from tidetable.config.source import CLOSED, Column, Source, Text
from tidetable.core import slot
from tidetable.core.schemes import Scheme
from tidetable.core.slot import Timeline

PERIOD_MAX = 1_000_000
QUARANTINE_EXTRA = timedelta(days=7)
"""So much longer than a good row may live a bad one stays, for whoever looks into it."""

_GIVEN = "_given"
"""No field: neither the YAML nor the table says how somebody called the index."""

NAME_PATTERN = "[a-z][a-z0-9_]{0,62}"
# Rows in the table lie where these put them: a changed value would look for them elsewhere.
LAYOUT_FIELDS = frozenset(
    {
        "key",
        "inserted_at",
        "expires_at",
        "lifetime",
        "update_every",
        "longest_lifetime",
        "start",
        "scheme",
    }
)


class Engine(StrEnum):
    """How a task of the pipeline reaches Spark."""

    SUBMIT = "submit"
    CONNECT = "connect"


class OnFailure(StrEnum):
    """What an uneven table does to the pipeline; untrue tables always fail it."""

    FAIL = "fail"
    WARN = "warn"


@dataclass(frozen=True, kw_only=True, config=CLOSED)
class Volume:
    """How far what a slot brings may be from what is usual."""

    min_share: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)] = 0.1
    """Fewer rows than this share of the least that is usual at this time of day; 0 for no limit."""

    max_share: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False)] = 10.0
    """More rows than so many times the most that is usual in a day."""

    over: Annotated[int | None, Field(strict=True, ge=3, le=10_000)] = None
    """What the last so many updates read is usual; without it those of the last eight days."""

    on_failure: OnFailure = OnFailure.WARN
    """Whether such a slot, or a missing folder, fails the validation or only warns."""


@dataclass(frozen=True, kw_only=True, config=CLOSED)
class Quality:
    """What the quality report lets pass."""

    imbalance_max: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False)] = 1.5
    """The largest cell may be so many times the average one."""

    bad_rows_max: RowLimit = parse_bad_rows_max("5%")
    """More bad rows than this share, or number, fail an update before it commits."""

    on_failure: OnFailure = OnFailure.FAIL
    """Whether uneven cells fail the validation or only warn; what is untrue always fails it."""

    check_rows_every: Annotated[int, Field(strict=True, ge=0)] = 12
    """Every so many updates all rows are read and checked, inside the update; 0 for never."""

    against_source_every: Annotated[int, Field(strict=True, ge=0)] = 0
    """Every so many updates the live rows are compared with the source; 0 for never."""

    volume: Volume = Field(default_factory=Volume)
    """How many rows a slot may bring."""

    files_per_cell_max: Annotated[int | None, Field(strict=True, ge=1)] = None
    """More files than this in a cell count as uneven; without it what the scheme predicts."""

    keep_reports: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 50
    """So many quality reports stay; older ones go."""


@dataclass(frozen=True, kw_only=True, config=CLOSED)
class QuarantineRules:
    """What becomes of rows that were not taken."""

    keep_for: Duration | None = None
    """How long they stay, such as 30d; without it longest_lifetime and 7 days more."""


def _name(name: str) -> str:
    if not re.fullmatch(NAME_PATTERN, name):
        raise ValueError(
            f"{shown(name)} is not a name; write 1 to 63 small letters, digits and _, "
            "a letter first"
        )
    return name


def _table_place(path: str, info: ValidationInfo) -> str:
    """As for a source: without a loader a path stays as it is written."""
    base = (info.context or {}).get("base")
    return path if base is None else location.table_place(path, base)


def _names_and_choices(schema: dict[str, Any]) -> None:
    """For editors: the documented names, the older ones as deprecated, and what excludes what."""
    fields = schema["properties"]
    named: dict[str, Any] = {}
    for name, described in fields.items():
        named[documented(name)] = described
    for name, new in DOCUMENTED.items():
        about = f"The older name of {new}."
        named[name] = {**fields[name], "description": about, "deprecated": True}
    schema["properties"] = named
    schema["required"].remove("inserted_at")
    schema["allOf"] = [
        {"oneOf": [{"required": [name]} for name in choices]}
        for choices in (("valid_from", "inserted_at"), ("valid_until", "expires_at", "lifetime"))
    ]


INDEX = ConfigDict(
    extra="forbid", use_attribute_docstrings=True, json_schema_extra=_names_and_choices
)


@dataclass(frozen=True, kw_only=True, config=INDEX)
class Index:
    """One index: a Delta table that holds the live rows of one source."""

    name: Annotated[
        Text, AfterValidator(_name), Field(json_schema_extra={"pattern": f"^{NAME_PATTERN}$"})
    ]
    """Small letters, digits and _; the DAG of the index has the same name."""

    description: Text | None = None
    """What the index is for, in a sentence."""

    source: Source
    """Where the rows come from."""

    key: Column
    """The column that probes look up."""

    inserted_at: Column
    """The column with the time from which a row counts."""

    expires_at: Column | None = None
    """The column with the time at which a row dies; either this or lifetime."""

    lifetime: Annotated[Text | None, Field(validate_default=True)] = None
    """How long a row lives: an SQL expression of intervals and columns; or write valid_until."""

    update_every: PositiveDuration
    """The time from one update to the next, such as 30m"""

    longest_lifetime: PositiveDuration
    """No row lives longer after its arrival than this, such as 12h"""

    start: Time
    """The time at which the first slot begins, with a zone."""

    end: Time | None = None
    """The time after which there are no more updates, with a zone."""

    table: Annotated[Text, AfterValidator(_table_place)]
    """Where the Delta table is: a folder or a URI such as s3a://bucket/table"""

    scheme: SchemeChoice
    """How rows are spread over cells, and what an update does to them; or auto."""

    keep_versions_for: Duration = timedelta(hours=24)
    """How long old versions of the table stay, for readers and time travel."""

    quarantine: QuarantineRules = Field(default_factory=QuarantineRules)
    """What becomes of rows that were not taken."""

    quality: Quality = Field(default_factory=Quality)
    """What the quality report lets pass."""

    engine: Engine = Engine.SUBMIT
    """How the pipeline runs Spark: an application of its own each time, or a Connect server."""

    connection: Text | None = None
    """Airflow's connection to Spark; spark_default or spark_connect_default if not written."""

    target_file_size: Annotated[Size, Field(json_schema_extra={"default": "64MB"})] = 64 * 1024**2
    """Files above this size are split by key range, such as 64MB"""

    statistics: tuple[Column, ...] = ()
    """More columns by whose least and greatest value readers may skip files."""

    @property
    def period(self) -> int:
        """p: the number of updates in the longest lifetime, rounded up."""
        return slot.period(self.longest_lifetime, self.update_every)

    @property
    def keep_quarantined_for(self) -> timedelta:
        """How long rows stay in quarantine."""
        written = self.quarantine.keep_for
        return self.longest_lifetime + QUARANTINE_EXTRA if written is None else written

    @property
    def timeline(self) -> Timeline:
        return Timeline(self.start, self.update_every)

    @property
    def lifetime_sql(self) -> str | None:
        """The lifetime as Spark is to run it: written anew from what was checked."""
        return None if self.lifetime is None else lifetime_sql(self.lifetime)

    def build_scheme(self) -> Scheme:
        """UserError while it is the advisor's to choose: see `delta.table.resolved`."""
        return self.scheme.build(self.period)

    @property
    def is_auto(self) -> bool:
        """Whether the scheme is the advisor's to choose, or the table's to tell."""
        return isinstance(self.scheme, AutoConfig)

    @property
    def scheme_label(self) -> str:
        """The scheme for people, chosen or not."""
        return f"auto, {NOT_CHOSEN}" if self.is_auto else self.build_scheme().label

    def with_scheme(self, scheme: SchemeConfig) -> Index:
        """The same index with this scheme."""
        return replace(self, scheme=scheme).given_as(self.__dict__.get(_GIVEN))

    def given_as(self, written: str | None) -> Index:
        """The same index, which remembers what a user wrote to name it: a path, or its name."""
        object.__setattr__(self, _GIVEN, written)
        return self

    @property
    def argument(self) -> str:
        """The index as a command takes it, for advice that works as it is printed."""
        return shlex.quote(self.__dict__.get(_GIVEN) or self.name)

    @property
    def layout_fingerprint(self) -> dict[str, Any]:
        """What cannot change once the table exists, as JSON values; equal if and only if equal."""
        layout: dict[str, Any] = _ADAPTER.dump_python(self, mode="json", include=set(LAYOUT_FIELDS))
        if not isinstance(self.scheme, AutoConfig):
            # A table of the time before there was a field is laid out as one without it.
            for field in self.scheme.added_later - as_written(self.scheme).keys():
                del layout["scheme"][field]
        return {"arrived_at": self.source.arrived_at, **layout}

    @field_validator("expires_at")
    @classmethod
    def _not_born_dead(cls, column: str | None, info: ValidationInfo) -> str | None:
        inserted_at = info.data.get("inserted_at")
        if column and inserted_at and column.lower() == inserted_at.lower():
            raise ValueError(
                f"'{column}' is valid_from as well, so no row would live; write another column"
            )
        return column

    @field_validator("lifetime")
    @classmethod
    def _one_way_to_die(cls, lifetime: str | None, info: ValidationInfo) -> str | None:
        if "expires_at" not in info.data:
            return lifetime  # It was written, and is a mistake already.
        expires_at = info.data["expires_at"]
        if expires_at is None and lifetime is None:
            raise ValueError("neither valid_until nor lifetime is written; write one of the two")
        if expires_at is not None and lifetime is not None:
            raise ValueError("both valid_until and lifetime are written; keep one of the two")
        if lifetime is not None:
            lifetime_sql(lifetime)
        return lifetime

    @field_validator("longest_lifetime")
    @classmethod
    def _not_too_many_slots(cls, longest: timedelta, info: ValidationInfo) -> timedelta:
        period = _period(longest, info.data.get("update_every"))
        if period is not None and period > PERIOD_MAX:
            every = format_duration(info.data["update_every"])
            raise ValueError(
                f"{format_duration(longest)} holds {period} updates of {every}; "
                f"at most {PERIOD_MAX} are allowed: shorten it, or update less often"
            )
        return longest

    @field_validator("end")
    @classmethod
    def _after_start(cls, end: datetime | None, info: ValidationInfo) -> datetime | None:
        start = info.data.get("start")
        if end and start and end <= start:
            raise ValueError(
                f"{format_time(end)} is not after start, {format_time(start)}; write a later time"
            )
        return end

    @field_validator("table")
    @classmethod
    def _apart_from_source(cls, table: str, info: ValidationInfo) -> str:
        if path_pattern.has_placeholders(table):
            raise ValueError(f"{shown(table)} has a time placeholder; a table has one place")
        source = info.data.get("source")
        for one in location.tables_at(table):
            if source and location.overlap(source.path, one):
                beside = "" if one == table else ", which belongs to the table,"
                raise ValueError(
                    f"{shown(one)}{beside} and source.path, {shown(source.path)}, lie in each "
                    "other; write a folder of its own"
                )
        return table

    @field_validator("scheme")
    @classmethod
    def _fits(cls, scheme: SchemeChoice, info: ValidationInfo) -> SchemeChoice:
        period = _period(info.data.get("longest_lifetime"), info.data.get("update_every"))
        misfits = tuple(scheme.misfits(period))
        if misfits:
            raise Misfits(misfits)
        return scheme


def _period(longest: timedelta | None, every: timedelta | None) -> int | None:
    """p, or None if one of the two is itself a mistake."""
    return slot.period(longest, every) if longest and every else None


_ADAPTER = TypeAdapter(Index)
