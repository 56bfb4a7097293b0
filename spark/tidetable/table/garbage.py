"""Files below a Delta table that no version needs any longer, found without a JVM.

VACUUM of delta-rs (1.6) is of no use here: in its thorough mode it takes deletion vectors that are
in use for garbage, and in the other it forgets what a checkpoint has forgotten. So the log is read
here: which files and vectors the newest version names, and which were removed when.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from tidetable.core.errors import UserError
from tidetable.table.log import Log
from tidetable.table.stored import Stored, StoredFile, checked_file, checksum, coming_in

_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet$")
_OTHER_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(?:json|parquet)$")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_ELSEWHERE = re.compile(r"^(?:/|[A-Za-z][A-Za-z0-9+.-]*:/)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)
_READ_AT_ONCE = 16


@dataclass
class Named:
    """The files that a log names: those in use, and when the others were removed."""

    live: dict[str, str | None] = field(default_factory=dict)
    """Data file -> its deletion vector's file."""

    removed: dict[str, datetime] = field(default_factory=dict)
    """File -> when a version last did without it, by its writer's clock; vectors too."""

    def apply(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """What one version did. A new deletion vector takes a file out and puts it back."""
        actions = list(actions)
        for action in actions:
            if action.get("remove"):
                self._remove(action["remove"])
        for action in actions:
            if action.get("add"):
                self.live[_own(action["add"]["path"])] = vector_file(action["add"])

    def _remove(self, removed: Mapping[str, Any]) -> None:
        path, vector = _own(removed["path"]), vector_file(removed)
        if self.live.get(path) == vector:
            self.live.pop(path, None)
        _take_later(self.removed, removed, _moment(removed.get("deletionTimestamp")))

    @property
    def in_use(self) -> set[str]:
        return {*self.live, *(vector for vector in self.live.values() if vector is not None)}


@dataclass
class Dated:
    """What the commits that are kept removed, by the times at which the storage got them.

    A removal in the log carries the time of its writer's clock, which may be wrong, and a
    checkpoint leaves out those that are old by such a clock.
    """

    removed: dict[str, datetime] = field(default_factory=dict)
    since: datetime = _EPOCH
    """From when on they tell of every removal; what they do not name was removed before."""

    @staticmethod
    def of(log: Log) -> Dated:
        def removals(version: int) -> list[Mapping[str, Any]] | None:
            try:
                return [one["remove"] for one in log.actions(version) if one.get("remove")]
            except FileNotFoundError:
                return None  # cleaned up since they were listed

        dated, oldest = Dated(), log.version + 1
        times = _commit_times(log)
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            read = dict(zip(times, pool.map(removals, times), strict=True))
        for version, removed in read.items():
            if removed is not None:
                oldest = min(oldest, version)
                for one in removed:
                    _take_later(dated.removed, one, times[version])
        if oldest > 0:
            dated.since = times.get(oldest, _NEVER)
        return dated


def garbage(
    log: Log, found: Stored, removed_before: datetime, unnamed_before: datetime
) -> Iterator[StoredFile]:
    """Files that may go: removed before the one time, or named by no version and written before
    the other: left by a writer that never got to its commit, or forgotten by the log.
    """
    named, dated = named_files(log), Dated.of(log)
    in_use = named.in_use
    latest = found.last_change()
    for path, file in found.files.items():
        of, run = checked_file(path), coming_in(path)
        if run is not None:
            # All of it or none: whoever writes the last file still needs the first.
            if latest[run] < unnamed_before:
                yield file
            continue
        if of is not None:
            if of not in found.files and file.written_at < unnamed_before:
                yield file
            continue
        if path in in_use:
            continue
        removed_at = named.removed.get(path)
        is_unnamed = removed_at is None and path not in dated.removed
        limit = unnamed_before if is_unnamed else removed_before
        gone_at = dated.removed.get(path, dated.since)
        # The later of what the writer's clock and the storage's said.
        if max(removed_at or file.written_at, gone_at) < limit:
            yield file
            if checksum(path) in found.files:
                yield found.files[checksum(path)]


def missing_files(log: Log) -> list[str]:
    """Files of the log's own version that are stored no longer, deletion vectors too.

    Only if there are none can that version be read or put back: RESTORE itself looks for data
    files and not for vectors. FileNotFoundError if the log of that time is gone.
    """

    import pyarrow.fs as pafs

    def is_missing(path: str) -> bool:
        return bool(log.storage.get_file_info(path).type != pafs.FileType.File)

    in_use = sorted(named_files(log).in_use)
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        gone = list(pool.map(is_missing, in_use))
    return [path for path, missing in zip(in_use, gone, strict=True) if missing]


def named_files(log: Log) -> Named:
    """What the log says as of its version, from the newest checkpoint on."""
    import pyarrow.parquet as pq

    named = Named()
    start = 0
    checkpoint = newest_checkpoint(log)
    if checkpoint is not None:
        start, parts = checkpoint[0] + 1, checkpoint[1]
        for part in parts:
            with log.storage.open_input_file(f"_delta_log/{part}") as file:
                table = pq.read_table(file, columns=["add", "remove"])
            for batch in table.to_batches(max_chunksize=10_000):
                named.apply(batch.to_pylist())
    for version in range(start, log.version + 1):
        named.apply(log.actions(version))
    return named


def last_checkpoint(log: Log) -> int | None:
    """The version of the last checkpoint, as the log's own pointer says: no listing."""
    try:
        with log.storage.open_input_file("_delta_log/_last_checkpoint") as file:
            return int(json.loads(file.read().decode())["version"])
    except FileNotFoundError:
        return None


def newest_checkpoint(log: Log) -> tuple[int, list[str]] | None:
    """The version of the newest checkpoint and the names of its files."""
    import pyarrow.fs as pafs

    listed = log.storage.get_file_info(pafs.FileSelector("_delta_log"))
    names = [found.path.rsplit("/", 1)[-1] for found in listed]
    whole: dict[int, list[str]] = {}
    for name in sorted(names):
        if found := _CHECKPOINT.match(name):
            whole.setdefault(int(found[1]), []).append(name)
        elif found := _OTHER_CHECKPOINT.match(name):
            raise UserError(
                f"{log.path} has checkpoints of the new kind ({name}), which Tidetable does not "
                "read. Clean it up with Spark: VACUUM."
            )
    for version in sorted(whole, reverse=True):
        parts = whole[version]
        wanted = _CHECKPOINT.match(parts[0])
        assert wanted is not None
        number = 1 if wanted[3] is None else int(wanted[3])
        if version <= log.version and len(parts) >= number:
            return version, parts
    return None


# -- names and times -------------------------------------------------------------------------------


def _own(path: str) -> str:
    """The path below the table."""
    if _ELSEWHERE.match(path):
        raise UserError(
            f"The log names a file by its full path, {path}: the table is a clone, which Tidetable "
            "does not clean up. Do it with Spark: VACUUM."
        )
    return unquote(path)


def vector_file(action: Mapping[str, Any]) -> str | None:
    """The file that holds an action's deletion vector, below the table; None if there is none."""
    vector = action.get("deletionVector")
    if not vector or vector["storageType"] == "i":
        return None  # there is none, or it is in the log itself
    text = vector["pathOrInlineDv"]
    if vector["storageType"] == "p":
        return _own(text)
    folder, name = text[:-20], f"deletion_vector_{_uuid(text[-20:])}.bin"
    return f"{folder}/{name}" if folder else name


def _uuid(text: str) -> uuid.UUID:
    """The 16 bytes that Delta writes as 20 characters of base 85, in the alphabet of ZeroMQ."""
    numbers = []
    for start in range(0, 20, 5):
        number = 0
        for character in text[start : start + 5]:
            number = number * 85 + _Z85.index(character)
        numbers.append(number.to_bytes(4, "big"))
    return uuid.UUID(bytes=b"".join(numbers))


def _take_later(times: dict[str, datetime], removed: Mapping[str, Any], time: datetime) -> None:
    for path in (_own(removed["path"]), vector_file(removed)):
        if path is not None:
            times[path] = max(time, times.get(path, time))


def _commit_times(log: Log) -> dict[int, datetime]:
    """When the storage got each commit up to this version, as far as they are kept."""
    import pyarrow.fs as pafs

    listed = log.storage.get_file_info(pafs.FileSelector("_delta_log"))
    named = ((_COMMIT.match(found.path.rsplit("/", 1)[-1]), found.mtime) for found in listed)
    times = {int(name[1]): time.astimezone(UTC) for name, time in named if name is not None}
    return {version: times[version] for version in sorted(times) if version <= log.version}


def _moment(milliseconds: int | None) -> datetime:
    """Of a removal without a time nobody knows that it is recent."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds or 0)
    except OverflowError:  # no clock says so
        return _EPOCH
