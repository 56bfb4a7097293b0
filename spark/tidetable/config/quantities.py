"""Durations, times, sizes and shares as people write them in an index file.

Each `parse_` function takes what the file holds, or a value that is already of the right type,
and raises ValueError with `what was found; what is allowed`. The annotated types below them are
what the dataclasses use: they parse, check, write back, and describe themselves to editors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from tidetable.config.mistakes import shown

_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
}
DURATION_MAX = timedelta(days=36_500)
# Far from the ends of Python's calendar, so that start - longest_lifetime always exists.
YEAR_MIN, YEAR_MAX = 1900, 9000
# Powers of 1024, as Spark and Delta read the same letters.
_SIZES = {"GB": 1024**3, "MB": 1024**2}
SIZE_MIN, SIZE_MAX = 1024**2, 16 * 1024**3


def parse_duration(found: object) -> timedelta:
    """`30m` -> timedelta. Whole seconds, from 0 up to 36500 days."""
    if isinstance(found, timedelta):
        duration = found
    else:
        match = re.fullmatch(r"([0-9]{1,12})([smhd])", found) if isinstance(found, str) else None
        if match is None:
            raise ValueError(
                f"{shown(found)} is not a duration; "
                "write a number and a unit, such as 30s, 15m, 2h, 1d"
            )
        count, unit = int(match[1]), _UNITS[match[2]]
        # Compared before multiplying: the product may be more than a timedelta can hold.
        duration = count * unit if count <= DURATION_MAX // unit else timedelta.max
    if duration > DURATION_MAX:
        raise ValueError(f"{shown(found)} is too long; write at most {DURATION_MAX.days}d")
    if duration < timedelta(0) or duration.microseconds:
        raise ValueError(f"{shown(found)} is not a whole number of seconds from 0 on")
    return duration


def format_duration(duration: timedelta) -> str:
    """The shortest way to write it: 1800 seconds are `30m`."""
    if not duration:
        return "0s"
    unit, length = next((u, length) for u, length in _UNITS.items() if not duration % length)
    return f"{duration // length}{unit}"


def _positive(duration: timedelta) -> timedelta:
    if not duration:
        raise ValueError("the duration is 0; write one that is longer, such as 30s, 15m, 2h, 1d")
    return duration


def parse_time(found: object) -> datetime:
    """ISO 8601 with a zone -> the same moment in UTC."""
    if isinstance(found, datetime):
        time = found
    else:
        try:
            time = datetime.fromisoformat(found)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(
                f"{shown(found)} is not a time; "
                "write ISO 8601 with a zone, such as 2013-01-01T00:00:00Z"
            ) from None
    if time.tzinfo is None:
        raise ValueError(
            f"{shown(found)} has no zone; add Z or an offset, such as {time.isoformat()}Z"
        )
    if not YEAR_MIN <= time.year <= YEAR_MAX:
        raise ValueError(f"{shown(found)} is out of range; write a year {YEAR_MIN} to {YEAR_MAX}")
    return time.astimezone(UTC)


def format_time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def parse_size(found: object) -> int:
    """`64MB` -> bytes (a MB is 1024 * 1024 of them); a number without a unit is bytes."""
    if isinstance(found, int) and not isinstance(found, bool):
        size = found
    else:
        pattern = r"([0-9]{1,9}) ?(MB|GB)"
        match = re.fullmatch(pattern, found, re.IGNORECASE) if isinstance(found, str) else None
        if match is None:
            raise ValueError(
                f"{shown(found)} is not a size; write a number and a unit, such as 64MB, 128MB, 1GB"
            )
        size = int(match[1]) * _SIZES[match[2].upper()]
    if not SIZE_MIN <= size <= SIZE_MAX:
        limits = f"{format_size(SIZE_MIN)} to {format_size(SIZE_MAX)}"
        unit = " bytes" if isinstance(found, int) else ""
        raise ValueError(f"{shown(found)}{unit} is out of range; write {limits}")
    return size


def format_size(size: int) -> str | int:
    """`64MB` for 67108864; the bytes themselves if they are no whole number of MB."""
    for unit, length in _SIZES.items():
        if size % length == 0:
            return f"{size // length}{unit}"
    return size


@dataclass(frozen=True)
class BadRowsMax:
    """How many bad rows an update may have: a share of the rows it reads, or a number of rows.

    Exactly one of the two is set.
    """

    percent: Decimal | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        if (self.percent is None) == (self.rows is None):
            raise ValueError("give either percent or rows")

    def allows(self, bad: int, total: int) -> bool:
        if self.percent is not None:
            return bad * 100 <= self.percent * total
        assert self.rows is not None
        return bad <= self.rows

    def __str__(self) -> str:
        if self.percent is not None:
            return f"{self.percent:f}%"
        return "1 row" if self.rows == 1 else f"{self.rows} rows"


def parse_bad_rows_max(found: object) -> BadRowsMax:
    """`5%` or a whole number of rows."""
    if isinstance(found, BadRowsMax):
        return found
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return BadRowsMax(rows=found)
    pattern = r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%"
    match = re.fullmatch(pattern, found) if isinstance(found, str) else None
    if match is None or Decimal(match[1]) > 100:
        raise ValueError(
            f"{shown(found)} is neither a percentage nor a number of rows; "
            "write 0% to 100%, such as 5% or 0.5%, or a whole number from 0 on"
        )
    return BadRowsMax(percent=Decimal(match[1]))


def _plain_bad_rows_max(limit: BadRowsMax) -> str | int:
    return str(limit) if limit.rows is None else limit.rows


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,12}[smhd]$", "examples": ["30m", "1d"]}),
]
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
Time = Annotated[
    datetime,
    BeforeValidator(parse_time),
    PlainSerializer(format_time, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[0-9]{4}.+[T ][0-9].*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$",
            "examples": ["2013-01-01T00:00:00Z"],
        }
    ),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(format_size),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": "^[0-9]{1,9} ?[mMgG][bB]$"},
                {"type": "integer", "minimum": SIZE_MIN, "maximum": SIZE_MAX},
            ],
            "examples": ["64MB", "1GB"],
        }
    ),
]
RowLimit = Annotated[
    BadRowsMax,
    BeforeValidator(parse_bad_rows_max),
    PlainSerializer(_plain_bad_rows_max),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,6})? ?%$"},
                {"type": "integer", "minimum": 0},
            ],
            "examples": ["5%", 100],
        }
    ),
]
