"""Names, places, texts and types as Spark's SQL takes them."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def quoted(name: str) -> str:
    """A column name as SQL takes it, in Spark."""
    return "`" + name.replace("`", "``") + "`"


def delta_table(path: str) -> str:
    """The Delta table at a path as SQL takes it, in Spark."""
    return f"delta.{quoted(path)}"


def type_sql(kind: DataType) -> str:
    """A type as SQL takes it, in Spark: its own simpleString leaves names of fields unquoted."""
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
