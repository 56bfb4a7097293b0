"""The files of a source: what Spark is going to read, without asking it.

Knowing them is cheap and tells much: that a folder is empty, which columns each file has, and (on
this machine's disk) whether a file was replaced while it was being read. On an object store they
are listed if the table lies on one of the same kind: then delta-rs has what it takes to get in.
What cannot be listed is left to Spark: None.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow.fs as pafs

from tidetable.engine.file_choice import choice
from tidetable.table.storage import reader_uri, storage

_RECURSIVE = "recursivefilelookup"
_GLOB = "*?["


@dataclass(frozen=True)
class SourceFile:
    """A file as it was when it was listed."""

    path: str
    partitions: tuple[str, ...]
    """Columns that its folders name, as in day=2024-03-01/."""

    size: int
    changed: int
    inode: int


def source_files(
    paths: Sequence[str],
    options: Mapping[str, str],
    *,
    recursive: bool = False,
    beside: str | None = None,
) -> list[SourceFile] | None:
    """The data files of these paths, in the order of their names; None if only Spark can tell.

    `beside` is the place of the table: whether a store may be asked follows from it.
    """
    told = {name.lower(): value for name, value in options.items()}
    is_chosen = choice(options)
    if is_chosen is None:
        return None
    recursive = recursive or told.get(_RECURSIVE, "false").lower() == "true"
    found: dict[str, SourceFile] = {}
    for path in paths:
        listed: list[SourceFile] | None
        if (local := local_path(path)) is not None:
            listed = _on_disk(local, recursive)
        elif beside is not None and _store(path) == _store(beside) is not None:
            listed = _on_store(path, recursive)
        else:
            return None
        if listed is None:
            return None
        for file in listed:
            if is_chosen(PurePosixPath(file.path).name, file.changed // 1_000_000):
                found[file.path] = file
    return [found[path] for path in sorted(found)]


def changed_since(files: Sequence[SourceFile]) -> list[str]:
    """Those of the files that are gone, or are no longer what they were when they were listed.

    A file with the same size, time and inode counts as the same; of one on a store nothing is said.
    """
    on_disk = (file for file in files if local_path(file.path) is not None)
    return [file.path for file in on_disk if _as_it_is(Path(file.path), file.partitions) != file]


def local_path(path: str) -> str | None:
    """The path on this machine's disk; None if it lies elsewhere."""
    local = re.sub("^file:(//)?(?=/)", "", path)
    return local if local.startswith("/") else None


def is_on_disk(path: str) -> bool:
    """Whether something is at this local path, which may be a pattern."""
    return next(_places(path), None) is not None


def _places(path: str) -> Iterator[Path]:
    """What a path stands for: itself, or what a pattern of Spark's finds."""
    for alternative in _alternatives(path):
        parts = Path(alternative).parts
        globs = (i for i, part in enumerate(parts) if any(c in part for c in _GLOB))
        first = next(globs, None)
        if first is None:
            if Path(alternative).exists():
                yield Path(alternative)
        else:
            yield from Path(*parts[:first]).glob(str(Path(*parts[first:])))


def _alternatives(path: str) -> list[str]:
    """`data/{a,b}` -> `data/a`, `data/b`: Python's globs know no braces, Spark's do."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if braces is None:
        return [path]
    before, after = path[: braces.start()], path[braces.end() :]
    return [
        whole
        for alternative in braces[1].split(",")
        for whole in _alternatives(before + alternative + after)
    ]


def _on_disk(path: str, recursive: bool) -> list[SourceFile]:
    files = (one for place in _places(path) for one in _files_in(place, recursive))
    listed = (_as_it_is(file, partitions) for file, partitions in files)
    return [file for file in listed if file is not None]


def _files_in(
    place: Path, recursive: bool, partitions: tuple[str, ...] = ()
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """As Spark finds them: hidden ones are none, and folders count if they name a partition."""
    if not place.is_dir():
        yield place, partitions
        return
    for entry in os.scandir(place):
        if entry.name.startswith(".") or (entry.name.startswith("_") and "=" not in entry.name):
            continue
        if not entry.is_dir():
            yield Path(entry.path), partitions
        elif recursive:
            yield from _files_in(Path(entry.path), recursive, partitions)
        elif "=" in entry.name:
            column = entry.name.partition("=")[0]
            yield from _files_in(Path(entry.path), recursive, (*partitions, column))


def _store(path: str) -> str | None:
    """The kind of store that a path is on: s3, az, gs; None for a disk."""
    scheme, separator, _ = reader_uri(path).partition("://")
    return scheme if separator else None


def _on_store(path: str, recursive: bool) -> list[SourceFile] | None:
    """The same on an object store; None if it cannot be listed, or the path is a pattern."""
    root = path.rstrip("/")
    if any(character in root for character in f"{_GLOB}{{"):
        return None
    try:
        found = storage(root).get_file_info(pafs.FileSelector("", recursive=True))
        if not found:  # a single file
            root, _, name = root.rpartition("/")
            found = [storage(root).get_file_info(name)]
    except OSError:
        return None
    listed = []
    for info in found:
        name = info.path.strip("/")
        *folders, _ = name.split("/")
        if info.type != pafs.FileType.File or not _is_seen(name.split("/")):
            continue
        partitions = tuple(folder.partition("=")[0] for folder in folders if "=" in folder)
        if recursive or len(partitions) == len(folders):
            named = () if recursive else partitions
            listed.append(SourceFile(f"{root}/{name}", named, info.size, info.mtime_ns, 0))
    return listed


def _is_seen(parts: Sequence[str]) -> bool:
    """Whether Spark reads what is so called: nothing hidden, nor in a folder that is."""
    return not any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts
    )


def _as_it_is(file: Path, partitions: tuple[str, ...]) -> SourceFile | None:
    try:
        about = file.stat()
    except FileNotFoundError:
        return None
    return SourceFile(str(file), partitions, about.st_size, about.st_mtime_ns, about.st_ino)
