"""A purge says in the table's log what it is about to delete, before it deletes.

A replay puts files back that a purge may just be deleting. Whoever commits first decides: the
announcement follows the very version that was looked at, as all commits do. A replay that comes
after it takes what was announced for gone; a purge that comes after a replay looks again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidetable.table.append import transaction
from tidetable.table.commits import commit
from tidetable.table.garbage import named_files
from tidetable.table.log import Log

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def announce(log: Log, index: str, removed_before: datetime) -> None:
    """Commits that files which were removed before that time go now; NotTheNewest if it cannot."""
    mark = transaction(_mark(index), (removed_before - _EPOCH) // timedelta(milliseconds=1))
    commit(log, "VACUUM START", [mark])


def may_be_gone(now: Log, old: Log, index: str) -> bool:
    """Whether a purge may be deleting files that only the old version names."""
    announced = now.table.transaction_version(_mark(index))
    if announced is None:
        return False
    since = _EPOCH + timedelta(milliseconds=announced)
    named = named_files(now)
    wanted = named_files(old).in_use - named.in_use
    return any(named.removed.get(path, _EPOCH) < since for path in wanted)


def _mark(index: str) -> str:
    return f"{index}#purged"
