"""Going back: the state of an earlier slot, and from there again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from pyspark.sql import SparkSession

from tidetable.delta.columns import delta_table
from tidetable.delta.log import Log
from tidetable.delta.table import IndexTable
from tidetable.delta.update import Updater, UpdateReport

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_FILES_ARE_GONE = ("Not all files from version", "MISSING", "FileNotFound", "does not exist")


def replay(updater: Updater, first: int) -> Iterator[UpdateReport]:
    """Restores the state before slot `first` and applies the slots up to where the table stood.

    The old version is put back if its files are still there; otherwise that state is loaded from
    the source, which is why a replay also mends a table that something else has changed.
    """
    state = IndexTable(updater.index).state_to_replay(first)
    if state is None:
        # Without notes nobody knows up to which slot to go; the next update does.
        yield updater.reload(first - 1, None)
        return
    if _restore(updater.spark, updater, state.log, first - 1):
        updater.record()
    else:
        yield updater.reload(first - 1, state)
    yield from updater.catch_up(state.slot)


def _restore(spark: SparkSession, updater: Updater, log: Log, slot: int) -> bool:
    """Whether the version of that slot could be put back, in one commit that carries its note."""
    version = log.version_of(slot)
    commit = None if version is None else log.commit(version)
    if version is None or commit is None or commit.note is None:
        return False
    note = commit.note.as_restored(uuid.uuid4().hex)
    spark.conf.set(_USER_METADATA, note.dumps())
    try:
        spark.sql(f"RESTORE TABLE {delta_table(updater.index.table)} TO VERSION AS OF {version}")
    except Exception as error:
        if any(sign in str(error) for sign in _FILES_ARE_GONE):
            return False  # VACUUM has taken its files
        raise
    finally:
        spark.conf.unset(_USER_METADATA)
    return True
