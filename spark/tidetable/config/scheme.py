"""The `scheme` of an index: one of those that are registered, or that the advisor is to choose."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, Union

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.dataclasses import dataclass
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from tidetable.config.quantities import Duration
from tidetable.core.errors import UserError
from tidetable.core.schemes import SCHEMES, Scheme, Settings
from tidetable.core.schemes.settings import SETTINGS

SchemeConfig: TypeAlias = Settings
"""A scheme with its settings."""

NOT_CHOSEN = "not chosen yet"


@dataclass(frozen=True, kw_only=True, config=SETTINGS)
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


def sections() -> dict[str, Any]:
    """What may stand below `scheme`, by its name."""
    return {**SCHEMES, AutoConfig.name: AutoConfig}


def scheme_from(written: object) -> SchemeConfig:
    """The settings that a mapping describes. Raises pydantic's ValidationError."""
    chosen: SchemeConfig = _adapter(tuple(SCHEMES.values())).validate_python(written)
    return chosen


def as_written(setting: SchemeConfig) -> dict[str, Any]:
    """The setting as it stands in a YAML file, without what is the default anyway."""
    # Always with the name, though Python has it as a default.
    adapter: TypeAdapter[Any] = TypeAdapter(type(setting))
    return {
        "name": setting.name,
        **adapter.dump_python(setting, mode="json", exclude_defaults=True),
    }


class _Registered:
    """Validates as one of the schemes that are registered by then, or as `auto`."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        # Pydantic builds a union when the class is made; a scheme may be registered after that.
        return core_schema.no_info_plain_validator_function(_validated)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(_adapter(tuple(sections().values())).core_schema)


SchemeChoice: TypeAlias = Annotated[SchemeConfig | AutoConfig, _Registered]
"""What may stand in the YAML: a scheme, or that the advisor is to choose one."""


def _validated(written: object) -> SchemeConfig | AutoConfig:
    spelled_out = {"name": AutoConfig.name} if written == AutoConfig.name else written
    chosen: SchemeConfig | AutoConfig = _adapter(tuple(sections().values())).validate_python(
        spelled_out
    )
    return chosen


@cache
def _adapter(known: tuple[type, ...]) -> TypeAdapter[Any]:
    choices: Any = Annotated[Union[known], Field(discriminator="name")]  # noqa: UP007
    return TypeAdapter(choices)
