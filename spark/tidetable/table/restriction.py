"""What a read asks for, as comparisons with values of the column's own type.

Each engine gets the values in the way that leaves nothing to be read out of them: DataFusion as
literals of SQL that has no escapes, Spark as literals of a plan, without any SQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

import pyarrow as pa

from tidetable.config import Index, format_time
from tidetable.core.columns import EXPIRES_AT
from tidetable.core.errors import ReadEarlier, UserError

DIGITS_MAX = 38
"""What a decimal can hold, in any engine."""

_BEYOND = 10**37
_MICROSECOND = timedelta(microseconds=1)

Value: TypeAlias = bool | int | float | Decimal | date | datetime | bytes | str


@dataclass(frozen=True)
class Test:
    """A column compared with values: equal to one of them, or above or below the only one."""

    column: str
    operator: str
    """=, >=, <= or >"""

    kind: pa.DataType
    values: tuple[Value, ...]


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

    def tests(self, index: Index, schema: pa.Schema, as_of: datetime) -> list[Test]:
        """All that have to hold; UserError if a text is no value of its column."""
        return [*self._of_key(index, schema), *self._of_times(index, schema, as_of)]

    def _of_key(self, index: Index, schema: pa.Schema) -> Iterator[Test]:
        kind = schema.field(index.key).type
        bounds = [(">=", self.key_from), ("<=", self.key_to)]
        asked = [("=", self.keys)] if self.keys else []
        asked += [(operator, (text,)) for operator, text in bounds if text is not None]
        for operator, texts in asked:
            values = tuple(value_of(text, kind, index.key) for text in texts)
            yield Test(index.key, operator, kind, values)

    def _of_times(self, index: Index, schema: pa.Schema, as_of: datetime) -> Iterator[Test]:
        if self.alive_at is not None and self.alive_at < as_of:
            raise UserError(
                f"Rows alive at {format_time(self.alive_at)} were asked for; that lies before the "
                f"table's own time, {format_time(as_of)}, and rows that were alive then may be "
                "gone.",
                remedy=ReadEarlier(),
            )
        for column, operator, moment in (
            (index.inserted_at, ">=", self.inserted_from),
            (index.inserted_at, "<=", self.inserted_to),
            (index.expires_at or EXPIRES_AT, ">", self.alive_at),
        ):
            if moment is not None:
                yield Test(column, operator, schema.field(column).type, (moment,))


# -- what was typed --------------------------------------------------------------------------------


def value_of(text: str, kind: pa.DataType, column: str) -> Value:
    """What the user typed as a value of the column's type; UserError if it is none."""
    try:
        text.encode()  # bytes of the command line that are no UTF-8 have no code points
        return _parsed(text, kind)
    except (ValueError, KeyError, InvalidOperation):
        raise UserError(
            f"{json.dumps(text)} is not a value of the key {column!r}, "
            f"which is of type {kind}. Write {_example(kind)}."
        ) from None


def _parsed(text: str, kind: pa.DataType) -> Value:
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}[text.lower()]
    if pa.types.is_integer(kind):
        # Beyond all integers of columns one is as good as another, and engines take 38 digits.
        return max(-_BEYOND, min(int(text), _BEYOND))
    if pa.types.is_floating(kind):
        return float(text)
    if pa.types.is_decimal(kind):
        return _with_few_digits(Decimal(text))
    if pa.types.is_date(kind):
        return date.fromisoformat(text)
    if pa.types.is_timestamp(kind):
        return _moment(datetime.fromisoformat(text), zoned=kind.tz is not None)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return bytes.fromhex(text)  # as it is shown
    return text


def _with_few_digits(number: Decimal) -> Decimal:
    if not number.is_finite() or len(f"{number:f}") > DIGITS_MAX:
        raise ValueError
    return number


def _moment(moment: datetime, *, zoned: bool) -> datetime:
    if zoned:
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment.tzinfo is not None:
        raise ValueError
    return moment


def micros(moment: datetime) -> int:
    """Since 1970, exactly; of a time without a zone as if it were UTC."""
    epoch = datetime(1970, 1, 1, tzinfo=None if moment.tzinfo is None else UTC)
    return (moment - epoch) // _MICROSECOND


# -- DataFusion (delta-rs) -------------------------------------------------------------------------


def sql_name(name: str) -> str:
    """A column as DataFusion takes it."""
    return '"' + name.replace('"', '""') + '"'


def sql_condition(tests: Sequence[Test]) -> str | None:
    """The tests as DataFusion takes them; None if there are none."""
    return " AND ".join(map(_sql_test, tests)) or None


def _sql_test(test: Test) -> str:
    literals = [_sql_literal(value, test.kind) for value in test.values]
    if len(literals) == 1:
        return f"{sql_name(test.column)} {test.operator} {literals[0]}"
    return f"{sql_name(test.column)} IN ({', '.join(literals)})"


def _sql_literal(value: Value, kind: pa.DataType) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            # In the column's own width: 1.1 is another number in 32 bits than in 64.
            return _sql_cast(repr(value), "FLOAT" if kind.bit_width == 32 else "DOUBLE")
        case Decimal():
            return _sql_cast(f"{value:f}", decimal_type(value))
        case datetime():
            # A cast of text to a timestamp goes by way of nanoseconds, which begin in 1677.
            zone = "None" if value.tzinfo is None else 'Some("UTC")'
            return f"arrow_cast({micros(value)}, 'Timestamp(Microsecond, {zone})')"
        case date():
            return _sql_cast(value.isoformat(), "DATE")
        case bytes():
            return f"X'{value.hex()}'"
    return "'" + value.replace("'", "''") + "'"


def _sql_cast(text: str, kind: str) -> str:
    return f"CAST('{text}' AS {kind})"


def decimal_type(number: Decimal) -> str:
    """With its own digits: in the column's scale 1.239 would be rounded, and found as 1.24."""
    return f"DECIMAL({DIGITS_MAX},{len(f'{number:f}'.partition('.')[2])})"


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


def keys_or_range(keys: Sequence[str], key_from: str | None, key_to: str | None) -> tuple[str, ...]:
    """The keys of a probe; UserError if it has neither keys nor a range, or both."""
    if keys and (key_from is not None or key_to is not None):
        raise UserError("Keys and a range were given.", "A probe takes one of them, not both.")
    if not keys and key_from is None and key_to is None:
        raise UserError(
            "No key was given.",
            "A probe needs a key, or a range of keys.",
            "To read everything, scan.",
        )
    return tuple(keys)
