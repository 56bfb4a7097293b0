"""Times and slots as Spark expressions: the same arithmetic as core.slot, in microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, TimestampNTZType, TimestampType

from tidetable.core.errors import UserError
from tidetable.core.slot import Timeline

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.]\d{1,9})?)?"
_ISO_WITH_ZONE = _ISO + r"(Z|z|[+-]\d{2}(:?\d{2})?)$"
_ISO_WITHOUT_ZONE = _ISO + "$"


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def timestamp_literal(moment: datetime) -> Column:
    return F.timestamp_micros(F.lit(micros(moment)))


def slot_of(column: Column, timeline: Timeline) -> Column:
    """The slot of a timestamp: ceil((t - start) / r), with integers only."""
    since = F.unix_micros(column) - F.lit(micros(timeline.start))
    every = F.lit(timeline.every // timedelta(microseconds=1))
    whole = F.call_function("div", since, every)
    # `div` cuts off towards zero, which is ceil for times before the start.
    return whole + F.when(since % every > 0, 1).otherwise(0).cast("bigint")


def as_timestamp(name: str, data_type: DataType, column: Column, zone: str | None) -> Column:
    """The column as a timestamp; null where a text does not parse.

    Raises UserError when the type cannot hold a time, or holds one without a zone and the YAML
    does not say which it is.
    """
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
        with_zone = F.when(column.rlike(_ISO_WITH_ZONE), column.try_cast("timestamp"))
        if zone is None:
            return with_zone
        naive = F.when(column.rlike(_ISO_WITHOUT_ZONE), column.try_cast("timestamp_ntz"))
        return F.coalesce(with_zone, _in_zone(naive, zone))
    raise UserError(
        f"The source's column {name!r} is of type {data_type.simpleString()}, which is not a time. "
        "It must be a timestamp, or ISO 8601 text with a zone such as 2013-01-01T05:00:00Z."
    )


def _in_zone(column: Column, zone: str) -> Column:
    return F.convert_timezone(F.lit(zone), F.lit("UTC"), column).cast("timestamp")
