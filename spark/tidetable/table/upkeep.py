"""Maintenance: checkpoints, files that no version needs, old rows of the tables beside an index.

No JVM. Spark makes a checkpoint with every tenth commit and cleans the log up then; what it does
not do is delete files. What may be deleted:

- a file that an update removed, once that is longer ago than `keep_versions_for`, and an hour;
- a file that no version names, left by an update that did not get to its commit, once it is older
  than `keep_versions_for`, and a day: until then its writer may still be at work.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from deltalake.exceptions import CommitFailedError

from tidetable.config import Index, format_duration
from tidetable.core.errors import TransientError
from tidetable.table.announcement import announce
from tidetable.table.append import NotTheNewest
from tidetable.table.beside import Kind, open_beside
from tidetable.table.forget import forget, merge_files, quarantine_files
from tidetable.table.garbage import garbage, last_checkpoint, named_files
from tidetable.table.history import FILES_MAX, Updates
from tidetable.table.log import Log, open_log
from tidetable.table.state import IndexTable
from tidetable.table.steps import Step, reached
from tidetable.table.stored import (
    Stored,
    StoredFile,
    check_not_inside_another,
    delete,
    remove_empty_folders,
    storage_time,
    stored,
)

READERS_MIN = timedelta(hours=1)
"""So long a reader may hold on to a version, however little `keep_versions_for` says."""

WRITERS_MIN = timedelta(hours=24)
"""So long a writer may take from its first file to its commit."""

BESIDE_MAX = timedelta(hours=24)
"""No file of the tables beside the index stays for longer than this after it was replaced."""

COMMITS_MAX = 30
"""More commits than this since the last checkpoint make every reader of the log slow."""

RACES_MAX = 5
PATHS_SHOWN = 20
_MARK = "maintained"


@dataclass(frozen=True)
class Purge:
    """What may be deleted, or was."""

    files: int
    bytes: int
    paths: list[str]
    """Some of them, with their tables' names."""

    retention: str
    """The rule, in words."""

    skipped: list[str] = field(default_factory=list)
    """Delta tables of others that lie inside: nothing in them is looked at."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def retention(index: Index) -> timedelta:
    """How long a file stays after a version did without it."""
    return max(index.keep_versions_for, READERS_MIN)


def due(index: Index, slot: int) -> list[str]:
    """Why maintenance is due at this slot; empty if it is not. The clock has no part in it."""
    reasons = []
    updates = Updates(index)
    every = max(1, ceil(retention(index) / index.update_every))
    last = updates.mark(_MARK)
    since = abs(slot - (0 if last is None else last))  # less after a replay
    if since >= every:
        reasons.append(f"{since} updates since the last maintenance; it is due after {every}")
    for log in _logs(index):
        commits = _commits_since_checkpoint(log)
        if commits > COMMITS_MAX:
            reasons.append(f"{commits} commits of {_name(log)} since its last checkpoint")
    files = updates.files
    if files > FILES_MAX:
        reasons.append(f"{files} files in the table of updates")
    files = quarantine_files(index)
    if files > FILES_MAX:
        reasons.append(f"{files} files in the quarantine")
    return reasons


def maintain(
    index: Index, *, force: bool = False, purging: bool = True, now: datetime | None = None
) -> dict[str, Any]:
    """Does what is due (with `force` all of it) and says what was done.

    Without `purging` it deletes no file of a table, says what could go, and stays due.
    """
    state = IndexTable(index).required_state()
    reasons = due(index, state.slot)
    done: dict[str, Any] = {"index": index.name, "slot": state.slot, "due": reasons}
    if not reasons and not force:
        return done | {"done": False}
    updates = Updates(index)
    # First: the files that it replaces are no longer anybody's in a while.
    with suppress(CommitFailedError):  # an update came between; the next maintenance does it
        done |= {f"updates_{name}": number for name, number in updates.tidy(merge_above=1).items()}
    with suppress(CommitFailedError):
        forgotten = forget(index, state.slot)
        done |= {f"quarantine_{name}": number for name, number in forgotten.items()}
        done["quarantine_merged_files"] = merge_files(index, above=1)
    done["checkpoints"] = [_name(log) for log in _logs(index) if _checkpointed(log, force)]
    if not purging:
        return done | _deletable(purgeable(index, now)) | {"done": True}
    gone = purge(index, now)
    done |= {"deleted_files": gone.files, "deleted_bytes": gone.bytes, "retention": gone.retention}
    if gone.skipped:
        done["skipped"] = gone.skipped
    with suppress(CommitFailedError):
        updates.set_mark(_MARK, state.slot)
    return done | {"done": True}


def outstanding(index: Index) -> dict[str, Any]:
    """What a maintenance would be due for and could delete; nothing is done."""
    slot = IndexTable(index).required_state().slot
    done = {"index": index.name, "slot": slot, "due": due(index, slot)}
    return done | _deletable(purgeable(index)) | {"done": False}


def _deletable(found: Purge) -> dict[str, Any]:
    told = {
        "deletable_files": found.files,
        "deletable_bytes": found.bytes,
        "paths": found.paths,
        "retention": found.retention,
    }
    return told | ({"skipped": found.skipped} if found.skipped else {})


def purgeable(index: Index, now: datetime | None = None) -> Purge:
    """What `purge` would delete."""
    return _told(index, [_garbage(index, log, now) for log in _logs_to_purge(index)])


def purge(index: Index, now: datetime | None = None) -> Purge:
    """Deletes what no version that is kept needs."""
    all_found = []
    logs = _logs_to_purge(index)
    at = _now(logs[0]) if now is None else now
    for log in logs:
        found = _announced(index, log, at)
        delete(log, found.files)
        reached(Step.FILES_DELETED)
        remove_empty_folders(log, found.stored, found.unnamed_before)
        all_found.append(found)
    return _told(index, all_found)


# -- parts -----------------------------------------------------------------------------------------


def _announced(index: Index, log: Log, at: datetime) -> _Garbage:
    """What may go of a table; in the index's own no replay puts any of it back from now on."""
    for _ in range(RACES_MAX):
        found = _garbage(index, log, at)
        reached(Step.GARBAGE_FOUND)
        if log.path != index.table:
            # Nobody goes back there; but what came in meanwhile is in use.
            return found.without(named_files(_opened(log.path)).in_use)
        if not found.files:
            return found
        try:
            announce(log, index.name, at - retention(index))
            return found
        except NotTheNewest:
            log = _opened(log.path)
    raise TransientError(
        f"Other writers of {index.name!r} committed first, {RACES_MAX} times in a row. "
        "Nothing was deleted; run it again."
    )


def _opened(path: str) -> Log:
    log = open_log(path)
    if log is None:
        raise TransientError(f"The table {path} went away while it was purged. Run it again.")
    return log


@dataclass(frozen=True)
class _Garbage:
    """What may go of one table."""

    table: str
    files: list[StoredFile]
    stored: Stored
    unnamed_before: datetime
    skipped: list[str]

    def without(self, in_use: set[str]) -> _Garbage:
        return replace(self, files=[file for file in self.files if file.path not in in_use])


def _clock() -> datetime:
    return datetime.now(UTC)


def _now(log: Log) -> datetime:
    """The earlier of our clock and the storage's: if one is ahead, nothing goes too soon."""
    ours, theirs = _clock(), storage_time(log)
    return ours if theirs is None else min(ours, theirs)


def _kept_beside(index: Index) -> timedelta:
    """Nobody goes back to a version of the tables beside the index; and their logs are short."""
    return min(retention(index), BESIDE_MAX)


def _logs_to_purge(index: Index) -> list[Log]:
    IndexTable(index).required_state()  # a table that something else has changed needs its past
    check_not_inside_another(index.table)
    return _logs(index)


def _garbage(index: Index, log: Log, now: datetime | None) -> _Garbage:
    # Files age by the clock: that is what is promised to readers.
    at = _clock() if now is None else now
    kept = retention(index) if log.path == index.table else _kept_beside(index)
    unnamed_before = at - max(kept, WRITERS_MIN)
    found = stored(log)
    files = list(garbage(log, found, at - kept, unnamed_before))
    skipped = [f"{log.path.rstrip('/')}/{one}" for one in found.tables]
    return _Garbage(_name(log), files, found, unnamed_before, skipped)


def _told(index: Index, found: list[_Garbage]) -> Purge:
    kept = retention(index)
    unnamed = max(kept, WRITERS_MIN)
    paths = [f"{one.table}/{file.path}" for one in found for file in one.files]
    return Purge(
        files=len(paths),
        bytes=sum(file.bytes for one in found for file in one.files),
        paths=paths[:PATHS_SHOWN],
        retention=(
            f"files stay for {format_duration(kept)} after they were replaced; "
            f"files that no version names for {format_duration(unnamed)}"
        ),
        skipped=[path for one in found for path in one.skipped],
    )


def _logs(index: Index) -> list[Log]:
    """The logs of the index's table and of those beside it, as far as they are there."""
    beside = [open_beside(index, kind) for kind in (Kind.QUARANTINE, Kind.UPDATES)]
    return [log for log in (open_log(index.table), *beside) if log is not None]


def _name(log: Log) -> str:
    return log.path.rstrip("/").rsplit("/", 1)[-1]


def _commits_since_checkpoint(log: Log) -> int:
    last = last_checkpoint(log)
    return log.version - (-1 if last is None else last)


def _checkpointed(log: Log, force: bool) -> bool:
    commits = _commits_since_checkpoint(log)
    if commits > COMMITS_MAX or (force and commits):
        log.table.create_checkpoint()
        reached(Step.CHECKPOINTED)
        return True
    return False
