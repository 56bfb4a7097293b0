"""One more version of a table's log, made by whoever comes first.

Every commit of ours is made here, on top of the very version that it was planned on or not at all:
that is the fence. Spark's own commit looks whether the version is there and then renames, which is
atomic inside one JVM only, and on an object store not even that.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidetable import __version__
from tidetable.core.errors import UserError
from tidetable.table.storage import is_on_file_system, reader_uri

if TYPE_CHECKING:
    from tidetable.table.log import Log

ENGINE = f"Tidetable/{__version__}"
_IN_COMMIT_TIME = "delta.enableInCommitTimestamps"


class NotTheNewest(Exception):
    """The table has moved on since the version that the commit was to follow."""


def append_version(path: str, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
    """Makes this version of the table; NotTheNewest if somebody else has made it."""
    data = as_text(actions)
    name = f"{version:020d}.json"
    if is_on_file_system(path):
        _linked(Path(reader_uri(path)) / "_delta_log", name, data)
    else:
        _put(reader_uri(path), f"_delta_log/{name}", data)


def as_text(actions: Iterable[Mapping[str, Any]]) -> bytes:
    """A version as it is stored: an action in each line."""
    lines = (json.dumps(action, separators=(",", ":"), ensure_ascii=False) for action in actions)
    return "".join(f"{line}\n" for line in lines).encode()


def commit_info(
    operation: str,
    read_version: int,
    *,
    metadata: Mapping[str, Any],
    parameters: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    after_ms: int = 0,
) -> dict[str, Any]:
    """The action that says who committed what; first of its version.

    `metadata` is the table's; `after_ms` the time of the version before, where the table asks for
    times that only grow.
    """
    now = int(time.time() * 1000)
    grows = keeps_commit_times(metadata.get("configuration") or {})
    return {
        "commitInfo": {
            **({"inCommitTimestamp": max(now, after_ms + 1)} if grows else {}),
            "timestamp": now,
            "operation": operation,
            "operationParameters": dict(parameters or {}),
            "readVersion": read_version,
            "isolationLevel": "Serializable",
            "isBlindAppend": False,
            "engineInfo": ENGINE,
            **({} if user_metadata is None else {"userMetadata": user_metadata}),
        }
    }


def keeps_commit_times(properties: Mapping[str, str]) -> bool:
    """Whether the table asks for times of commits that only grow."""
    return properties.get(_IN_COMMIT_TIME) == "true"


def transaction(fence: str, version: int = 1) -> dict[str, Any]:
    """The action that uses up a fence."""
    now = int(time.time() * 1000)
    return {"txn": {"appId": fence, "version": version, "lastUpdated": now}}


def last_commit_time(log: Log) -> int:
    """When the log's version was made, if the table asks for times that only grow; else 0."""
    return commit_time(log.actions(log.version)) if keeps_commit_times(log.properties) else 0


def commit_time(actions: Sequence[Mapping[str, Any]]) -> int:
    """When a version was made by its own word, in milliseconds; 0 if it does not say."""
    for action in actions:
        if info := action.get("commitInfo"):
            return int(info.get("inCommitTimestamp") or info.get("timestamp") or 0)
    return 0


def _linked(folder: Path, name: str, data: bytes) -> None:
    """A link to a whole file: it is there wholly or not at all, and never replaces another."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = folder / f".{name}.{uuid.uuid4().hex}.tmp"
    try:
        with whole.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # else a power cut may leave a version that says nothing
        os.link(whole, folder / name)
    except FileExistsError as error:
        raise NotTheNewest(f"{folder / name} is there already") from error
    finally:
        whole.unlink(missing_ok=True)


def _put(root: str, name: str, data: bytes) -> None:
    """On an object store the store itself refuses to replace."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

    try:
        store = obstore.store.from_url(root)
    except GenericError as error:
        raise UserError(
            f"{root} cannot be committed to: a table of Tidetable is on a local disk, on S3, Azure "
            f"or Google, where a file is never replaced by accident ({str(error).splitlines()[0]})."
        ) from error
    try:
        obstore.put(store, name, data, mode="create")
    except (AlreadyExistsError, PreconditionError) as error:
        raise NotTheNewest(f"{root}/{name} is there already") from error
