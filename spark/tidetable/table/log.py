"""The Delta log of a table, read without a JVM: versions, notes, files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, Metadata, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.table import ProtocolVersions

from tidetable.core.cell import Cell, CellState
from tidetable.core.errors import TransientError, UserError
from tidetable.table.damage import Damage, DamagedLog, LogFiles, damaged_text
from tidetable.table.note import Note, NoteKind
from tidetable.table.place import PROPERTY_LAYOUT
from tidetable.table.storage import read_file, reader_uri, storage

if TYPE_CHECKING:
    import pyarrow.fs as pafs

    from tidetable.table.files import Files

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_KEYS = frozenset({"string", "byte", "short", "integer", "long"})
"""Bounds of these are the same whoever reads them; and to turn times into Python imports pandas."""


_NOT_OF_FILES = frozenset({"protocol", "metaData", "domainMetadata"})
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
        self.version: int = table.version()
        self._opened = table
        self._used_up: frozenset[str] = frozenset()

    def followed(self) -> Log | None:
        """The newest version, made of this one and of what each commit since says of its files.

        None if that is not all: there is none, or one says more. Then the log has to be opened,
        which takes reading all of it.
        """
        newest = self
        try:
            while (commit := newest.commit(newest.version + 1)) is not None:
                actions = [json.loads(line) for line in commit.text.splitlines() if line]
                if not all(_only_names_files(action) for action in actions):
                    return None
                newest = newest._followed_by(actions)
        except (DamagedLog, ValueError, KeyError, TypeError):
            return None  # whatever it is, whoever opens the log will meet it
        return None if newest is self else newest

    def _followed_by(self, actions: Sequence[Mapping[str, Any]]) -> Log:
        from tidetable.table.tally import files_after  # which reads logs itself

        then = Log(self.path, self._opened)
        then.version = self.version + 1
        fences = (str(one["txn"]["appId"]) for one in actions if "txn" in one)
        then._used_up = self._used_up.union(fences)
        then.files = files_after(self, actions)
        return then

    @cached_property
    def table(self) -> DeltaTable:
        """The table at this version, for readers."""
        if self._opened.version() == self.version:
            return self._opened
        return DeltaTable(reader_uri(self.path), version=self.version)

    @cached_property
    def storage(self) -> pafs.FileSystem:
        """The table's folder as a file system, wherever it is stored."""
        return storage(self.path)

    @property
    def properties(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.metadata.configuration
        return found

    @property
    def schema(self) -> Schema:
        return self._opened.schema()

    @property
    def metadata(self) -> Metadata:
        return self._opened.metadata()

    @property
    def protocol(self) -> ProtocolVersions:
        return self._opened.protocol()

    def is_used_up(self, fence: str) -> bool:
        """Whether a commit carries the transaction of this fence."""
        return fence in self._used_up or self._opened.transaction_version(fence) is not None

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
    def files(self) -> Files:
        """All files of this version with what their statistics say."""
        # Here, for those who ask a log for its commits only.
        import pyarrow.compute as pc

        from tidetable.table.files import Files

        actions = arrow(self.table.get_add_actions(flatten=True)).read_all()
        counted = actions.column("num_records").is_valid()
        if actions.num_rows and not pc.all(counted).as_py():
            path = actions.column("path").filter(pc.invert(counted))[0].as_py()
            raise TransientError(
                f"The file {path} of {self.path} has no row count in the Delta log. "
                "Something else wrote it without statistics; replay the index from before it."
            )
        return Files.told(actions, self.key, self.deleted_rows())

    @cached_property
    def key(self) -> str | None:
        """The key column, if the bounds of its values are texts or whole numbers."""
        name = json.loads(self.properties.get(PROPERTY_LAYOUT, "{}")).get("key")
        types = {one.name: getattr(one.type, "type", None) for one in self.schema.fields}
        return name if types.get(name) in _PLAIN_KEYS else None

    def deleted_rows(self) -> Mapping[str, int]:
        """Rows hidden by deletion vectors, by file name."""
        if self.properties.get("delta.enableDeletionVectors", "false") != "true":
            return {}
        from tidetable.table.actions import hidden_rows  # which reads logs itself

        return hidden_rows(self)

    @property
    def cells(self) -> Mapping[Cell, CellState]:
        """The cells that hold a file, with what the log says about each."""
        return self.files.cells

    @property
    def rows(self) -> int:
        return self.files.rows


def _only_names_files(action: Mapping[str, Any]) -> bool:
    """Whether it says nothing of columns, properties or rules, and of a file how many rows."""
    if "add" in action:
        return "numRecords" in (action["add"].get("stats") or "")
    return _NOT_OF_FILES.isdisjoint(action)
