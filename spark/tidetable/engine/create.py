"""The first version of a table: its columns, its properties, and whose it is."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tidetable.config import Index
from tidetable.core.errors import UserError
from tidetable.engine.sql import delta_table, quoted, sql_text, type_sql
from tidetable.table.append import NotTheNewest, append_version, commit_info
from tidetable.table.log import open_log
from tidetable.table.place import INCOMING, PROPERTY_INDEX, PROPERTY_LAYOUT
from tidetable.table.retention import retention
from tidetable.table.state import PROPERTY_CHOSEN
from tidetable.table.statistics import statistics_property
from tidetable.table.storage import remove_folder


def create_table(
    spark: SparkSession,
    index: Index,
    schema: StructType,
    chosen: Mapping[str, Any] | None = None,
) -> None:
    """Makes the empty table. Two that make it at once make one.

    `chosen` tells by what the advisor chose the scheme, if it did.
    """
    uses_vectors = index.build_scheme().uses_deletion_vectors
    properties = {
        PROPERTY_INDEX: index.name,
        PROPERTY_LAYOUT: json.dumps(index.layout_fingerprint, sort_keys=True),
        "delta.enableDeletionVectors": "true" if uses_vectors else "false",
        # For whoever commits: delta-rs would wait for 100 commits, Spark for 10.
        "delta.checkpointInterval": "10",
        **({} if chosen is None else {PROPERTY_CHOSEN: json.dumps(chosen, sort_keys=True)}),
        **retention(index),
        **statistics_property(index, {field.name: field.dataType.typeName() for field in schema}),
    }
    try:
        rules = _rules_by_spark(spark, index.table, schema, properties)
        with suppress(NotTheNewest):  # another writer has made it meanwhile
            append_version(index.table, 0, rules)
    except Exception as error:
        if not place_is_not_writable(error):
            raise
        raise UserError(
            f"The table cannot be written at {index.table}: {str(error).splitlines()[0]} "
            "Choose a place in the YAML (table:) that this user may write to."
        ) from error


def _rules_by_spark(
    spark: SparkSession, table: str, schema: StructType, properties: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The first version of such a table: what Spark says when it makes one beside its place.

    Not in its place: Spark makes the folder first and then the version, and to Spark every folder
    that is not empty is a table. Whoever comes between, or is killed there, leaves half a table.
    """
    folder = f"{INCOMING}/{uuid.uuid4().hex}"
    place = f"{table.rstrip('/')}/{folder}"
    columns = ", ".join(f"{quoted(field.name)} {type_sql(field.dataType)}" for field in schema)
    try:
        spark.sql(
            f"CREATE TABLE {delta_table(place)} ({columns}, _g INT, _e INT) "
            f"USING delta PARTITIONED BY (_g, _e) TBLPROPERTIES ({_listed(properties)})"
        )
        made = open_log(place)
        assert made is not None
        said = made.actions(0)
    finally:
        remove_folder(table, folder)
    metadata = next(one["metaData"] for one in said if "metaData" in one)
    parameters = {"partitionBy": json.dumps(metadata["partitionColumns"])}
    info = commit_info("CREATE TABLE", -1, metadata=metadata, parameters=parameters)
    return [info, *(one for one in said if "commitInfo" not in one)]


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{sql_text(name)} = {sql_text(value)}" for name, value in properties.items())


def place_is_not_writable(error: Exception) -> bool:
    """Whether the file system said no, which the next attempt will hear again."""
    text = str(error)
    return any(
        sign in text
        for sign in (
            "Permission denied", "AccessControlException", "Mkdirs failed", "mkdirs failed",
            "Read-only file system", "Not a directory", "ParentNotDirectoryException",
            "FileAlreadyExistsException", "AccessDenied", "DELTA_CANNOT_CREATE_LOG_PATH",
            "Cannot create", "No FileSystem for scheme", "Failed to create",
        )
    )  # fmt: skip
