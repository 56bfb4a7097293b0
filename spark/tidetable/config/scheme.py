"""The `scheme` of an index: which one, and how many parts it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from tidetable.config.quantities import Duration
from tidetable.core.errors import UserError
from tidetable.core.placement import Placement
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers

CELLS_MAX = 10_000
EVERY_MAX = 1_000
MERGE_LOG_MAX = 1_000_000
FAN_IN_MAX = 1_000

Parts: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=CELLS_MAX)]
PARTS = "Parts by {} slot; at most one for each update in longest_lifetime."


def _name_is_required(schema: dict[str, Any]) -> None:
    # Python gives each class its own name; a file has nothing else to tell the schemes apart by.
    schema["required"] = ["name", *schema.get("required", [])]
    del schema["properties"]["name"]["default"]


SCHEME = ConfigDict(
    extra="forbid", use_attribute_docstrings=True, json_schema_extra=_name_is_required
)


@dataclass(frozen=True, kw_only=True, config=SCHEME)
class _GridConfig:
    # Pydantic finds docstrings of attributes only in the class itself, not in the ones below it.
    insertion: Annotated[Parts, Field(description=PARTS.format("insertion"))]
    expiration: Annotated[Parts, Field(description=PARTS.format("expiration"))]
    placement: Annotated[
        Placement,
        Field(description="Whether neighbouring slots go to different parts or share one."),
    ] = Placement.ROUND_ROBIN

    @property
    def cells(self) -> int:
        return self.insertion * self.expiration

    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        """(field, message) for what does not go together; `period` None if it is not known."""
        yield from _more_than_slots("insertion", self.insertion, period)
        yield from _more_than_slots("expiration", self.expiration, period)
        if self.cells > CELLS_MAX:
            yield (
                "insertion",
                f"{self.insertion} x {self.expiration} parts are {self.cells} cells; "
                f"insertion x expiration may be at most {CELLS_MAX}",
            )


@dataclass(frozen=True, kw_only=True, config=SCHEME)
class RebuildConfig(_GridConfig):
    """Doubly partitioned; every touched cell is written again: cheap to probe."""

    name: Literal["rebuild"] = "rebuild"

    def build(self, period: int) -> Scheme:
        return Rebuild(period, self.insertion, self.expiration, self.placement)


@dataclass(frozen=True, kw_only=True, config=SCHEME)
class NoRebuildConfig(_GridConfig):
    """Doubly partitioned; new rows are appended, expired ones marked: cheap to update."""

    name: Literal["no_rebuild"] = "no_rebuild"

    def build(self, period: int) -> Scheme:
        return NoRebuild(period, self.insertion, self.expiration, self.placement)


@dataclass(frozen=True, kw_only=True, config=SCHEME)
class SweepConfig:
    """Partitioned by expiration; a group is merged when one of its slots expires."""

    name: Literal["sweep"] = "sweep"

    groups: Parts
    """Expiration groups; at most one for each update in longest_lifetime."""

    every: Annotated[int, Field(strict=True, ge=1, le=EVERY_MAX)] = 1
    """Sweep a group every so many times that it expires; above 1 needs deletion_vectors."""

    deletion_vectors: Annotated[bool, Field(strict=True)] = False
    """Mark expired rows in place, and keep new rows in a log until their group is swept."""

    merge_log: Annotated[int, Field(strict=True, ge=0, le=MERGE_LOG_MAX)] = 0
    """Merge the files of the log every so many updates; needs every: 2 or more. 0 is never."""

    @property
    def cells(self) -> int:
        return self.groups + self.deletion_vectors + (self.merge_log > 0)

    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        """(field, message) for what does not go together; `period` None if it is not known."""
        yield from _more_than_slots("groups", self.groups, period)
        if self.every > 1 and not self.deletion_vectors:
            yield (
                "every",
                f"{self.every} without deletion vectors would leave expired rows in the table; "
                "write every: 1, or deletion_vectors: true",
            )
        if not self.merge_log:
            return
        turn = self.groups * self.every
        if self.merge_log == 1:
            yield "merge_log", "1 would merge nothing; write 2 or more, or 0 for never"
        elif self.every < 2:
            yield (
                "merge_log",
                "the log is merged at updates that sweep no group, and with every: 1 each one "
                "does; write every: 2 or more, or leave out merge_log",
            )
        elif self.merge_log >= turn:
            yield (
                "merge_log",
                f"after {turn} updates (groups x every) a row has left the log anyway; "
                f"write less than {turn}, or leave out merge_log",
            )

    def build(self, period: int) -> Scheme:
        return Sweep(period, self.groups, self.every, self.deletion_vectors, self.merge_log)


@dataclass(frozen=True, kw_only=True, config=SCHEME)
class TiersConfig:
    """Partitioned by expiration; sorted runs are merged level by level: for long windows."""

    name: Literal["tiers"] = "tiers"

    groups: Parts
    """Expiration groups; at most one for each update in longest_lifetime."""

    fan_in: Annotated[int, Field(strict=True, ge=2, le=FAN_IN_MAX)]
    """So many runs of one level are merged into one of the next."""

    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        """(field, message) for what does not go together; `period` None if it is not known."""
        yield from _more_than_slots("groups", self.groups, period)
        if period is None or self.groups > period:
            return
        levels = self.build(period).top + 1
        if self.groups * levels > CELLS_MAX:
            yield (
                "groups",
                f"{self.groups} with {levels} levels each are {self.groups * levels} cells; "
                f"there may be at most {CELLS_MAX}; write at most {CELLS_MAX // levels}",
            )

    def build(self, period: int) -> Tiers:
        return Tiers(period, self.groups, self.fan_in)


SchemeConfig: TypeAlias = RebuildConfig | NoRebuildConfig | SweepConfig | TiersConfig
"""A scheme with its settings."""

NOT_CHOSEN = "not chosen yet"


@dataclass(frozen=True, kw_only=True, config=SCHEME)
class AutoConfig:
    """The advisor chooses when the table is made, and what it chose stays (docs: advisor)."""

    name: Literal["auto"] = "auto"

    probes_per_update: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = 10
    """How many keys are looked up between two updates."""

    scans_per_update: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = 1
    """How often the whole table is read between two updates."""

    update_seconds_max: Annotated[float | None, Field(strict=True, gt=0, allow_inf_nan=False)] = (
        None
    )
    """No update may take longer than this, by the advisor's prediction."""

    files_max: Annotated[int | None, Field(strict=True, ge=1)] = None
    """The table may have at most so many files."""

    purge_within: Duration | None = None
    """So soon after a row has expired its bytes have to be gone, keep_versions_for included."""

    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        """Nothing that is written here depends on the window."""
        yield from ()

    def build(self, period: int) -> Scheme:
        raise UserError(
            "The scheme is auto and not chosen yet: the advisor chooses when the table is made. "
            "Make it with tidetable update, or see the choice beforehand with tidetable advise."
        )


def _spelled_out(written: object) -> object:
    return {"name": "auto"} if written == "auto" else written


SchemeChoice: TypeAlias = Annotated[
    SchemeConfig | AutoConfig, Field(discriminator="name"), BeforeValidator(_spelled_out)
]
"""What may stand in the YAML: a scheme, or that the advisor is to choose one."""


def _more_than_slots(field: str, parts: int, period: int | None) -> Iterator[tuple[str, str]]:
    if period is not None and parts > period:
        yield (
            field,
            f"{parts} is more than the {period} updates in longest_lifetime; "
            f"write at most {period}",
        )
