"""What lies in a table's folder: what we have written there, by name, and never through a link.

A folder may hold more than its table: a note of its owner's, another table, a link to somewhere
else. None of that is ours to delete. Ours are data files in the folders of cells (in tables without
cells: at the top), deletion vectors at the top, what a writer was bringing in, Hadoop's checksums
of these, and a commit that a killed writer had not given its name yet.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tidetable.core.columns import CELL_E, CELL_G
from tidetable.core.errors import UserError
from tidetable.table.log import Log
from tidetable.table.place import INCOMING, LOG_FOLDER, local_folder
from tidetable.table.storage import reader_uri, storage

if TYPE_CHECKING:
    import pyarrow.fs as pafs

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CELL = rf"{CELL_G}=-?\d+/{CELL_E}=-?\d+"
_VECTOR = re.compile(rf"^deletion_vector_{_UUID}\.bin$")
_IN_A_CELL = re.compile(rf"^{_CELL}/part-[^/]+\.parquet$")
_AT_THE_TOP = re.compile(rf"^part-\d+-{_UUID}[^/]*\.parquet$")
_COMING_IN = re.compile(rf"^{INCOMING}/([^/]+)/")
_HALF_COMMIT = re.compile(rf"^{LOG_FOLDER}/\.\d{{20}}\.json\.[0-9a-f]{{32}}\.tmp$")
_PRIVATE = re.compile(rf"^{INCOMING}/[0-9a-f]{{32}}$")
"""A writer's own folder, whose name is its run. It may hold a table that it works on."""

_OWN_FOLDER = re.compile(rf"^(?:{CELL_G}=-?\d+(?:/{CELL_E}=-?\d+)?|{INCOMING}/.+)$")
_DELETED_AT_ONCE = 8


@dataclass(frozen=True)
class StoredFile:
    """A file as the storage lists it."""

    path: str
    bytes: int
    written_at: datetime


@dataclass
class Stored:
    """All that a listing of a table's folder found that concerns us."""

    files: dict[str, StoredFile] = field(default_factory=dict)
    """Ours, by path below the table."""

    folders: dict[str, datetime] = field(default_factory=dict)
    """Folders that we make, and when something in each last came or went. Not on object stores,
    which have none."""

    tables: list[str] = field(default_factory=list)
    """Folders below that are Delta tables of their own: not looked into."""

    def last_change(self) -> dict[str, datetime]:
        """For each writer that brought something in, by its folder's name: when it last did."""
        latest: dict[str, datetime] = {}
        times = [(file.path, file.written_at) for file in self.files.values()]
        for path, time in [*times, *((f"{path}/", time) for path, time in self.folders.items())]:
            run = coming_in(path)
            if run is not None:
                latest[run] = max(time, latest.get(run, time))
        return latest


def coming_in(path: str) -> str | None:
    """The writer's folder name if this is what one is, or was, about to bring in."""
    found = _COMING_IN.match(path)
    return None if found is None else found[1]


def checksum(path: str) -> str:
    """Where Hadoop keeps the checksum of a local file."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.crc" if folder else f".{name}.crc"


def checked_file(path: str) -> str | None:
    """The file that this is the checksum of, or None."""
    folder, _, name = path.rpartition("/")
    if not (name.startswith(".") and name.endswith(".crc")):
        return None
    name = name[1:-4]
    return f"{folder}/{name}" if folder else name


def stored(log: Log) -> Stored:
    """What of ours lies in the table's folder, and which other tables do."""
    root = local_folder(log.path)
    found = _listed(log.storage) if root is None else _walked(root)
    data = _IN_A_CELL if log.metadata.partition_columns else _AT_THE_TOP

    def is_ours(path: str) -> bool:
        if coming_in(path) is not None:
            return True
        name = checked_file(path) or path
        return bool(data.match(name) or _VECTOR.match(name) or _HALF_COMMIT.match(path))

    found.files = {path: file for path, file in found.files.items() if is_ours(path)}
    found.folders = {path: time for path, time in found.folders.items() if _OWN_FOLDER.match(path)}
    return found


def stored_files(log: Log) -> Iterator[StoredFile]:
    """The files of ours below the table, in use or not."""
    yield from stored(log).files.values()


# -- listing ---------------------------------------------------------------------------------------


def _walked(root: Path) -> Stored:
    """A local folder. Links are passed over, be they files or folders; the root may be one."""
    found = Stored()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with suppress(FileNotFoundError):  # gone since its parent was listed
            entries = list(os.scandir(root / folder))
            is_table = any(entry.name == LOG_FOLDER for entry in entries)
            if folder and is_table and not _PRIVATE.match(folder):
                found.tables.append(folder)
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_symlink() or (folder == LOG_FOLDER and not _HALF_COMMIT.match(path)):
                    continue
                about = entry.stat(follow_symlinks=False)
                time = datetime.fromtimestamp(about.st_mtime, UTC)
                if entry.is_dir(follow_symlinks=False):
                    found.folders[path] = time
                    waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    found.files[path] = StoredFile(path, about.st_size, time)
    return found


def _listed(files: pafs.FileSystem) -> Stored:
    """An object store."""
    import pyarrow.fs as pafs

    found = Stored()
    inside = re.compile(rf"^(.+?)/{LOG_FOLDER}/")
    tables = set()
    for entry in files.get_file_info(pafs.FileSelector("", recursive=True)):
        path = entry.path.lstrip("/")
        table = inside.match(path)
        if table is not None and not _PRIVATE.match(table[1]):
            tables.add(table[1])
        if entry.type == pafs.FileType.File:
            found.files[path] = StoredFile(path, entry.size, entry.mtime.astimezone(UTC))
    found.tables = sorted(tables)
    within = tuple(f"{table}/" for table in tables)
    found.files = {path: file for path, file in found.files.items() if not path.startswith(within)}
    return found


# -- deleting --------------------------------------------------------------------------------------


def delete(log: Log, files: Iterable[StoredFile]) -> None:
    """Deletes the files; one that is gone already does not matter."""
    root = local_folder(log.path)

    def delete_one(file: StoredFile) -> None:
        with suppress(FileNotFoundError):
            if root is None:
                log.storage.delete_file(file.path)
            elif _is_below(root, file.path):
                (root / file.path).unlink()

    with ThreadPoolExecutor(_DELETED_AT_ONCE) as pool:
        for _ in pool.map(delete_one, files):
            pass


def remove_empty_folders(log: Log, found: Stored, unchanged_since: datetime) -> None:
    """Removes folders of ours that are empty and had been left alone when they were `found`.

    A writer that is about to put a file there makes the folder again.
    """
    root = local_folder(log.path)
    if root is None:
        return
    latest = found.last_change()
    for path in sorted(found.folders, key=lambda path: path.count("/"), reverse=True):
        run = coming_in(f"{path}/")
        time = found.folders[path] if run is None else latest[run]
        if time < unchanged_since and _is_below(root, path):
            with suppress(OSError):  # not empty, or gone, or somebody else's
                (root / path).rmdir()


def _is_below(root: Path, path: str) -> bool:
    """Whether the path leads through no link, as of now: the listing is a while ago."""
    parent = (root / path).parent
    return parent.resolve() == root.resolve() / parent.relative_to(root)


# -- the storage's own clock -----------------------------------------------------------------------


def storage_time(log: Log) -> datetime | None:
    """What time it is for the storage that dates the files; None if it cannot be asked."""
    name = f"{INCOMING}/{uuid.uuid4().hex}/clock"
    root = local_folder(log.path)
    try:
        return _time_on_store(reader_uri(log.path), name) if root is None else _time_on(root, name)
    except Exception:  # whatever it is, deleting will meet it again
        return None


def _time_on(root: Path, name: str) -> datetime:
    file = root / name
    file.parent.mkdir(parents=True)
    try:
        file.write_bytes(b"now")
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    finally:
        file.unlink(missing_ok=True)
        file.parent.rmdir()


def _time_on_store(root: str, name: str) -> datetime:
    import obstore

    store = obstore.store.from_url(root)
    obstore.put(store, name, b"now")
    try:
        return obstore.head(store, name)["last_modified"]
    finally:
        obstore.delete(store, name)


# -- tables inside tables --------------------------------------------------------------------------


def check_not_inside_another(path: str) -> None:
    """UserError if a folder above this one is a Delta table: cleaning up there would delete it."""
    root = local_folder(path)
    if root is None:
        above = next((one for one in _prefixes_above(path) if _has_log(one)), None)
    else:
        folders = root.resolve().parents
        above = next((str(one) for one in folders if (one / LOG_FOLDER).is_dir()), None)
    if above is not None:
        raise UserError(
            f"{path} lies inside {above}, which is a Delta table of its own; whatever cleans "
            "that up (VACUUM) would delete the files of this one. Choose a place outside of it "
            "in the YAML (table:)."
        )


def _prefixes_above(path: str) -> Iterator[str]:
    """s3://bucket/a/b -> s3://bucket/a, s3://bucket"""
    scheme, _, rest = path.rstrip("/").partition("://")
    parts = [part for part in rest.split("/") if part]
    for end in range(len(parts) - 1, 0, -1):
        yield f"{scheme}://{'/'.join(parts[:end])}"


def _has_log(prefix: str) -> bool:
    """Whether there is a Delta log; not, if we may not look there."""
    import pyarrow.fs as pafs

    try:
        found = storage(prefix).get_file_info(LOG_FOLDER)
    except OSError:
        return False
    return bool(found.type == pafs.FileType.Directory)
