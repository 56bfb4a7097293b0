"""Source paths: the time placeholders that one may hold.

A placeholder is a strftime pattern in braces: `data/{%Y-%m-%d}/{%H}`. It is filled in by the clocks
of one zone, or of several: then a time has a path in each. Braces that hold a comma and no percent
sign are a glob of Spark's, `{a,b}`, and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tidetable.config.mistakes import shown
from tidetable.core.errors import UserError

_BRACES = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDER = re.compile(r"\{([^{}]*%[^{}]*)\}")
_DIRECTIVE = re.compile(r"%(-?.|$)")
# From fine to coarse: what one step of the pattern's finest directive is.
_UNIT_OF = {"M": "minute", "H": "hour", "d": "day", "j": "day", "m": "month", "Y": "year"}
_STEPS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_UNITS = ("minute", "hour", "day", "month", "year")
_ALLOWED = "%Y, %m, %d, %j, %H, %M"

PATHS_MAX = 1_000_000


def checked(path: str) -> str:
    """The path itself if its braces are all understood; ValueError otherwise."""
    rest = _BRACES.sub("", path)
    if "{" in rest or "}" in rest:
        raise ValueError(
            f"{shown(path)} has a brace without its partner; write placeholders as {{%Y-%m-%d}}"
        )
    for inside in _BRACES.findall(path):
        if "%" not in inside and "," not in inside:
            raise ValueError(
                f"'{{{inside}}}' is not a time placeholder; "
                f"write a pattern of {_ALLOWED}, such as {{%Y-%m-%d}}"
            )
        for letter in _DIRECTIVE.findall(inside):
            if letter not in _UNIT_OF and letter != "%":
                raise ValueError(
                    f"'%{letter}' in '{{{inside}}}' is not a part of a time placeholder; "
                    f"allowed are {_ALLOWED}"
                )
    return path


def has_placeholders(path: str) -> bool:
    return _PLACEHOLDER.search(path) is not None


def root(path: str) -> str:
    """The last complete directory before the first placeholder; the path itself if it has none."""
    first = _PLACEHOLDER.search(path)
    if first is None:
        return path
    return path[: first.start()].rpartition("/")[0] or "/"


def span(path: str) -> timedelta | None:
    """How much time one path holds at most; None if there is no end to it.

    There is none without a placeholder, nor where it leaves out the year, the day, ...: then
    the same path comes round again.
    """
    letters = _directives(path)
    if "Y" not in letters:
        return None
    if letters >= {"m", "d"} or "j" in letters:
        if "H" not in letters:
            return None if "M" in letters else timedelta(days=1)
        return timedelta(minutes=1) if "M" in letters else timedelta(hours=1)
    if letters & {"d", "H", "M"}:
        return None
    return timedelta(days=31) if "m" in letters else timedelta(days=366)


def expanded(
    path: str, after: datetime, until: datetime, zones: Sequence[str] = ("UTC",)
) -> list[str]:
    """The paths that can hold rows of the slots (after, until], in order, each once."""
    if after.tzinfo is None or until.tzinfo is None:
        raise ValueError("after and until need a zone")
    if until < after:
        raise ValueError(f"until ({until}) lies before after ({after})")
    unit = _finest(path)
    if unit is None:  # no placeholder, or `{%%}` alone: a percent sign, no time
        return [_filled(path, after)]
    # A dict keeps the order; a pattern such as {%H} alone comes round to the same path again.
    return list(
        dict.fromkeys(
            _filled(path, time)
            for zone in zones
            for time in _steps(after.astimezone(UTC), until.astimezone(UTC), unit, zone)
        )
    )


def reach(
    path: str, after: datetime, until: datetime, zones: Sequence[str] = ("UTC",)
) -> tuple[datetime, datetime] | None:
    """From when to when rows may have arrived that lie in the paths for (after, until].

    None where there is no telling: without placeholders, or where the same path comes round again.
    """
    unit = _finest(path)
    if unit is None or span(path) is None:
        return None
    low, high = after.astimezone(UTC), until.astimezone(UTC)
    for zone in map(ZoneInfo, zones):
        first = (after + timedelta(microseconds=1)).astimezone(zone)
        last = _next(_truncated(until.astimezone(zone), unit), unit)
        # Of an hour that clocks show twice: from the first time that it begins ...
        low = min(low, _truncated(first, unit).replace(fold=0).astimezone(UTC))
        high = max(high, last.replace(fold=1).astimezone(UTC))  # ... to the second that it ends.
    return low, high


def _finest(path: str) -> str | None:
    """The unit of the finest directive; None if there is none."""
    units = {_UNIT_OF[letter] for letter in _directives(path) if letter in _UNIT_OF}
    return next((unit for unit in _UNITS if unit in units), None)


def _directives(path: str) -> set[str]:
    """The letters of all placeholders."""
    return set(_DIRECTIVE.findall("".join(_PLACEHOLDER.findall(path))))


def _filled(path: str, time: datetime) -> str:
    return _PLACEHOLDER.sub(lambda match: time.strftime(match[1]), path)


def _steps(after: datetime, until: datetime, unit: str, zone: str) -> Iterator[datetime]:
    """A time in each unit of the zone's clocks that meets (after, until], in order."""
    if after == until:
        return
    # The first moment of the interval: `after` itself belongs to the slot before.
    first = after + timedelta(microseconds=1)
    times = _in_utc(first, until, unit) if zone == "UTC" else _by_clock(first, until, unit, zone)
    for count, time in enumerate(times, 1):
        if count > PATHS_MAX:
            raise UserError(
                f"More than {PATHS_MAX} paths, one for each {unit}, lie between {after} and "
                f"{until}; read fewer slots at once, or a coarser path."
            )
        yield time


def _in_utc(first: datetime, until: datetime, unit: str) -> Iterator[datetime]:
    time = _truncated(first, unit)
    while time <= until:
        yield time
        time = _next(time, unit)


def _by_clock(first: datetime, until: datetime, unit: str, name: str) -> Iterator[datetime]:
    """The same by clocks that are put forward and back: hours come twice, or not at all."""
    zone = ZoneInfo(name)
    if unit in ("minute", "hour"):
        # Time itself goes on; no zone changes its clocks more often than on a quarter of an hour.
        step = _STEPS["minute"] if unit == "minute" else timedelta(minutes=15)
        time = first
        while time < until:
            yield time.astimezone(zone)
            time = _truncated(time, "minute") if unit == "minute" else _quarter(time)
            time += step
        yield until.astimezone(zone)
        return
    # Days follow each other, however long they are. Without the zone, as a calendar has them.
    day = _truncated(first.astimezone(zone).replace(tzinfo=None), unit)
    last = until.astimezone(zone).replace(tzinfo=None)
    while day <= last:
        yield day
        day = _next(day, unit)


def _quarter(time: datetime) -> datetime:
    return time.replace(minute=time.minute // 15 * 15, second=0, microsecond=0)


def _truncated(time: datetime, unit: str) -> datetime:
    time = time.replace(second=0, microsecond=0)
    if unit == "minute":
        return time
    time = time.replace(minute=0)
    if unit == "hour":
        return time
    time = time.replace(hour=0)
    if unit == "day":
        return time
    return time.replace(day=1) if unit == "month" else time.replace(day=1, month=1)


def _next(time: datetime, unit: str) -> datetime:
    if unit in _STEPS:
        return time + _STEPS[unit]
    # Long enough to reach the next month or year from its first day, too short to skip one.
    return _truncated(time + timedelta(days=32 if unit == "month" else 367), unit)
