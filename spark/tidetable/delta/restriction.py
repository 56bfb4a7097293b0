"""What a read asks for, as a predicate whose values are literals of the column's type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from tidetable.core.config import Index, format_time
from tidetable.core.errors import UserError
from tidetable.delta.columns import EXPIRES_AT


@dataclass(frozen=True)
class Restriction:
    """The rows a probe or scan is to return; everything left out does not restrict.

    Ranges include both ends. `alive_at` keeps rows that expire after that time.
    """

    keys: tuple[str, ...] = ()
    key_from: str | None = None
    key_to: str | None = None
    inserted_from: datetime | None = None
    inserted_to: datetime | None = None
    alive_at: datetime | None = None

    def sql(self, index: Index, schema: pa.Schema, as_of: datetime, dialect: Dialect) -> str | None:
        """The predicate in this dialect, or None if nothing is restricted."""
        key_type = schema.field(index.key).type
        key = dialect.column(index.key)
        tests = []
        if len(self.keys) == 1:
            tests.append(f"{key} = {dialect.value(self.keys[0], key_type, index.key)}")
        elif self.keys:
            listed = ", ".join(dialect.value(text, key_type, index.key) for text in self.keys)
            tests.append(f"{key} IN ({listed})")
        if self.key_from is not None:
            tests.append(f"{key} >= {dialect.value(self.key_from, key_type, index.key)}")
        if self.key_to is not None:
            tests.append(f"{key} <= {dialect.value(self.key_to, key_type, index.key)}")
        inserted = dialect.column(index.inserted_at)
        if self.inserted_from is not None:
            tests.append(f"{inserted} >= {dialect.timestamp(self.inserted_from)}")
        if self.inserted_to is not None:
            tests.append(f"{inserted} <= {dialect.timestamp(self.inserted_to)}")
        if self.alive_at is not None:
            if self.alive_at < as_of:
                raise UserError(
                    f"--alive-at {format_time(self.alive_at)} lies before the table's own time, "
                    f"{format_time(as_of)}: rows that were alive then may be gone. Ask for that "
                    "time or a later one, or read an earlier update with --slot."
                )
            expires = dialect.column(index.expires_at or EXPIRES_AT)
            tests.append(f"{expires} > {dialect.timestamp(self.alive_at)}")
        return " AND ".join(tests) if tests else None


class Dialect:
    """SQL as DataFusion (delta-rs) takes it."""

    quote = '"'
    timestamp_type = "TIMESTAMP WITH TIME ZONE"

    def column(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def timestamp(self, moment: datetime) -> str:
        utc = moment.astimezone(UTC)
        return f"CAST({self.text(utc.isoformat(timespec='microseconds'))} AS {self.timestamp_type})"

    def value(self, text: str, kind: pa.DataType, column: str) -> str:
        """What the user typed as a literal of the column's type; UserError if it is none."""
        try:
            if pa.types.is_integer(kind):
                return str(int(text))
            if pa.types.is_floating(kind):
                return repr(float(text))
            if pa.types.is_decimal(kind):
                digits = self.text(str(Decimal(text)))
                return f"CAST({digits} AS DECIMAL({kind.precision},{kind.scale}))"
            if pa.types.is_boolean(kind):
                return {"true": "true", "false": "false"}[text.lower()]
            if pa.types.is_date(kind):
                return f"CAST({self.text(date.fromisoformat(text).isoformat())} AS DATE)"
            if pa.types.is_timestamp(kind):
                moment = datetime.fromisoformat(text)
                return self.timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        except (ValueError, KeyError, InvalidOperation):
            raise UserError(
                f"{json.dumps(text)} is not a value of the key {column!r}, which is of type {kind}."
            ) from None
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return self.binary(text)
        return self.text(text)

    def binary(self, text: str) -> str:
        return f"CAST({self.text(text)} AS BYTEA)"


class SparkDialect(Dialect):
    """SQL as Spark takes it."""

    quote = "`"
    timestamp_type = "TIMESTAMP"

    def text(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def binary(self, text: str) -> str:
        return f"CAST({self.text(text)} AS BINARY)"


DATAFUSION = Dialect()
SPARK = SparkDialect()


def keys_or_range(keys: Sequence[str], key_from: str | None, key_to: str | None) -> tuple[str, ...]:
    """The keys of a probe; UserError if it has neither keys nor a range, or both."""
    if keys and (key_from is not None or key_to is not None):
        raise UserError("Give keys, or a range with --from and --to, not both.")
    if not keys and key_from is None and key_to is None:
        raise UserError("A probe needs a key, or --from and --to. To read everything: scan.")
    return tuple(keys)
