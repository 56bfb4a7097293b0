"""Quarantined rows that have been kept for long enough: the quarantine keeps no row for ever.

By slots, as everything else: a row of slot j goes once the table has come so far past j. No JVM.

Of two kinds of rows a digest stays, to know them by, and their text goes. A row without an arrival
time is in every batch for as long as the source shows it, and is quarantined once. A row that came
late may live on in the source: until it is dead, whoever compares the table with the source has to
know that it is not missing.
"""

from __future__ import annotations

from math import ceil

from tidetable.config import Index
from tidetable.table.beside import QUARANTINE_PROPERTIES, Kind, open_beside, own_table
from tidetable.table.log import Log, arrow
from tidetable.table.reasons import Reason

DIGEST = "sha256:"
"""How the text of a row begins of which only the digest is left; others are JSON objects."""

FILES_MAX = 100
"""Every update with bad rows leaves a file of its own; so many are merged into one."""


def last_slot_to_forget(index: Index, slot: int) -> int:
    """With the table at `slot`, quarantined rows up to this slot have been kept long enough.

    Not before the recount of their slots, which compares with them.
    """
    kept = ceil(index.keep_quarantined_for / index.update_every)
    return slot - max(kept, index.source.recount_every)


def forget(index: Index, slot: int) -> dict[str, int]:
    """Removes what has been kept for long enough with the table at `slot`; how many rows."""
    done = {"dropped_rows": 0, "digested_rows": 0}
    log = open_beside(index, Kind.QUARANTINE)
    last = last_slot_to_forget(index, slot)
    if log is None or not _holds_rows_up_to(log, last):
        return done
    table = own_table(index, Kind.QUARANTINE, QUARANTINE_PROPERTIES).table
    # It arrived before the slot that found it, and no row lives for longer than the period.
    may_live = f"(reason = '{Reason.LATE.value}' AND slot > {slot - index.period})"
    digested = table.update(
        predicate=f"slot <= {last} AND row NOT LIKE '{DIGEST}%' "
        f"AND (arrived_at IS NULL OR {may_live})",
        updates={"row": f"concat('{DIGEST}', encode(sha256(row), 'hex'))"},
    )
    dropped = table.delete(f"slot <= {last} AND arrived_at IS NOT NULL AND NOT {may_live}")
    return {
        "dropped_rows": dropped.get("num_deleted_rows", 0),
        "digested_rows": digested.get("num_updated_rows", 0),
    }


def merge_files(index: Index, *, above: int = FILES_MAX) -> int:
    """Makes the files of the quarantine few if there are more than so many; how many went."""
    log = open_beside(index, Kind.QUARANTINE)
    if log is None or len(log.table.file_uris()) <= above:
        return 0
    return int(log.table.optimize.compact()["numFilesRemoved"])


def quarantine_files(index: Index) -> int:
    """How many files the quarantine has."""
    log = open_beside(index, Kind.QUARANTINE)
    return 0 if log is None else len(log.table.file_uris())


def _holds_rows_up_to(log: Log, slot: int) -> bool:
    """By the statistics of its files."""
    actions = arrow(log.table.get_add_actions(flatten=True)).read_all()
    if "min.slot" not in actions.column_names:
        return bool(actions.num_rows)
    lows = actions.column("min.slot").to_pylist()
    return any(low is None or low <= slot for low in lows)
