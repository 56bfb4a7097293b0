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
from tidetable.delta.columns import EXPIRES_AT, sql_text

_DIGITS_MAX = 38


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
    naive_timestamp_type = "TIMESTAMP"

    def column(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def timestamp(self, moment: datetime) -> str:
        return self._cast(
            moment.astimezone(UTC).isoformat(timespec="microseconds"), self.timestamp_type
        )

    def value(self, text: str, kind: pa.DataType, column: str) -> str:
        """What the user typed as a literal of the column's type; UserError if it is none."""
        try:
            text.encode()  # bytes of the command line that are no UTF-8 have no code points
            literal = self._literal(text, kind)
        except (ValueError, KeyError, InvalidOperation):
            raise UserError(
                f"{json.dumps(text)} is not a value of the key {column!r}, "
                f"which is of type {kind}. Write {_example(kind)}."
            ) from None
        return self.text(text) if literal is None else literal

    def _literal(self, text: str, kind: pa.DataType) -> str | None:
        """None if a text is what the column holds."""
        if pa.types.is_boolean(kind):
            return {"true": "true", "false": "false"}[text.lower()]
        if pa.types.is_integer(kind):
            return str(int(text))
        if pa.types.is_floating(kind):
            # In the column's own width: 1.1 is another number in 32 bits than in 64.
            return self._cast(repr(float(text)), "FLOAT" if kind.bit_width == 32 else "DOUBLE")
        if pa.types.is_decimal(kind):
            return self._decimal(Decimal(text))
        if pa.types.is_date(kind):
            return self._cast(date.fromisoformat(text).isoformat(), "DATE")
        if pa.types.is_timestamp(kind):
            return self._moment(datetime.fromisoformat(text), zoned=kind.tz is not None)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return f"X'{bytes.fromhex(text).hex()}'"  # as it is shown
        return None

    def _decimal(self, number: Decimal) -> str:
        """With its own digits: in the column's scale 1.239 would be rounded, and found as 1.24."""
        if not number.is_finite():
            raise ValueError
        digits = f"{number:f}"
        scale = len(digits.partition(".")[2])
        if len(digits) > _DIGITS_MAX:
            raise ValueError
        return self._cast(digits, f"DECIMAL({_DIGITS_MAX},{scale})")

    def _moment(self, moment: datetime, *, zoned: bool) -> str:
        if zoned:
            return self.timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        if moment.tzinfo is not None:
            raise ValueError
        return self._cast(moment.isoformat(timespec="microseconds"), self.naive_timestamp_type)

    def _cast(self, text: str, kind: str) -> str:
        return f"CAST({self.text(text)} AS {kind})"


class SparkDialect(Dialect):
    """SQL as Spark takes it."""

    quote = "`"
    timestamp_type = "TIMESTAMP"
    naive_timestamp_type = "TIMESTAMP_NTZ"

    def text(self, value: str) -> str:
        return sql_text(value)


def _example(kind: pa.DataType) -> str:
    for test, example in (
        (pa.types.is_boolean, "true or false"),
        (pa.types.is_integer, "a whole number such as 42"),
        (pa.types.is_floating, "a number such as 1.5"),
        (pa.types.is_decimal, "a number such as 1.50"),
        (pa.types.is_date, "a date such as 2013-01-31"),
        (pa.types.is_timestamp, "a time such as 2013-01-31T05:00:00"),
    ):
        if test(kind):
            return example
    return "its bytes in hexadecimal, such as 00ff" if pa.types.is_binary(kind) else "UTF-8"


DATAFUSION = Dialect()
SPARK = SparkDialect()


def keys_or_range(keys: Sequence[str], key_from: str | None, key_to: str | None) -> tuple[str, ...]:
    """The keys of a probe; UserError if it has neither keys nor a range, or both."""
    if keys and (key_from is not None or key_to is not None):
        raise UserError("Give keys, or a range with --from and --to, not both.")
    if not keys and key_from is None and key_to is None:
        raise UserError("A probe needs a key, or --from and --to. To read everything: scan.")
    return tuple(keys)
