"""The short way: a call that is plain is read without Typer, which takes longer than the answer.

Plain is a daily command with options of its own, each written once and apart from its value.
Everything else (--help, a mistake, a shell that asks for completions, --option=value) is not
judged here: the whole command line (root.py) reads it, from the same descriptions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tidetable.cli.commands import Argument, Described, Option

_NUMBER = re.compile(r"[0-9]{1,18}")


class _NotPlain(Exception):
    """For Typer."""


@dataclass
class _Taken:
    """What is left of the words once the options are taken out."""

    values: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


def plain_call(command: Described, words: Sequence[str]) -> dict[str, Any] | None:
    """What to call the command's function with; None if Typer has to look at the words."""
    if any(name.startswith("_") and name.endswith("_COMPLETE") for name in os.environ):
        return None
    try:
        return _call(command, words)
    except _NotPlain:
        return None


def _call(command: Described, words: Sequence[str]) -> dict[str, Any]:
    hints = get_type_hints(command.function, include_extras=True)
    parameters = signature(command.function).parameters
    described = {name: _description(hints[name]) for name in parameters}
    taken = _options(_by_flag(described), words)
    values = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not Parameter.empty
    } | taken.values
    for name, (kind, what) in described.items():
        if isinstance(what, Argument):
            _take_argument(values, name, kind, taken.words)
    if taken.words or values.keys() != parameters.keys():
        raise _NotPlain
    return values


def _description(hint: Any) -> tuple[Any, Argument | Option]:
    """The type of a parameter, and what is said of it."""
    if get_origin(hint) is not Annotated:
        raise _NotPlain
    kind, what = get_args(hint)[:2]
    if not isinstance(what, Argument | Option):
        raise _NotPlain
    if isinstance(kind, UnionType):
        kinds = [one for one in get_args(kind) if one is not NoneType]
        kind = kinds[0] if len(kinds) == 1 else None
    return kind, what


def _by_flag(
    described: Mapping[str, tuple[Any, Argument | Option]],
) -> dict[str, tuple[str, Any, Option]]:
    return {
        what.name or f"--{name.replace('_', '-')}": (name, kind, what)
        for name, (kind, what) in described.items()
        if isinstance(what, Option)
    }


def _options(flags: Mapping[str, tuple[str, Any, Option]], words: Sequence[str]) -> _Taken:
    taken = _Taken()
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            taken.words.append(word)
            continue
        if word not in flags:
            raise _NotPlain
        name, kind, option = flags[word]
        if name in taken.values:
            raise _NotPlain
        taken.values[name] = True if kind is bool else _value(kind, option, next(rest, "-"))
    return taken


def _value(kind: Any, option: Option, word: str) -> str | int:
    if word.startswith("-"):
        raise _NotPlain
    if kind is str:
        return word
    if kind is not int or not _NUMBER.fullmatch(word):
        raise _NotPlain
    number = int(word)
    if option.min is not None and number < option.min:
        raise _NotPlain
    return number


def _take_argument(values: dict[str, Any], name: str, kind: Any, words: list[str]) -> None:
    """Takes the argument off the words, as far as there are any."""
    if kind == list[str]:
        if words:
            values[name] = list(words)
            words.clear()
    elif kind is not str:
        raise _NotPlain
    elif words:
        values[name] = words.pop(0)
