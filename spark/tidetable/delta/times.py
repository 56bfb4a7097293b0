"""Times and slots as Spark SQL: the same arithmetic as core.slot, in microseconds.

Text rather than Column objects: every call on a Column is a round trip to the JVM, and an update
that inserts ten rows should not spend its time on hundreds of them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql.types import DataType, StringType, TimestampNTZType, TimestampType

from tidetable.core.errors import UserError
from tidetable.core.slot import Timeline
from tidetable.delta.columns import quoted

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


def slot_sql(timestamp: str, timeline: Timeline) -> str:
    """The slot of a timestamp: ceil((t - start) / r), with integers only."""
    since = f"(unix_micros({timestamp}) - {micros(timeline.start)}L)"
    every = f"{in_micros(timeline.every)}L"
    # `div` cuts off towards zero, which is ceil for times before the start.
    return f"({since} div {every} + CASE WHEN {since} % {every} > 0 THEN 1L ELSE 0L END)"


def as_timestamp_sql(name: str, data_type: DataType, zone: str | None) -> str:
    """The column as a timestamp; null where a text does not parse.

    Raises UserError when the type cannot hold a time, or holds one without a zone and the YAML
    does not say which it is.
    """
    column = quoted(name)
    if isinstance(data_type, TimestampType):
        return column
    if isinstance(data_type, TimestampNTZType):
        if zone is None:
            raise UserError(
                f"The source's column {name!r} holds times without a zone (timestamp_ntz). "
                "Say in the YAML which zone they are in: source: {timezone: Europe/Paris} "
                "(or UTC), or store them with a zone."
            )
        return _in_zone(column, zone)
    if isinstance(data_type, StringType):
        # Spark knows Z but not z, and wants seconds where there is a zone.
        full = f"regexp_replace(upper({column}), '^(.{{16}})([Z+-])', '$1:00$2')"
        with_zone = (
            f"CASE WHEN {column} RLIKE '{_ISO_WITH_ZONE}' THEN try_cast({full} AS timestamp) END"
        )
        if zone is None:
            return with_zone
        naive = (
            f"CASE WHEN {column} RLIKE '{_ISO_WITHOUT_ZONE}' "
            f"THEN try_cast({column} AS timestamp_ntz) END"
        )
        return f"coalesce({with_zone}, {_in_zone(naive, zone)})"
    raise UserError(
        f"The source's column {name!r} is of type {data_type.simpleString()}, which is not a time. "
        "It must be a timestamp, or ISO 8601 text with a zone such as 2013-01-01T05:00:00Z."
    )


def _in_zone(naive: str, zone: str) -> str:
    return f"CAST(convert_timezone('{zone}', 'UTC', {naive}) AS timestamp)"
