"""What is wrong in an index file: every mistake, with its line."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from tidetable.core.errors import UserError


class Mistake(NamedTuple):
    """One mistake. `line` counts from 1 and is None if the file itself is missing or unreadable;
    `field` is a dotted path such as `scheme.groups`, empty for the file as a whole.
    """

    line: int | None
    field: str
    message: str


class ConfigError(UserError):
    """An index file that cannot be used. Its text has one line for each mistake."""

    code = "bad_index_file"

    def __init__(self, file: str, mistakes: Iterable[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: mistake.line or 0))
        super().__init__("\n".join(_line(file, mistake) for mistake in self.mistakes))
        # What it is pickled by, also if the mistakes came one by one.
        self.args = (self.file, self.mistakes)


def _line(file: str, mistake: Mistake) -> str:
    where = file if mistake.line is None else f"{file}:{mistake.line}"
    return ": ".join(part for part in (where, mistake.field, mistake.message) if part)


class Misfits(ValueError):
    """Values that are well-formed but do not fit each other: (field, message) below one field."""

    def __init__(self, parts: Iterable[tuple[str, str]]) -> None:
        self.parts = tuple(parts)
        super().__init__("; ".join(f"{field}: {message}" for field, message in self.parts))


def shown(value: object) -> str:
    """A found value as it is quoted in a message; long text is cut."""
    match value:
        case None:
            return "an empty value"
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value}'" if len(value) <= 60 else f"'{value[:57]}...'"
        case dict():
            return "a mapping"
        case list():
            return "a list"
    return str(value)


def suggestion(found: object, allowed: Iterable[str]) -> str:
    """`; did you mean 'x'?` if something allowed is near to what was found, else nothing."""
    near = get_close_matches(str(found), list(allowed), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
