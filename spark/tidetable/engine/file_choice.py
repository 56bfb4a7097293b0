"""Which files of a folder Spark reads by its options, decided as Spark decides it.

`pathGlobFilter` is a pattern of Hadoop's for the name of a file; `modifiedBefore` and
`modifiedAfter` are times in the zone of the session, UTC. What Spark makes of them where `timeZone`
names another one, only Spark knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

_GLOB, _BEFORE, _AFTER, _ZONE = "pathglobfilter", "modifiedbefore", "modifiedafter", "timezone"
_ONLY_SPARK_KNOWS = "basepath"
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Choice = Callable[[str, int], bool]
"""By the name of a file, and the millisecond in which it was last changed."""


def choice(options: Mapping[str, str]) -> Choice | None:
    """The choice that these options make; None if only Spark can tell."""
    told = {name.lower(): value for name, value in options.items()}
    try:
        if _ONLY_SPARK_KNOWS in told or (_ZONE in told and {_BEFORE, _AFTER} & told.keys()):
            return None
        name = glob_pattern(told[_GLOB]) if _GLOB in told else None
        before = _micros(told[_BEFORE]) if _BEFORE in told else None
        after = _micros(told[_AFTER]) if _AFTER in told else None
    except (ValueError, KeyError, re.error):  # Spark says what is wrong with it, or knows it
        return None

    def is_chosen(file: str, changed_ms: int) -> bool:
        changed = changed_ms * 1000
        return (
            (name is None or name.fullmatch(file) is not None)
            and (before is None or changed < before)
            and (after is None or changed > after)
        )

    return is_chosen


def _micros(text: str) -> int:
    """A time as microseconds since 1970. Only in the form that Spark's documentation names."""
    if not _TIME.fullmatch(text):
        raise ValueError(text)
    time = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (time - _EPOCH) // timedelta(microseconds=1)


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Hadoop's pattern as a regular expression: * ? [a-c] [^a] [!a] {one,other} and \\ before any.

    ValueError, or re.error, if it is none.
    """
    out, i, depth, in_set = [], 0, 0, False
    while i < len(glob):
        character = glob[i]
        if character == "\\":
            i += 1
            if i == len(glob):
                raise ValueError(f"{glob}: nothing after the last backslash")
            out.append(re.escape(glob[i]))
        elif in_set:
            opened = glob[i - 1] == "["
            in_set = character != "]"
            out.append("^" if opened and character in "!^" else _in_set(character))
        elif character == "[":
            in_set = True
            out.append("[")
        elif character == "{":
            depth += 1
            out.append("(?:")
        elif character == "," and depth:
            out.append("|")
        elif character == "}" and depth:
            depth -= 1
            out.append(")")
        else:
            out.append({"*": ".*", "?": "."}.get(character) or re.escape(character))
        i += 1
    if in_set or depth:
        raise ValueError(f"{glob}: something is not closed")
    return re.compile("".join(out), re.DOTALL)


def _in_set(character: str) -> str:
    return character if character in "-]" else re.escape(character)
