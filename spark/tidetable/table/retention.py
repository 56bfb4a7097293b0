"""What the YAML asks of any writer, as properties of the table: how long old versions and the log
are kept, and which columns have statistics. A changed YAML is followed by the next update."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta

from tidetable.config import Index
from tidetable.table.actions import contents
from tidetable.table.append import NotTheNewest
from tidetable.table.commits import commit
from tidetable.table.log import Log, open_log
from tidetable.table.statistics import kinds_of, statistics_property

_LOG_RETENTION_MIN = timedelta(days=2)


def follow_yaml(index: Index, seen: Log) -> bool:
    """Gives the table the properties that the YAML asks for, if the log last seen has others;
    whether it had.

    Statistics are those of files that are written from then on.
    """
    wanted = {**retention(index), **statistics_property(index, kinds_of(seen))}
    if all(seen.properties.get(name) == value for name, value in wanted.items()):
        return False
    log = open_log(index.table)
    if log is None:
        return True
    metadata = contents(log, ()).metadata
    changed = {**metadata, "configuration": {**metadata["configuration"], **wanted}}
    parameters = {"properties": json.dumps(wanted)}
    action = {"metaData": changed}
    with suppress(NotTheNewest):  # the next update does it
        commit(log, "SET TBLPROPERTIES", [action], metadata=changed, parameters=parameters)
    return True


def retention(index: Index) -> dict[str, str]:
    """The properties of Delta that say how long old versions and the log are kept."""
    # Notes are part of the log: kept longer than versions, since they cost next to nothing.
    # A day longer: commits tell when files were removed until these are deleted (garbage.py).
    log_keep = _interval(max(index.keep_versions_for + timedelta(days=1), _LOG_RETENTION_MIN))
    return {
        "delta.deletedFileRetentionDuration": _interval(index.keep_versions_for),
        "delta.logRetentionDuration": log_keep,
        "delta.setTransactionRetentionDuration": log_keep,
    }


def _interval(duration: timedelta) -> str:
    return f"interval {max(1, int(duration.total_seconds()))} seconds"
