"""The Delta log of a table, read without a JVM: versions, notes, files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from tidetable.core.cell import Cell, CellState
from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.core.errors import TransientError, UserError
from tidetable.table.damage import Damage, DamagedLog, LogFiles, damaged_text
from tidetable.table.note import Note, NoteKind
from tidetable.table.place import PROPERTY_LAYOUT
from tidetable.table.storage import read_file, reader_uri, storage

if TYPE_CHECKING:
    import pyarrow.fs as pafs

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FILE_COLUMNS = frozenset(
    {
        "path", "size_bytes", "num_records", f"partition.{CELL_G}", f"partition.{CELL_E}",
        f"min.{INSERTION_SLOT}", f"max.{INSERTION_SLOT}",
        f"min.{EXPIRATION_SLOT}", f"max.{EXPIRATION_SLOT}",
    }
)  # fmt: skip
_PLAIN_KEYS = frozenset({"string", "byte", "short", "integer", "long"})
"""Bounds of these are the same whoever reads them; and to turn times into Python imports pandas."""


_OF_CATALOGS = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})


class CatalogManaged(UserError):
    """A catalog decides what the versions of the table are; its log alone does not tell."""

    code = "catalog_managed"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"A catalog manages the table there, {path}, and only by way of it may it be read and "
            "written; Tidetable knows tables by their path alone.",
            remedy="Choose another place in the YAML (table:). It was not touched.",
        )


def arrow(stream: Any) -> pa.RecordBatchReader:
    """What delta-rs hands out, for pyarrow. (pa.table() would do, but imports pandas: a second.)"""
    return pa.RecordBatchReader.from_stream(stream)


@dataclass(frozen=True)
class DataFile:
    """One file of the table's current version."""

    path: str
    cell: Cell
    rows: int
    """Rows that a reader sees: deletion vectors are taken off."""

    bytes: int
    insertion: tuple[int, int] | None
    """Least and greatest slot; None: the statistics do not tell. With deletions they are those of
    all rows that ever were in it."""

    expiration: tuple[int, int] | None
    key: tuple[Any, Any] | None
    """Bounds of the keys, if these are texts or whole numbers; long texts are cut off."""

    has_deletions: bool


@dataclass(frozen=True)
class Commit:
    """What one version of the table says about itself."""

    version: int
    operation: str
    metadata: str | None
    """What the writer put into the commit as userMetadata."""

    text: str = field(repr=False)
    """All of it: an action in each line."""

    @cached_property
    def note(self) -> Note | None:
        """What our commits say; None for a commit of anybody else's, whatever it looks like."""
        note = Note.loads(self.metadata)
        return note if note is not None and self._uses_up_a_fence(note) else None

    def _uses_up_a_fence(self, note: Note) -> bool:
        """Whether it also carries a transaction of ours, as every commit with a note does.

        Only a restore had none as long as Spark made that commit.
        """
        if self.operation == "RESTORE" and note.kind == "restore":
            return True
        fences = f"{note.index}@"
        lines = (json.loads(line) for line in self.text.splitlines() if '"txn"' in line)
        return any(str(one["txn"]["appId"]).startswith(fences) for one in lines if one.get("txn"))

    @property
    def names_files(self) -> bool:
        """Whether files come or go by it, be it without a row changing."""
        return '"add"' in self.text or '"remove"' in self.text

    @cached_property
    def at(self) -> datetime | None:
        """When it was made, as its writer says."""
        for line in self.text.splitlines():
            if '"commitInfo"' in line and (info := json.loads(line).get("commitInfo")):
                ms = info.get("inCommitTimestamp") or info.get("timestamp")
                return None if ms is None else _EPOCH + timedelta(milliseconds=ms)
        return None

    @cached_property
    def changes_rows(self) -> bool:
        """Whether it says that the rows are others now. By its files: operations have any name."""
        from tidetable.table.actions import changes_rows  # which reads logs itself

        return changes_rows(json.loads(line) for line in self.text.splitlines() if line)


def open_log(path: str, version: int | None = None) -> Log | None:
    """The table's log at its newest (or that) version, or None if there is no Delta table."""
    if Path(reader_uri(path)).is_file():
        return None  # delta-rs calls it an invalid location, not a missing table
    try:
        return Log(path, DeltaTable(reader_uri(path), version=version))
    except TableNotFoundError:
        return None
    except DeltaError as error:
        check_readable(path, error)
        raise


def check_readable(path: str, error: Exception | None = None) -> None:
    """DamagedLog, naming the file, if one of the log is not as it should be.

    CatalogManaged if the log is whole, but not all there is.
    """
    files = LogFiles(path)
    damage = files.first_damage()
    if damage is not None:
        raise DamagedLog(path, damage) from error
    if not _OF_CATALOGS.isdisjoint(files.features()):
        raise CatalogManaged(path) from error


class Log:
    """A table's log as of one version; open it again to see what came later."""

    def __init__(self, path: str, table: DeltaTable) -> None:
        self.path = path
        self.table = table
        self.version: int = table.version()

    @cached_property
    def storage(self) -> pafs.FileSystem:
        """The table's folder as a file system, wherever it is stored."""
        return storage(self.path)

    @property
    def properties(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.table.metadata().configuration
        return found

    def commit(self, version: int) -> Commit | None:
        """What version `version` says about itself; None once the log of that time is cleaned."""
        try:
            text = read_file(self.path, f"_delta_log/{version:020d}.json").decode()
        except FileNotFoundError:
            return None
        if not text.strip():  # to delta-rs a version that changes nothing; nobody writes such a one
            raise DamagedLog(self.path, Damage(f"{version:020d}.json", damaged_text(b"") or ""))
        for line in text.splitlines():
            if '"commitInfo"' in line and "commitInfo" in (action := json.loads(line)):
                info = action["commitInfo"]
                return Commit(version, info.get("operation", "?"), info.get("userMetadata"), text)
        return Commit(version, "?", None, text)

    def actions(self, version: int) -> list[dict[str, Any]]:
        """All that version `version` says; FileNotFoundError once the log of that time is gone."""
        text = read_file(self.path, f"_delta_log/{version:020d}.json").decode()
        return [json.loads(line) for line in text.splitlines() if line]

    def commits(self) -> Iterator[Commit]:
        """Commits from this version backwards, as far as the log is kept."""
        for version in range(self.version, -1, -1):
            found = self.commit(version)
            if found is None:
                return
            yield found

    @property
    def rows_version(self) -> int:
        """The newest version that changed rows, ours or not; ALTER and VACUUM do not count."""
        for commit in self.commits():
            if commit.note is not None or commit.changes_rows:
                return commit.version
        return self.version

    def notes(self) -> Iterator[tuple[int, Note]]:
        """The chain of notes that led to this version, newest first, as (version, note).

        A restore makes the updates it undid void, so they are left out.
        """
        bound: int | None = None
        for commit in self.commits():
            note = commit.note
            if note is None or (bound is not None and note.slot > bound):
                continue
            yield commit.version, note
            if note.kind == NoteKind.LOAD:
                return
            bound = note.slot if note.kind == NoteKind.RESTORE else note.previous

    def version_of(self, slot: int) -> int | None:
        """The version at which the table stood at `slot`; None if the log no longer says."""
        for version, note in self.notes():
            if note.slot == slot:
                return version
            if note.slot < slot:
                return None  # folded over, or never reached
        return None

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        """All files of this version with what their statistics say."""
        actions = arrow(self.table.get_add_actions(flatten=True)).read_all()
        # Times among the statistics are left out: turning them into Python would import pandas.
        key = self.key
        asked = _FILE_COLUMNS if key is None else _FILE_COLUMNS | {f"min.{key}", f"max.{key}"}
        wanted = [name for name in actions.column_names if name in asked]
        deleted = self.deleted_rows()
        listed = actions.select(wanted).to_pylist()
        return tuple(self._data_file(action, deleted) for action in listed)

    def _data_file(self, action: Mapping[str, Any], deleted: Mapping[str, int]) -> DataFile:
        if action["num_records"] is None:
            raise TransientError(
                f"The file {action['path']} of {self.path} has no row count in the Delta log. "
                "Something else wrote it without statistics; replay the index from before it."
            )
        gone = deleted.get(action["path"].rsplit("/", 1)[-1], 0)
        return DataFile(
            path=action["path"],
            cell=Cell(action[f"partition.{CELL_G}"], action[f"partition.{CELL_E}"]),
            rows=action["num_records"] - gone,
            bytes=action["size_bytes"],
            insertion=_bounds(action, INSERTION_SLOT),
            expiration=_bounds(action, EXPIRATION_SLOT),
            key=None if self.key is None else _bounds(action, self.key),
            has_deletions=gone > 0,
        )

    @cached_property
    def key(self) -> str | None:
        """The key column, if the bounds of its values are texts or whole numbers."""
        name = json.loads(self.properties.get(PROPERTY_LAYOUT, "{}")).get("key")
        types = {one.name: getattr(one.type, "type", None) for one in self.table.schema().fields}
        return name if types.get(name) in _PLAIN_KEYS else None

    def deleted_rows(self) -> Mapping[str, int]:
        """Rows hidden by deletion vectors, by file name."""
        if self.properties.get("delta.enableDeletionVectors", "false") != "true":
            return {}
        from tidetable.table.actions import hidden_rows  # which reads logs itself

        return hidden_rows(self)

    @cached_property
    def cells(self) -> Mapping[Cell, CellState]:
        """The cells that hold a file, with what the log says about each."""
        grouped: dict[Cell, list[DataFile]] = {}
        for file in self.files:
            grouped.setdefault(file.cell, []).append(file)
        return {cell: _cell_state(files) for cell, files in sorted(grouped.items())}

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def _bounds(action: Mapping[str, Any], column: str) -> tuple[Any, Any] | None:
    low, high = action.get(f"min.{column}"), action.get(f"max.{column}")
    return None if low is None or high is None else (low, high)


def _cell_state(files: list[DataFile]) -> CellState:
    bounds = widest(file.expiration for file in files)
    return CellState(
        rows=sum(file.rows for file in files),
        files=len(files),
        bytes=sum(file.bytes for file in files),
        first_expiration=None if bounds is None else bounds[0],
        last_expiration=None if bounds is None else bounds[1],
    )


def widest(bounds: Iterable[tuple[Any, Any] | None]) -> tuple[Any, Any] | None:
    """From the least to the greatest of several bounds; None if one of them is not known."""
    known = list(bounds)
    low = [one[0] for one in known if one is not None]
    high = [one[1] for one in known if one is not None]
    return (min(low), max(high)) if known and len(low) == len(known) else None
