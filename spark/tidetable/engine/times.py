"""Times and slots as Spark SQL: the same arithmetic as core.slot, in microseconds.

Text rather than Column objects: every call on a Column is a round trip to the JVM, and an update
that inserts ten rows should not spend its time on hundreds of them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql.types import (
    DataType,
    DateType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from tidetable.core.errors import UserError
from tidetable.core.slot import Timeline
from tidetable.engine.sql import quoted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?"
_ISO_WITH_ZONE = _ISO + "(Z|z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_ISO_WITHOUT_ZONE = _ISO + "$"

JSON_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""For rows as JSON: by default to_json cuts times off after milliseconds."""


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def in_micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def timestamp_sql(moment: datetime) -> str:
    return f"timestamp_micros({micros(moment)}L)"


_FIRST = timestamp_sql(datetime.min.replace(tzinfo=UTC))
_LAST = timestamp_sql(datetime.max.replace(tzinfo=UTC))


def slot_sql(timestamp: str, timeline: Timeline) -> str:
    """The slot of a timestamp: ceil((t - start) / r), with integers only."""
    since = f"(unix_micros({timestamp}) - {micros(timeline.start)}L)"
    every = f"{in_micros(timeline.every)}L"
    # `div` cuts off towards zero, which is ceil for times before the start.
    return f"({since} div {every} + CASE WHEN {since} % {every} > 0 THEN 1L ELSE 0L END)"


def readable_sql(timestamp: str) -> str:
    """The timestamp, or null if it lies outside of the years 1 to 9999.

    Spark counts microseconds in 64 bits and so knows years from -290308 to 294247. Most others do
    not, and the difference of two such times overflows.
    """
    return f"CASE WHEN {timestamp} BETWEEN {_FIRST} AND {_LAST} THEN {timestamp} END"


def as_timestamp_sql(name: str, data_type: DataType, zone: str | None) -> str:
    """The column as a timestamp; null where it is not readable as one in the years 1 to 9999.

    Raises UserError when the type cannot hold a time, or holds one without a zone and the YAML
    does not say which it is.
    """
    column = quoted(name)
    if isinstance(data_type, TimestampType):
        return readable_sql(column)
    if isinstance(data_type, TimestampNTZType | DateType):
        if zone is None:
            raise UserError(
                f"The source's column {name!r} holds times without a zone "
                f"({data_type.simpleString()}). Say in the YAML which zone they are in: "
                "source: {timezone: Europe/Paris} (or UTC), or store them with a zone."
            )
        return readable_sql(_in_zone(column, data_type, zone))
    if isinstance(data_type, StringType):
        # Spark knows Z but not z, and wants seconds where there is a zone.
        full = f"regexp_replace(upper({column}), '^(.{{16}})([Z+-])', '$1:00$2')"
        with_zone = (
            f"CASE WHEN {column} RLIKE '{_ISO_WITH_ZONE}' THEN try_cast({full} AS timestamp) END"
        )
        if zone is None:
            return readable_sql(with_zone)
        naive = (
            f"CASE WHEN {column} RLIKE '{_ISO_WITHOUT_ZONE}' "
            f"THEN try_cast({column} AS timestamp_ntz) END"
        )
        local = _in_zone(naive, TimestampNTZType(), zone)
        return readable_sql(f"coalesce({with_zone}, {local})")
    raise UserError(
        f"The source's column {name!r} is of type {data_type.simpleString()}, which is not a time. "
        "It must be a timestamp, a date, or ISO 8601 text with a zone such as 2013-01-01T05:00:00Z."
    )


def arrived_sql(name: str, data_type: DataType, zone: str | None, begin: str, end: str) -> str:
    """Which rows a batch takes: arrived in (begin, end], or at no time that can be read.

    Where the column is a timestamp it stands alone on one side of each comparison, so that Spark
    can tell from statistics which files hold no such row.
    """
    time = as_timestamp_sql(name, data_type, zone)
    unreadable = f"{time} IS NULL"
    if isinstance(data_type, TimestampType):
        time = quoted(name)
        unreadable = f"{time} IS NULL OR {time} < {_FIRST} OR {time} > {_LAST}"
    return f"({time} > {begin} AND {time} <= {end}) OR {unreadable}"


def _in_zone(naive: str, data_type: DataType, zone: str) -> str:
    """A time without a zone, read off a clock of that zone; a date is its midnight.

    Of an hour that a clock shows twice it is the first; one that it skips counts from before.
    """
    first, last = "DATE '0001-01-01'", "DATE '9999-12-31'"
    if isinstance(data_type, TimestampNTZType):
        first = "TIMESTAMP_NTZ '0001-01-01 00:00:00'"
        last = "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
    local = f"CAST({naive} AS timestamp_ntz)"
    return (
        f"CASE WHEN {naive} BETWEEN {first} AND {last} "
        f"THEN CAST(convert_timezone('{zone}', 'UTC', {local}) AS timestamp) END"
    )
