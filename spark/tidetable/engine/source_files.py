"""The files of a source on this machine's disk: what Spark is going to read, without asking it.

Knowing them is cheap and tells much: that a folder is empty, which columns each file has, and
whether a file was replaced while it was being read. Whatever lies elsewhere, or is chosen by
options, is left to Spark: None.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CHOOSES_FILES = {"pathglobfilter", "modifiedbefore", "modifiedafter", "basepath"}
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
    paths: Sequence[str], options: Mapping[str, str], *, recursive: bool = False
) -> list[SourceFile] | None:
    """The data files of these paths, in the order of their names; None if only Spark can tell."""
    told = {name.lower(): value for name, value in options.items()}
    if told.keys() & _CHOOSES_FILES:
        return None
    recursive = recursive or told.get(_RECURSIVE, "false").lower() == "true"
    found: dict[str, SourceFile] = {}
    for path in paths:
        local = local_path(path)
        if local is None:
            return None
        for place in _places(local):
            for file, partitions in _files_in(place, recursive):
                if (listed := _as_it_is(file, partitions)) is not None:
                    found[listed.path] = listed
    return [found[path] for path in sorted(found)]


def changed_since(files: Sequence[SourceFile]) -> list[str]:
    """Those of the files that are gone, or are no longer what they were when they were listed.

    A file with the same size, time and inode counts as the same.
    """
    return [file.path for file in files if _as_it_is(Path(file.path), file.partitions) != file]


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


def _as_it_is(file: Path, partitions: tuple[str, ...]) -> SourceFile | None:
    try:
        about = file.stat()
    except FileNotFoundError:
        return None
    return SourceFile(str(file), partitions, about.st_size, about.st_mtime_ns, about.st_ino)
