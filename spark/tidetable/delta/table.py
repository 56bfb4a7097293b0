"""The Delta table of one index: where it is, whether it is ours, and at which slot it stands."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from tidetable.core.config import Index, SchemeConfig
from tidetable.core.errors import TidetableError, TransientError, UserError
from tidetable.delta.columns import delta_table, quoted, sql_text, type_sql
from tidetable.delta.log import Commit, Log, open_log
from tidetable.delta.note import Note
from tidetable.delta.place import PROPERTY_INDEX, PROPERTY_KIND
from tidetable.delta.stored import check_not_inside_another

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

PROPERTY_LAYOUT = "tidetable.layout"
PROPERTY_CHOSEN = "tidetable.chosen"
"""What the advisor chose by when it made the table: its prediction and what it knew."""

_WITHOUT_STATISTICS = frozenset({"binary", "boolean"})
"""Delta keeps no bounds for these and refuses to be asked for them."""

_LOG = "_delta_log"
_IS_NO_LONGER_FREE = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
_ATTEMPTS_MAX = 10
_ATTEMPT_AFTER_S = 0.3
_RETENTION_MIN = timedelta(days=2)


class DamagedTable(TidetableError):
    """The table does not hold what its notes say; somebody has to decide, a retry does not help."""


@dataclass(frozen=True)
class State:
    """Where an index stands: the newest commit that carries our note."""

    log: Log
    version: int
    note: Note

    @property
    def slot(self) -> int:
        return self.note.slot

    @property
    def predicted_s(self) -> float | None:
        """What the advisor said that an average update would take, if it chose the scheme."""
        found = (chosen_of(self.log) or {}).get("predicted", {}).get("update_s")
        return None if found is None else float(found)

    @property
    def fence(self) -> str:
        """Names this state; a commit that starts from it uses it up (see decisions.md)."""
        return f"{self.note.index}@{self.note.slot}#{self.version}"


def resolved(index: Index) -> Index:
    """The index with the scheme that its table was made with, where the YAML says auto.

    The same index if the YAML names a scheme, or as long as there is no table. Called wherever an
    index meets its table; it opens the log only for an index whose scheme is auto.
    """
    if not index.is_auto:
        return index
    log = open_log(index.table)
    if log is None or log.properties.get(PROPERTY_INDEX) != index.name:
        return index
    made = json.loads(log.properties.get(PROPERTY_LAYOUT, "{}"))
    try:
        scheme = _SCHEME.validate_python(made.get("scheme"))
    except ValidationError as error:
        raise UserError(
            f"{index.table} says that it was made with the scheme {json.dumps(made.get('scheme'))},"
            " which this version does not know. Use the version that made it, or give the index a "
            "new `table:`."
        ) from error
    return index.with_scheme(scheme)


def chosen_of(log: Log) -> dict[str, Any] | None:
    """By what the advisor chose when the table was made; None if it did not choose."""
    text = log.properties.get(PROPERTY_CHOSEN)
    found: dict[str, Any] | None = None if text is None else json.loads(text)
    return found


_SCHEME: TypeAdapter[SchemeConfig] = TypeAdapter(
    Annotated[SchemeConfig, Field(discriminator="name")]
)


class IndexTable:
    """What the log says about an index's table. Reads only, without a JVM."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.path = index.table

    def log(self) -> Log | None:
        """The log of the table if there is one and it is ours; UserError if the place is taken."""
        log = open_log(self.path)
        if log is None:
            self._check_place_is_free()
            return None
        self.index = resolved(self.index)
        owner = log.properties.get(PROPERTY_INDEX)
        if owner is None:
            raise UserError(
                f"{self.path} is a Delta table that Tidetable did not make. "
                "Choose another place in the YAML (table:); it was not touched."
            )
        if owner != self.index.name:
            raise UserError(
                f"{self.path} belongs to the index {owner!r}, not to {self.index.name!r}. "
                "Choose another place in the YAML (table:), or give the index its old name back."
            )
        kind = log.properties.get(PROPERTY_KIND)
        if kind is not None:
            raise UserError(
                f"{self.path} holds the {kind} of the index {owner!r} and not its rows. "
                "Choose another place in the YAML (table:); it was not touched."
            )
        self._check_layout(log)
        return log

    def state(self, *, trusting: bool = False) -> State | None:
        """Where the index stands; None before its first load.

        Stops with DamagedTable if something else has changed rows since, unless `trusting`
        (a replay, which mends exactly that). None also for the latter if the notes are gone.
        """
        log = self.log()
        if log is None:
            return None
        later: list[Commit] = []
        for commit in log.commits():
            if commit.note is not None:
                state = State(log, commit.version, commit.note)
                if not trusting:
                    self._check_undamaged(state, later)
                return state
            later.append(commit)
        if log.files and not trusting:
            raise DamagedTable(
                f"The log of {self.path} no longer says at which slot the table stands. "
                f"Load it again: tidetable replay {self.index.argument} --from J, J being the slot "
                "to start with."
            )
        return None

    def required_state(self) -> State:
        state = self.state()
        if state is None:
            raise UserError(
                f"The index {self.index.name!r} has no table yet at {self.path}. "
                f"Make it: tidetable update {self.index.argument}"
            )
        return state

    def state_to_replay(self, first: int) -> State | None:
        """Where a replay from slot `first` would start out; UserError if it cannot.

        None if the table is there but its notes are gone: then only the source can tell.
        """
        state = self.state(trusting=True)
        if state is None:
            log = self.log()
            if log is None or not log.files:
                raise UserError(
                    f"The index {self.index.name!r} has no table yet at {self.path}; there is "
                    f"nothing to replay. Make it: tidetable update {self.index.argument}"
                )
            if first < 1:
                raise UserError(f"--from {first}: a replay can start from slot 1 on.")
            return None
        if state.slot == 0:
            raise UserError(
                f"--from {first}: the table stands at slot 0; there is no update to replay yet."
            )
        if not 1 <= first <= state.slot:
            raise UserError(
                f"--from {first}: the table stands at slot {state.slot}; "
                f"a replay can start from slot 1 to {state.slot}."
            )
        return state

    def as_of(self, slot: int) -> datetime:
        return self.index.timeline.end_of(slot)

    def log_at(self, slot: int) -> tuple[Log, Note]:
        """The table as it was after update `slot`, for time travel."""
        state = self.required_state()
        if slot == state.slot:
            return state.log, state.note
        version = state.log.version_of(slot)
        if version is None:
            kept = sorted(note.slot for _, note in state.log.notes())
            raise UserError(
                f"Slot {slot} of {self.index.name!r} cannot be read; the log holds slots "
                f"{kept[0]} to {kept[-1]} (updates that were folded have only their last slot)."
            )
        log = open_log(self.path, version)
        assert log is not None
        commit = log.commit(version)
        assert commit is not None
        assert commit.note is not None
        return log, commit.note

    # -- checks ----------------------------------------------------------------------------------

    def _check_place_is_free(self) -> None:
        check_not_inside_another(self.path)
        local = self.path.removeprefix("file://")
        if "://" in local:
            return
        place = Path(local)
        if place.is_file():
            raise UserError(
                f"{self.path} is a file, not a folder. Choose another place in the YAML (table:)."
            )
        # With a log and nothing else in it, another writer is about to make the table.
        if place.is_dir() and any(entry.name != _LOG for entry in place.iterdir()):
            raise UserError(
                f"{self.path} is a folder that is not empty and holds no table of Tidetable. "
                "Choose another place in the YAML (table:); it was not touched."
            )

    def _check_layout(self, log: Log) -> None:
        made = json.loads(log.properties.get(PROPERTY_LAYOUT, "{}"))
        now = self.index.layout_fingerprint
        changed = sorted(name for name in {*made, *now} if made.get(name) != now.get(name))
        if changed:
            differences = "; ".join(
                f"{name} was {json.dumps(made.get(name))} and is now {json.dumps(now.get(name))}"
                for name in changed
            )
            raise UserError(
                f"The YAML of {self.index.name!r} has changed since its table was made: "
                f"{differences}. Rows lie where the old values put them. Put the old values back, "
                "or give the index a new `table:` and build it again."
            )

    def _check_undamaged(self, state: State, later: list[Commit]) -> None:
        mend = (
            f"Put it right with: tidetable replay {self.index.argument} "
            f"--from {max(1, state.slot)} (it restores the slot before and goes again)."
        )
        for commit in reversed(later):
            if commit.changes_rows:
                raise DamagedTable(
                    f"Version {commit.version} of {self.path} ({commit.operation}) changed rows "
                    f"and was not made by Tidetable. {mend}"
                )
        if state.log.rows != state.note.live:
            raise DamagedTable(
                f"{self.path} holds {state.log.rows} rows by its file statistics; the note of slot "
                f"{state.slot} says {state.note.live}. {mend}"
            )


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
    statistics = [index.inserted_at, index.expires_at or "_expires_at"]
    if schema[index.key].dataType.typeName() not in _WITHOUT_STATISTICS:
        statistics.insert(0, index.key)
    properties = {
        PROPERTY_INDEX: index.name,
        PROPERTY_LAYOUT: json.dumps(index.layout_fingerprint, sort_keys=True),
        "delta.enableDeletionVectors": "true" if uses_vectors else "false",
        # For whoever commits: delta-rs would wait for 100 commits, Spark for 10.
        "delta.checkpointInterval": "10",
        **({} if chosen is None else {PROPERTY_CHOSEN: json.dumps(chosen, sort_keys=True)}),
        **_retention(index),
        "delta.dataSkippingStatsColumns": ",".join(
            quoted(name)
            for name in dict.fromkeys([*statistics, "_insertion_slot", "_expiration_slot"])
        ),
    }
    columns = ", ".join(f"{quoted(field.name)} {type_sql(field.dataType)}" for field in schema)
    statement = (
        f"CREATE TABLE IF NOT EXISTS {delta_table(index.table)} ({columns}, _g INT, _e INT) "
        f"USING delta PARTITIONED BY (_g, _e) TBLPROPERTIES ({_listed(properties)})"
    )
    for _ in range(_ATTEMPTS_MAX):
        try:
            spark.sql(statement)
        except Exception as error:
            is_taken = _IS_NO_LONGER_FREE in str(error)
            if not is_taken and open_log(index.table) is None:
                if place_is_not_writable(error):
                    raise UserError(
                        f"The table cannot be written at {index.table}: "
                        f"{str(error).splitlines()[0]} "
                        "Choose a place in the YAML (table:) that this user may write to."
                    ) from error
                raise
        # Not to be taken for granted: to Spark every folder that is not empty is a table, and
        # another writer makes the folder first and then the commit.
        if open_log(index.table) is not None:
            return
        time.sleep(_ATTEMPT_AFTER_S)
    raise TransientError(
        f"Another writer of {index.name!r} began to make the table at {index.table} and has not "
        "finished. Run it again; if no other is at work, remove that folder first."
    )


def follow_retention(spark: SparkSession, index: Index, log: Log) -> None:
    """Gives the table the retention that the YAML has now, if `log` shows another."""
    wanted = _retention(index)
    if any(log.properties.get(name) != value for name, value in wanted.items()):
        spark.sql(f"ALTER TABLE {delta_table(index.table)} SET TBLPROPERTIES ({_listed(wanted)})")


def _retention(index: Index) -> dict[str, str]:
    # Notes are part of the log: kept longer than versions, since they cost next to nothing.
    # A day longer: commits tell when files were removed until these are deleted (garbage.py).
    log_keep = _interval(max(index.keep_versions_for + timedelta(days=1), _RETENTION_MIN))
    return {
        "delta.deletedFileRetentionDuration": _interval(index.keep_versions_for),
        "delta.logRetentionDuration": log_keep,
        "delta.setTransactionRetentionDuration": log_keep,
    }


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


def _interval(duration: timedelta) -> str:
    return f"interval {max(1, int(duration.total_seconds()))} seconds"
