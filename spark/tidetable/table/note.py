"""The note in every commit of ours: which slot the table is at, and what the update counted.

Everything in it but two digests is known before a row is written, from the batch and from the note
before it, so what is written can be compared with it. The rows that will expire in each coming
slot are part of it: that is how an update knows beforehand how many rows it removes, and what
people see as forecast.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from tidetable.table.packed import packed, unpacked

FORMAT = 1
_MARK = "tidetable"
_PACKED = "forecast"
"""Has a name of its own: an older version of this program, that does not know it, still reads at
which slot the table stands."""

LISTED_SLOTS_MAX = 256
"""A forecast of more slots than these is packed, to a third; a shorter one people can read."""


class NoteKind(StrEnum):
    """What a commit of ours does."""

    UPDATE = "update"
    LOAD = "load"
    """Slot 0, or the state of a slot taken from the source."""

    RESTORE = "restore"
    """The state of an earlier version, put back."""

    REBUILD = "rebuild"
    """The same rows in other files."""

    @staticmethod
    def of(said: str) -> NoteKind | str:
        """As a note says it; what a later version of this program says stays as it is."""
        try:
            return NoteKind(said)
        except ValueError:
            return said


@dataclass(frozen=True)
class Note:
    """What one commit of ours says about itself."""

    index: str
    slot: int
    previous: int | None
    """The slot this commit started from; None for a load."""

    run: str
    """Unique for each attempt: tells a writer whether the commit it finds is its own."""

    kind: NoteKind | str = NoteKind.UPDATE
    """Some other text only in a note of a later version."""

    read: int = 0
    inserted: int = 0
    dead_on_arrival: int = 0
    quarantined: int = 0
    expired: int = 0
    live: int = 0
    arrivals: Mapping[int, int] = field(default_factory=dict)
    """Rows read for each slot, to be recounted later."""

    late: Mapping[int, int] = field(default_factory=dict)
    """Rows taken (or quarantined) late, by the slot in which they arrived."""

    live_by_expiration: Mapping[int, int] = field(default_factory=dict)
    """Live rows by expiration slot; the sum is `live`."""

    reasons: Mapping[str, int] = field(default_factory=dict)
    """Quarantined rows by reason."""

    predicted_s: float | None = None
    """What the advisor, if it chose the scheme, said that an average update would take."""

    cells: str | None = None
    """A digest of how many rows each cell holds; None in the notes of earlier versions."""

    bounds: str | None = None
    """Digests of the bounds of slots and keys in each cell, by file statistics."""

    def expired_by(self, slot: int) -> int:
        """Of the rows alive after this update, those that are not after `slot`."""
        return sum(rows for at, rows in self.live_by_expiration.items() if at <= slot)

    def dumps(self) -> str:
        """As it goes into the commit. Forecast: from slot + 1 on, most of p is occupied."""
        data = asdict(self)
        last = max(self.live_by_expiration, default=self.slot)
        forecast = [self.live_by_expiration.get(slot, 0) for slot in range(self.slot + 1, last + 1)]
        if len(forecast) > LISTED_SLOTS_MAX:
            del data["live_by_expiration"]
            data[_PACKED] = packed(forecast)
        else:
            data["live_by_expiration"] = forecast
        compact = {name: value for name, value in data.items() if value not in (None, {}, [])}
        return json.dumps({_MARK: FORMAT, **compact}, separators=(",", ":"))

    @staticmethod
    def loads(text: str | None) -> Note | None:
        """The note in a commit's userMetadata, or None if it is not ours."""
        if not text or not text.startswith("{"):
            return None
        try:
            data: dict[str, Any] = json.loads(text)
            return Note._parsed(data) if data.pop(_MARK, None) == FORMAT else None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None  # somebody else's, whatever it looks like

    @staticmethod
    def _parsed(data: dict[str, Any]) -> Note:
        slot = int(data["slot"])
        forecast = data.pop("live_by_expiration", [])
        if _PACKED in data:
            forecast = unpacked(data.pop(_PACKED))
        data.setdefault("previous", None)
        for name in ("arrivals", "late"):
            data[name] = {int(key): int(value) for key, value in data.get(name, {}).items()}
        known = {one.name for one in fields(Note)}
        note = Note(
            # What a later version of this program says beyond that is none of our business.
            **{name: value for name, value in data.items() if name in known},
            live_by_expiration={slot + 1 + i: int(rows) for i, rows in enumerate(forecast) if rows},
        )
        _check_types(note)
        return replace(note, kind=NoteKind.of(note.kind))

    def as_restored(self, run: str) -> Note:
        """The same state, put back by a later commit."""
        return self._as_of_a_commit_that_takes_nothing(NoteKind.RESTORE, run)

    def as_rebuilt(self, run: str) -> Note:
        """The same state in other files; the chain of notes goes on through the one before."""
        note = self._as_of_a_commit_that_takes_nothing(NoteKind.REBUILD, run)
        return replace(note, previous=self.slot)

    def _as_of_a_commit_that_takes_nothing(self, kind: NoteKind, run: str) -> Note:
        return replace(
            self, kind=kind, run=run, read=0, inserted=0, dead_on_arrival=0, quarantined=0,
            expired=0, arrivals={}, late={}, reasons={}, predicted_s=None,
            cells=None, bounds=None,  # of other files
        )  # fmt: skip


def _check_types(note: Note) -> None:
    """TypeError if it is not what a commit of ours says."""
    counts = (note.slot, note.read, note.inserted, note.dead_on_arrival, note.quarantined,
              note.expired, note.live, 0 if note.previous is None else note.previous)  # fmt: skip
    texts = (note.index, note.run, note.kind)
    digests = (one for one in (note.cells, note.bounds) if one is not None)
    if not all(type(one) is int for one in counts) or not all(
        isinstance(text, str) for text in (*texts, *digests)
    ):
        raise TypeError(f"not a note: {note}")
