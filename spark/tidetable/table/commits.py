"""The next version of a table as one call: commit, and the checkpoint that is due with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidetable.table.append import append_version, as_text, commit_info, last_commit_time
from tidetable.table.checkpoint import checkpoint_if_due
from tidetable.table.log import Log


def commit(
    log: Log,
    operation: str,
    actions: Sequence[Mapping[str, Any]],
    *,
    metadata: Mapping[str, Any] | None = None,
    parameters: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
) -> None:
    """Makes the version after `log`; NotTheNewest, with the table as it was, if there is one.

    `metadata` is the table's, if the commit changes it.
    """
    version = log.version + 1
    info = commit_info(
        operation,
        log.version,
        metadata={"configuration": log.properties} if metadata is None else metadata,
        parameters=parameters,
        user_metadata=user_metadata,
        after_ms=last_commit_time(log),
    )
    said = [info, *actions]
    try:
        append_version(log.path, version, said)
    except Exception:
        # Whatever the error says: a store may have taken the version and lost the answer, and then
        # refuse the second attempt because of the first.
        if not _is_there(log, version, said):
            raise
    checkpoint_if_due(log, version)


def _is_there(log: Log, version: int, said: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the version is there, and is this one."""
    try:
        with log.storage.open_input_file(f"_delta_log/{version:020d}.json") as file:
            return bool(file.read() == as_text(said))
    except OSError:
        return False
