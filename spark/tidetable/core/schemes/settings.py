"""What the settings of all schemes share: what a YAML file may say, and what is made of it.

The settings of a scheme are a frozen dataclass of pydantic, in the scheme's own file. Pydantic
checks values and does no I/O; its findings get their line and their words in `tidetable.config`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import ConfigDict, Field

from tidetable.core.schemes.base import Scheme

CELLS_MAX = 10_000

Parts: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=CELLS_MAX)]


class Settings(ABC):
    """The settings of one scheme, as the YAML has them below `scheme`."""

    name: str
    """The scheme's name in a configuration; a `Literal` with itself as its default."""

    added_later: ClassVar[frozenset[str]] = frozenset()
    """Fields that tables of earlier versions do not know: a table remembers them only if they are
    not the default, so that one made before there was such a field still is the same."""

    @abstractmethod
    def misfits(self, period: int | None) -> Iterator[tuple[str, str]]:
        """(field, message) for what does not go together; `period` None if it is not known."""

    @abstractmethod
    def build(self, period: int) -> Scheme:
        """The scheme for a window of so many slots."""

    @classmethod
    @abstractmethod
    def worth_trying(cls, slots: int, *, coarse: bool) -> Iterator[Self]:
        """What the advisor tries for a window of so many slots, each of one or (coarse) several.

        Settings that do not fit the window are left out by the advisor.
        """


def _name_is_required(schema: dict[str, Any]) -> None:
    # Python gives each class its own name; a file has nothing else to tell the schemes apart by.
    schema["required"] = ["name", *schema.get("required", [])]
    del schema["properties"]["name"]["default"]


SETTINGS = ConfigDict(
    extra="forbid", use_attribute_docstrings=True, json_schema_extra=_name_is_required
)
"""How pydantic is to check the settings of a scheme."""


def more_than_slots(field: str, parts: int, period: int | None) -> Iterator[tuple[str, str]]:
    """The misfit of a field that asks for more parts than the window has slots."""
    if period is not None and parts > period:
        yield (
            field,
            f"{parts} is more than the {period} updates in longest_lifetime; "
            f"write at most {period}",
        )
