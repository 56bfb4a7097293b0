"""Two names for one field: the one that the documentation has, and the one of older files.

`inserted_at` misled: in Delta "inserted" is when a row was written, and here the column only says
from when a row counts. Code, table properties and older files keep the old names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tidetable.config.located import FieldPath, Located
from tidetable.config.mistakes import Mistake

DOCUMENTED: Mapping[str, str] = {"inserted_at": "valid_from", "expires_at": "valid_until"}
"""By the name that the code has."""


def with_names_of_code(document: Located) -> Located:
    """The document as the code names its fields; a field under both names is a mistake."""
    if not isinstance(document.value, dict):
        return document
    fields = dict(document.value)
    mistakes = list(document.mistakes)
    for name, documented in DOCUMENTED.items():
        if documented not in fields:
            continue
        if name in fields:
            message = f"means the same as {name}, which is written too; keep one of the two"
            mistakes.append(Mistake(document.line((documented,)), documented, message))
        fields[name] = fields.pop(documented)
    lines = {_of_code(path): line for path, line in document.lines.items()}
    written = {_of_code(path): text for path, text in document.written.items()}
    return replace(
        document, value=fields, lines=lines, written=written, mistakes=tuple(mistakes),
        old_names=frozenset(DOCUMENTED) & frozenset(document.value),
    )  # fmt: skip


def shown_path(path: FieldPath, old_names: Collection[str]) -> FieldPath:
    """The path by the name that is in the file, or the documented one if it is not there."""
    if not path or str(path[0]) in old_names:
        return path
    return (documented(str(path[0])), *path[1:])


def documented(name: str) -> str:
    """The name of a field as the documentation has it."""
    return DOCUMENTED.get(name, name)


def _of_code(path: FieldPath) -> FieldPath:
    by_document = {documented: name for name, documented in DOCUMENTED.items()}
    return (by_document.get(str(path[0]), path[0]), *path[1:]) if path else path
