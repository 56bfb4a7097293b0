"""Whether the files of a version hold the rows that its note counts, by their statistics alone.

A number of rows is blind where as many come as go. What else a note says of them: how many expire
by which slot, and digests of what each cell holds. No file is opened for it, and the log only once.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from tidetable.core.columns import EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.table.actions import cell_of, live_rows
from tidetable.table.files import CellFiles, DataFile, Files
from tidetable.table.log import Log
from tidetable.table.note import Note

_DIGITS = 12
_UNKNOWN = "-"


def files_after(log: Log, actions: Iterable[Mapping[str, Any]]) -> Files:
    """The files of the version that these actions make of the log's."""
    actions = list(actions)
    removed = [unquote(one["remove"]["path"]) for one in actions if one.get("remove")]
    added = [_file(one["add"], log.key) for one in actions if one.get("add")]
    return log.files.changed(removed, added)


def with_digests(note: Note, files: Files) -> Note:
    """The note of the version that has these files."""
    return replace(note, cells=_rows(files), bounds=".".join(_bounds(files)))


def disagreement(files: Files, note: Note, *, are_its_own: bool = True) -> str | None:
    """What the files hold that the note does not say, to be read after "holds"; None if nothing.

    `are_its_own`: they are those of the note's commit. After it somebody may have merged files
    without changing a row: the cells have as many rows then, and other bounds where rows had been
    hidden by deletion vectors or where long keys are cut off elsewhere.
    """
    rows = files.rows
    said = f"the note of slot {note.slot} says"
    if rows != note.live:
        return f"{rows} rows by its file statistics; {said} {note.live}"
    if (wrong := _wrong_expiration(files, note)) is not None:
        return f"{wrong} by its file statistics; {said} otherwise"
    if note.cells is not None and note.cells != _rows(files):
        return f"{rows} rows, but not in the cells that {said}"
    if are_its_own and note.bounds is not None:
        pairs = zip(note.bounds.split("."), _bounds(files), strict=False)
        if any(then != now and _UNKNOWN not in (then, now) for then, now in pairs):
            return f"{rows} rows, but with other slots or keys than {said}"
    return None


def _wrong_expiration(files: Files, note: Note) -> str | None:
    """By each slot at least as many rows expire as lie in files that go no further, and at most
    as many as lie in files that begin by then. Bounds that are too wide only say less."""
    if sum(note.live_by_expiration.values()) != note.live:
        return None  # a note without a forecast
    noted = Counter(note.live_by_expiration)
    most, least = (Counter(files.rows_by(f"{end}_expiration")) for end in ("min", "max"))
    low, high, told = 0, most.pop(None, 0), 0
    least.pop(None, 0)  # they may expire whenever they like
    for slot in sorted({*noted, *least, *most}):
        low, high, told = low + least[slot], high + most[slot], told + noted[slot]
        if not low <= told <= high:
            found = f"at least {low}" if low > told else f"at most {high}"
            return f"{found} rows that expire by slot {slot}, not {told},"
    return None


def _rows(files: Files) -> str:
    """A digest of how many rows each cell holds."""
    return _digest([[*one.cell, one.rows] for one in files.by_cell if one.rows])


def _bounds(files: Files) -> list[str]:
    """A digest of the bounds in each cell, for insertion slots, expiration slots and keys."""

    def digest(bounds: Callable[[CellFiles], tuple[Any, Any] | None]) -> str:
        found = [[*one.cell, bounds(one)] for one in files.by_cell]
        # Not each reader tells all that the log says: delta-rs leaves out columns that come after
        # some with odd names.
        return _UNKNOWN if any(one[-1] is None for one in found) else _digest(found)

    return [
        digest(lambda cell: cell.insertion),
        digest(lambda cell: cell.expiration),
        digest(lambda cell: cell.key),
    ]


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:_DIGITS]


def _file(added: Mapping[str, Any], key: str | None) -> DataFile:
    """The file that an add action names."""
    said = json.loads(added.get("stats") or "{}")
    lowest, highest = said.get("minValues", {}), said.get("maxValues", {})

    def bounds(column: str | None) -> tuple[Any, Any] | None:
        low, high = lowest.get(column), highest.get(column)
        return None if low is None or high is None else (low, high)

    return DataFile(
        path=unquote(added["path"]),
        cell=cell_of(added),
        rows=live_rows(added),
        bytes=added["size"],
        insertion=bounds(INSERTION_SLOT),
        expiration=bounds(EXPIRATION_SLOT),
        key=bounds(key),
        has_deletions=added.get("deletionVector") is not None,
    )
