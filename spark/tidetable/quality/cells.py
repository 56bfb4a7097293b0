"""The figures of each cell, from the statistics of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.core.places import Places
from tidetable.core.schemes import Scheme
from tidetable.quality.files import File
from tidetable.quality.predict import files_allowed
from tidetable.table.note import Note

_ROUNDED = timedelta(milliseconds=1)
"""Statistics of times are cut to milliseconds; some writers cut down, some up."""


@dataclass
class CellFigures:
    """One cell: a row of the frame."""

    cell: str
    g: int | None
    e: int | None
    rows: int = 0
    files: int = 0
    bytes: int = 0
    first_insertion: int | None = None
    last_insertion: int | None = None
    first_expiration: int | None = None
    last_expiration: int | None = None
    no_statistics: int = 0
    """Files without statistics."""

    no_key: int | None = 0
    no_time: int | None = 0
    no_slot: int | None = 0
    misplaced: int = 0
    """Files that are known to hold a row of another cell."""

    mistimed: int = 0
    """Files whose expiration slots are not those of their expiration times."""

    proven: int = 0
    """Rows of which the statistics prove that they are where they belong."""

    open: int = 0
    """Rows of which they do not tell whether they have expired, because of deletion vectors."""

    files_allowed: int | None = None
    group_rows: int | None = None
    """Rows in all cells of the same expiration part ..."""

    group_noted: int | None = None
    """... and what the note says must be there."""


def cells_of(index: Index, note: Note, files: list[File]) -> list[CellFigures]:
    """Those of the scheme in order, then those that should not be there."""
    scheme, slot = index.build_scheme(), note.slot
    cells: dict[Cell | None, CellFigures] = {
        cell: CellFigures(str(cell), cell.g, cell.e) for cell in scheme.cells()
    }
    places = Places(scheme, scheme.fold(1, slot) if slot >= 1 else None)
    for file in files:
        if file.cell not in cells:
            cells[file.cell] = _stray(file.cell)
        _add(cells[file.cell], file, index, slot, places)
    for cell in scheme.cells():
        one = cells[cell]
        one.files_allowed = index.quality.files_per_cell_max or files_allowed(
            scheme, cell, one.rows, one.bytes
        )
    _add_groups(cells, scheme, note)
    return list(cells.values())


def _stray(cell: Cell | None) -> CellFigures:
    if cell is None:
        return CellFigures("no cell", None, None)
    return CellFigures(f"{cell} (not of the scheme)", cell.g, cell.e)


def _add(to: CellFigures, file: File, index: Index, slot: int, places: Places) -> None:
    rows = file.rows or 0
    to.files += 1
    to.bytes += file.bytes
    to.rows += rows
    to.no_statistics += not file.has_statistics
    to.no_key = _plus(to.no_key, file.no_key)
    to.no_time = _plus(to.no_time, file.no_time)
    to.no_slot = _plus(to.no_slot, file.no_slot)
    to.misplaced += places.is_wrong(file)
    to.mistimed += _is_mistimed(file, index)
    to.proven += rows if places.is_right(file) else 0
    if file.insertion is not None:
        # A row that a deletion vector hides may be the oldest by the statistics. The newest is no
        # worry: what is too new now was so when it was written.
        if not file.has_deletions or file.insertion[0] > slot - index.period:
            to.first_insertion = _least(to.first_insertion, file.insertion[0])
        to.last_insertion = _greatest(to.last_insertion, file.insertion[1])
    if file.expiration is not None:
        if not file.has_deletions or file.expiration[0] > slot:
            to.first_expiration = _least(to.first_expiration, file.expiration[0])
        else:
            to.open += rows
        to.last_expiration = _greatest(to.last_expiration, file.expiration[1])


def _is_mistimed(file: File, index: Index) -> bool:
    """Whether the first or the last expiration slot is not that of the first or last time."""
    if file.expiration is None or file.expires_at is None:
        return False
    slot_of = index.timeline.slot_of
    return not all(
        slot_of(time - _ROUNDED) <= slot <= slot_of(time + _ROUNDED)
        for slot, time in zip(file.expiration, file.expires_at, strict=True)
    )


def _add_groups(cells: Mapping[Cell | None, CellFigures], scheme: Scheme, note: Note) -> None:
    """The rows of each expiration part, as the files have them and as the note has them."""
    own = scheme.cells()
    if any(cells[cell].rows for cell in own if cell.is_log):
        return  # nobody knows to which group the rows in a log belong
    stored: dict[int, int] = {}
    for cell in own:
        stored[cell.e] = stored.get(cell.e, 0) + cells[cell].rows
    noted: dict[int, int] = {}
    for slot, rows in note.live_by_expiration.items():
        part = scheme.initial_cell(note.slot, slot).e
        noted[part] = noted.get(part, 0) + rows
    for cell in own:
        cells[cell].group_rows = stored[cell.e]
        cells[cell].group_noted = noted.get(cell.e, 0)


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _least(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)


def _greatest(one: int | None, other: int) -> int:
    return other if one is None else max(one, other)
