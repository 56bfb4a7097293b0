"""Files below a table's folder, wherever it is stored."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow.fs as pafs


def reader_uri(path: str) -> str:
    """The path as delta-rs takes it: Hadoop writes s3a:// where everybody else writes s3://."""
    for hadoop, plain in (("s3a://", "s3://"), ("s3n://", "s3://"), ("wasbs://", "az://")):
        if path.startswith(hadoop):
            return plain + path[len(hadoop) :]
    return path.removeprefix("file://") if path.startswith("file:///") else path


def is_on_file_system(path: str) -> bool:
    return "://" not in reader_uri(path)


def storage(path: str) -> pafs.FileSystem:
    """A table's folder as a file system."""
    # Not on the way of a probe: both cost more than what it reads from the log.
    import pyarrow.fs as pafs
    from deltalake.fs import DeltaStorageHandler

    return pafs.PyFileSystem(DeltaStorageHandler(reader_uri(path)))


def read_file(table: str, path: str) -> bytes:
    """All of a file below the table. FileNotFoundError if it is not there."""
    if is_on_file_system(table):
        return Path(reader_uri(table), path).read_bytes()
    with storage(table).open_input_file(path) as file:
        return bytes(file.read())


def move_file(table: str, source: str, target: str) -> None:
    """Moves a file below the table to another place there."""
    if not is_on_file_system(table):
        storage(table).move(source, target)
        return
    root = Path(reader_uri(table))
    for _ in range(2):
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        try:
            (root / source).rename(root / target)
            return
        except FileNotFoundError:  # VACUUM removes folders that it finds empty
            continue
    raise FileNotFoundError(f"{table}/{source}")


def remove_files(table: str, paths: Iterable[str]) -> None:
    """Deletes files of a writer that did not get to its commit."""
    if is_on_file_system(table):
        for path in paths:
            (Path(reader_uri(table)) / path).unlink(missing_ok=True)
        return
    files = storage(table)
    for path in paths:
        files.delete_file(path)


def remove_folder(table: str, folder: str) -> None:
    """Deletes a folder of ours below the table, if it is there."""
    if is_on_file_system(table):
        shutil.rmtree(Path(reader_uri(table)) / folder, ignore_errors=True)
        return
    import pyarrow.fs as pafs

    selector = pafs.FileSelector(folder, recursive=True, allow_not_found=True)
    found = storage(table).get_file_info(selector)
    remove_files(table, [one.path for one in found if one.type == pafs.FileType.File])
