"""Going back: the state of an earlier slot, and from there again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

from deltalake.exceptions import DeltaError

from tidetable.core.errors import TransientError
from tidetable.engine.commit import publish
from tidetable.engine.updater import RACES_MAX, Updater, UpdateReport
from tidetable.table.actions import Contents, contents, removal_of
from tidetable.table.announcement import may_be_gone
from tidetable.table.append import NotTheNewest
from tidetable.table.garbage import missing_files
from tidetable.table.log import Log, open_log
from tidetable.table.note import Note
from tidetable.table.state import IndexTable, State
from tidetable.table.steps import Step, reached
from tidetable.table.tally import disagreement


def replay(updater: Updater, first: int, *, from_source: bool = False) -> Iterator[UpdateReport]:
    """Restores the state before slot `first` and applies the slots up to where the table stood.

    The old version is put back if its files are still there; otherwise that state is loaded from
    the source, which is why a replay also mends a table that something else has changed. Going
    back is a commit on top of what was looked at: an update that comes between is replayed too.
    With `from_source` no old version is put back, and a log that was set aside is begun again.
    """
    for _ in range(RACES_MAX):
        state = IndexTable(updater.index).state_to_replay(first, from_source=from_source)
        updater.check_places()
        old = None if state is None or from_source else _kept(state, first - 1)
        if state is not None and old is not None:
            if not _put_back(state, *old):
                continue
            updater.record()
            yield from _loaded_if_broken(updater, first - 1)
        else:
            report = updater.reload(first - 1, state)
            if report is None:
                continue
            yield report
        if state is not None:  # else nobody knows up to which slot to go; the next update does
            yield from updater.catch_up(state.slot)
        return
    raise TransientError(
        f"Other writers of {updater.index.name!r} committed first, {RACES_MAX} times in a row. "
        "Nothing was lost.",
        remedy="Run it again, with one writer at a time.",
        code="lost_race",
    )


def _kept(state: State, slot: int) -> tuple[Log, Note] | None:
    """The version of that slot, if it can be read as it was then; None if it cannot."""
    version = state.log.version_of(slot)
    commit = None if version is None else state.log.commit(version)
    if version is None or commit is None or commit.note is None:
        return None
    try:
        log = open_log(state.log.path, version)
        if log is None or missing_files(log) or disagreement(log.files, commit.note) is not None:
            return None
        if may_be_gone(state.log, log, state.note.index):
            return None
    except (DeltaError, FileNotFoundError):
        return None  # the log of that time is cleaned up
    return log, commit.note


def _loaded_if_broken(updater: Updater, slot: int) -> Iterator[UpdateReport]:
    """Loads the state from the source if a clean-up took files after they were looked for."""
    state = IndexTable(updater.index).state(trusting=True)
    if state is None or state.slot != slot or not missing_files(state.log):
        return
    report = updater.reload(slot, state)
    if report is None:
        raise TransientError(
            f"{updater.index.table} lacks files that a clean-up took while slot {slot} was put "
            "back, and another writer came first.",
            remedy="Run the replay again.",
            code="lost_race",
        )
    yield report


def _put_back(state: State, old: Log, note: Note) -> bool:
    """Whether the old version is the newest again; False if another writer was first."""
    reached(Step.PLAN_MADE)
    restored = note.as_restored(uuid.uuid4().hex)
    try:
        publish(state.log, way_back(state.log, old), restored, state.fence, "RESTORE")
    except NotTheNewest:
        return False
    reached(Step.COMMITTED)
    return True


def way_back(now: Log, old: Log) -> list[dict[str, Any]]:
    """What makes the version `now` hold the files of the version `old`, and its columns."""
    present, past = contents(now), contents(old)
    at_ms = int(time.time() * 1000)
    there = {_identity(added) for added in present.files.values()}
    wanted = {_identity(added) for added in past.files.values()}
    gone = [
        removal_of(added, at_ms)
        for added in present.files.values()
        if _identity(added) not in wanted
    ]
    back = [
        {"add": {**added, "dataChange": True}}
        for added in past.files.values()
        if _identity(added) not in there
    ]
    return [*_rules(present, past), *gone, *back]


def _rules(present: Contents, past: Contents) -> list[dict[str, Any]]:
    """The columns of then, if somebody has changed them; what the table is for stays as it is."""
    if present.metadata["schemaString"] == past.metadata["schemaString"]:
        return []
    return [{"metaData": {**present.metadata, "schemaString": past.metadata["schemaString"]}}]


def _identity(added: dict[str, Any]) -> tuple[str, str | None, int | None]:
    """A file with the rows that its deletion vector leaves of it."""
    vector = added.get("deletionVector") or {}
    return added["path"], vector.get("pathOrInlineDv"), vector.get("offset")
