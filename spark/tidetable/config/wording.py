"""Pydantic's findings in the words of an index file: what was found; what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tidetable.config.index import Index, Quality
from tidetable.config.located import FieldPath, Located, dotted
from tidetable.config.mistakes import Misfits, Mistake, shown, suggestion
from tidetable.config.names import documented, shown_path
from tidetable.config.scheme import sections
from tidetable.config.source import Source

_SECTIONS: Mapping[FieldPath, Any] = {
    (): Index,
    ("source",): Source,
    ("quality",): Quality,
}
_SCHEME_EXAMPLE = "a name and its settings, such as {name: sweep, groups: 8}"
_TYPES = {
    "string_type": "is not text; write text, in quotes if it looks like a number",
    "int_type": "is not a whole number; write one",
    "float_type": "is not a number; write one",
    "finite_number": "is not a number that can be used; write one",
    "bool_type": "is neither true nor false; write one of the two",
    "dict_type": "is not a mapping; write name: value pairs",
}


def mistakes(error: ValidationError, document: Located) -> Iterator[Mistake]:
    for detail in error.errors(include_url=False):
        for path, message in _told(detail):
            shown_as = dotted(shown_path(path, document.old_names))
            yield Mistake(document.line(path), shown_as, message)


def _told(detail: ErrorDetails) -> Iterator[tuple[FieldPath, str]]:
    loc, kind, found = detail["loc"], detail["type"], detail["input"]
    context = detail.get("ctx", {})
    path = _without_tag(loc)
    cause = context.get("error")
    if isinstance(cause, Misfits):
        for field, message in cause.parts:
            yield (*path, field), message
    elif kind == "value_error":
        yield path, str(cause)
    elif kind == "missing":
        yield path, f"is missing; write it: {_description(loc)}"
    elif kind == "unexpected_keyword_argument":
        allowed = _fields(loc[:-1])
        near = suggestion(loc[-1], allowed)
        yield path, f"unknown field; allowed are {', '.join(allowed)}{near}"
    elif kind in ("dataclass_type", "model_attributes_type"):
        allowed = _fields(loc)
        fields = f"the fields {', '.join(allowed)}" if allowed else _SCHEME_EXAMPLE
        yield path, f"{shown(found)} is not a mapping; write {fields}"
    elif kind in ("union_tag_invalid", "union_tag_not_found"):
        yield (*path, "name"), _scheme_name(found)
    else:
        yield path, _plain(kind, found, context, detail["msg"])


def _plain(kind: str, found: object, context: Mapping[str, Any], said: str) -> str:
    if kind in _TYPES:
        return f"{shown(found)} {_TYPES[kind]}"
    if kind == "enum":
        allowed = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        near = suggestion(found, allowed)
        return f"{shown(found)} is not known; allowed are {', '.join(allowed)}{near}"
    if kind == "greater_than_equal":
        return f"{shown(found)} is too small; write at least {context['ge']:g}"
    if kind == "less_than_equal":
        return f"{shown(found)} is too large; write at most {context['le']}"
    return f"{shown(found)}: {said}"


def _scheme_name(found: object) -> str:
    schemes = sections()
    names = ", ".join(schemes)
    name = found.get("name") if isinstance(found, dict) else None
    if name is None:
        return f"is missing; write which scheme: {names}"
    return f"{shown(name)} is not a scheme; allowed are {names}{suggestion(name, schemes)}"


def _without_tag(loc: FieldPath) -> FieldPath:
    return (loc[0], *loc[2:]) if loc[:1] == ("scheme",) and len(loc) > 1 else loc


def _fields(section: FieldPath) -> list[str]:
    described = _section(section)
    return [documented(name) for name in described.__pydantic_fields__] if described else []


def _description(loc: FieldPath) -> str:
    described: str = _section(loc[:-1]).__pydantic_fields__[loc[-1]].description
    return described[0].lower() + described[1:].rstrip(".")


def _section(path: FieldPath) -> Any:
    """The class of what stands at the path; None if it has no fields."""
    if path[:1] == ("scheme",) and len(path) == 2:
        # Pydantic puts the scheme's name into the path of everything below `scheme`.
        return sections().get(str(path[1]))
    return _SECTIONS.get(path)
