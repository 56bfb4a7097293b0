"""YAML as plain values that know their lines.

Values are resolved here and not by PyYAML, whose YAML 1.1 rules turn `1:30` into 90, `no` into
false and a time without a zone into a datetime: what a file means must not depend on that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

from tidetable.config.mistakes import Mistake

FieldPath: TypeAlias = tuple[str | int, ...]

DEPTH_MAX = 10
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]{1,3})?")
_WORDS: Mapping[str, bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
}
# What PyYAML's commonest complaints mean to somebody who does not know its grammar.
_PLAIN_WORDS = (
    (r"mapping values are not allowed", "a ':' in a place where it cannot stand; check the "
     "indentation, and quote text that holds a colon"),
    (r"character '\\t'", "a tab; indent with spaces"),
    (r"could not find expected ':'", "a line without ':'; write field: value"),
    (r"expected <block end>", "the indentation does not fit the lines above; align the fields of "
     "one mapping"),
    (r"end of stream", "a quote that is never closed; close it"),
    (r"expected ',' or '[}\]]'", "a { or [ that is not closed, or a comma that is missing"),
    (r"expected a single document", "a second document; keep one, without ---"),
)  # fmt: skip
# Noticed at the next line or at the end of the file: the mistake is where the thing started.
_NOTICED_LATE = r"could not find expected ':'|end of stream"


@dataclass(frozen=True)
class Located:
    """A YAML document: its value, the line of each field, and each scalar as it was written."""

    value: object
    lines: Mapping[FieldPath, int]
    written: Mapping[FieldPath, str]
    mistakes: tuple[Mistake, ...]
    old_names: frozenset[str] = frozenset()
    """Fields that the file calls by a name of older files (see names.py)."""

    def line(self, path: FieldPath) -> int:
        """The line of a field, or of the nearest mapping around it that is there."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)


class Unreadable(Exception):
    """The text is not YAML, or uses a part of YAML that index files do not have."""

    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        super().__init__(mistake.message)


def read(text: str) -> Located:
    """The document in `text`. Raises `Unreadable` if there is none; doubled fields are mistakes."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_marked(error, last_line=max(1, len(text.splitlines())))) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = f"the character {error.character:#06x}" if error.character else "a character"
        raise Unreadable(
            Mistake(line, "", f"not YAML: {found} cannot stand in a text; remove it")
        ) from error
    if root is None:
        raise Unreadable(Mistake(1, "", "the file is empty; write the fields of an index"))
    reading = _Reading()
    value = reading.value(root, ())
    reading.lines[()] = _line(root)
    return Located(value, reading.lines, reading.written, tuple(reading.mistakes))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _marked(error: yaml.MarkedYAMLError, last_line: int) -> Mistake:
    said = error.problem or error.context or "no reason given"
    mark, start = error.problem_mark or error.context_mark, error.context_mark
    if start is not None and mark is not None and start.line != mark.line:
        said += f" in line {mark.line + 1}, {error.context} that starts in line {start.line + 1}"
        if re.search(_NOTICED_LATE, said):
            mark = start
    plain = next((words for sign, words in _PLAIN_WORDS if re.search(sign, said)), None)
    message = f"not YAML: {plain} (the parser said: {said})" if plain else f"not YAML: {said}"
    return Mistake(min(mark.line + 1, last_line) if mark else None, "", message)


class _Loader(yaml.SafeLoader):
    """Composes nodes; refuses aliases (they can be endless), tags and deep nesting."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        refused = None
        if isinstance(event, yaml.AliasEvent):
            refused = f"an alias, *{event.anchor}, is not read here; write the value out"
        elif getattr(event, "tag", None) is not None:
            refused = f"a tag, {event.tag}, is not read here; quote a value to make it text"
        elif self.depth > DEPTH_MAX:
            refused = f"nested deeper than {DEPTH_MAX} levels; an index needs 3"
        if refused is not None:
            raise yaml.composer.ComposerError(None, None, refused, event.start_mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


@dataclass
class _Reading:
    """Collects lines and mistakes while nodes become values."""

    lines: dict[FieldPath, int] = field(default_factory=dict)
    written: dict[FieldPath, str] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def value(self, node: yaml.Node, path: FieldPath) -> object:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.lines[(*path, index)] = _line(item)
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        self.written[path] = str(node.value)
        # A plain scalar has no style; quoted and block text is always text.
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        return _scalar(node.value) if plain else node.value

    def _mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, object]:
        fields: dict[str, object] = {}
        for key, item in node.value:
            line = _line(key)
            if not isinstance(key, yaml.ScalarNode):
                message = "a field name that is a list or a mapping; write plain text"
                self.mistakes.append(Mistake(line, dotted(path), message))
                continue
            here = (*path, key.value)
            if key.value in fields:
                message = f"written twice, first in line {self.lines[here]}; keep one of the two"
                self.mistakes.append(Mistake(line, dotted(here), message))
                continue
            self.lines[here] = line
            fields[key.value] = self.value(item, here)
        return fields


def dotted(path: FieldPath) -> str:
    return ".".join(str(part) for part in path)


def _scalar(written: str) -> object:
    """Unquoted text that looks like a number, true, false or null is that; all else is text."""
    if written in _WORDS:
        return _WORDS[written]
    if _INT.fullmatch(written):
        return int(written)
    if _FLOAT.fullmatch(written):
        return float(written)
    return written
