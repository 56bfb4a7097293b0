"""The names of the columns that Tidetable adds to the user's own, and names as SQL takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

INSERTION_SLOT = "_insertion_slot"
EXPIRATION_SLOT = "_expiration_slot"
EXPIRES_AT = "_expires_at"
"""Only where the YAML gives a `lifetime` instead of an `expires_at` column."""

CELL_G = "_g"
CELL_E = "_e"

REASON = "_reason"
RAW = "_raw"
"""Only while a batch is staged: why a row is bad, and what it looked like as it came (JSON)."""

ADDED = (INSERTION_SLOT, EXPIRATION_SLOT, CELL_G, CELL_E)
RESERVED = frozenset({*ADDED, EXPIRES_AT, REASON, RAW})


def quoted(name: str) -> str:
    """A column name as SQL takes it, in Spark."""
    return "`" + name.replace("`", "``") + "`"


def delta_table(path: str) -> str:
    """The Delta table at a path as SQL takes it, in Spark."""
    return f"delta.{quoted(path)}"


def type_sql(kind: DataType) -> str:
    """A type as SQL takes it, in Spark: its own simpleString leaves names of fields unquoted."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case StructType():
            fields = (f"{quoted(field.name)}: {type_sql(field.dataType)}" for field in kind)
            return f"struct<{', '.join(fields)}>"
        case ArrayType():
            return f"array<{type_sql(kind.elementType)}>"
        case MapType():
            return f"map<{type_sql(kind.keyType)}, {type_sql(kind.valueType)}>"
    return kind.simpleString()


def sql_text(text: str) -> str:
    """A text as a literal, in Spark. What `${...}` means there, session.SETTINGS turns off."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
