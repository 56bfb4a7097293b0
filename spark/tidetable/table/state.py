"""The Delta table of one index: where it is, whether it is ours, and at which slot it stands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake.exceptions import DeltaError
from pydantic import ValidationError

from tidetable.config import Index
from tidetable.config.scheme import scheme_from
from tidetable.core.errors import Replay, Update, UserError
from tidetable.table.damage import DamagedTable, asides, told_for
from tidetable.table.log import Commit, Log, check_readable, open_log
from tidetable.table.note import Note, NoteKind
from tidetable.table.place import INCOMING, PROPERTY_INDEX, PROPERTY_KIND, PROPERTY_LAYOUT
from tidetable.table.stored import check_not_inside_another
from tidetable.table.tally import disagreement

PROPERTY_CHOSEN = "tidetable.chosen"
"""What the advisor chose by when it made the table: its prediction and what it knew."""

_BEFORE_A_TABLE = frozenset({"_delta_log", INCOMING})
"""What a writer that makes a table, or was killed when it did, has put into the folder so far."""


@dataclass(frozen=True)
class State:
    """Where an index stands: the newest commit that carries our note."""

    log: Log
    version: int
    note: Note

    @property
    def slot(self) -> int:
        return self.note.slot

    @property
    def predicted_s(self) -> float | None:
        """What the advisor said that an average update would take, if it chose the scheme."""
        found = (chosen_of(self.log) or {}).get("predicted", {}).get("update_s")
        return None if found is None else float(found)

    @property
    def fence(self) -> str:
        """Names this state; a commit that starts from it uses it up (see decisions.md)."""
        return f"{self.note.index}@{self.note.slot}#{self.version}"


def resolved(index: Index) -> Index:
    """The index with the scheme that its table was made with, where the YAML says auto.

    The same index if the YAML names a scheme, or as long as there is no table. Called wherever an
    index meets its table; it opens the log only for an index whose scheme is auto.
    """
    if not index.is_auto:
        return index
    with told_for(index.argument):
        log = open_log(index.table)
    if log is None or log.properties.get(PROPERTY_INDEX) != index.name:
        return index
    made = json.loads(log.properties.get(PROPERTY_LAYOUT, "{}"))
    try:
        scheme = scheme_from(made.get("scheme"))
    except ValidationError as error:
        raise UserError(
            f"{index.table} says that it was made with the scheme {json.dumps(made.get('scheme'))},"
            " which this version does not know. Use the version that made it, or give the index a "
            "new `table:`."
        ) from error
    return index.with_scheme(scheme)


def chosen_of(log: Log) -> dict[str, Any] | None:
    """By what the advisor chose when the table was made; None if it did not choose."""
    text = log.properties.get(PROPERTY_CHOSEN)
    found: dict[str, Any] | None = None if text is None else json.loads(text)
    return found


class IndexTable:
    """What the log says about an index's table. Reads only, without a JVM."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.path = index.table

    def log(self, before: Log | None = None) -> Log | None:
        """The log of the table if there is one and it is ours; UserError if the place is taken.

        It need not be read again if all that came after the version `before` can be told from it.
        """
        with told_for(self.index.argument):
            log = None if before is None else before.followed()
            log = log or open_log(self.path)
        if log is None:
            self._check_place_is_free()
            return None
        self.index = resolved(self.index)
        owner = log.properties.get(PROPERTY_INDEX)
        if owner is None:
            raise UserError(
                f"{self.path} is a Delta table that Tidetable did not make. "
                "Choose another place in the YAML (table:); it was not touched."
            )
        if owner != self.index.name:
            raise UserError(
                f"{self.path} belongs to the index {owner!r}, not to {self.index.name!r}. "
                "Choose another place in the YAML (table:), or give the index its old name back."
            )
        kind = log.properties.get(PROPERTY_KIND)
        if kind is not None:
            raise UserError(
                f"{self.path} holds the {kind} of the index {owner!r} and not its rows. "
                "Choose another place in the YAML (table:); it was not touched."
            )
        self._check_layout(log)
        return log

    def state(self, *, trusting: bool = False, before: Log | None = None) -> State | None:
        """Where the index stands; None before its first load. `before`: see `log`.

        Stops with DamagedTable if something else has changed rows since, unless `trusting`
        (a replay, which mends exactly that). None also for the latter if the notes are gone.
        """
        log = self.log(before)
        if log is None:
            return None
        later: list[Commit] = []
        with told_for(self.index.argument):
            for commit in log.commits():
                if commit.note is not None:
                    state = State(log, commit.version, commit.note)
                    if not trusting:
                        self._check_undamaged(state, later)
                    return state
                later.append(commit)
        if log.files and not trusting:
            raise DamagedTable(
                f"The log of {self.path} no longer says at which slot the table stands.",
                remedy=Replay(self.index.argument, None),
            )
        return None

    def required_state(self) -> State:
        state = self.state()
        if state is None:
            raise UserError(
                f"The index {self.index.name!r} has no table yet at {self.path}.",
                remedy=Update(self.index.argument),
                code="no_table",
            )
        return state

    def state_to_replay(self, first: int, *, from_source: bool = False) -> State | None:
        """Where a replay from slot `first` would start out; UserError if it cannot.

        None if the table is there but its notes are gone: then only the source can tell. None also,
        with `from_source`, if its log was set aside or a fresh one has only been begun.
        """
        lacks_log = from_source and asides(self.path) and open_log(self.path) is None
        state = None if lacks_log else self.state(trusting=True)
        if state is None:
            log = None if lacks_log else self.log()
            is_begun = from_source and bool(asides(self.path))
            if not is_begun and (log is None or not log.files):
                raise UserError(
                    f"The index {self.index.name!r} has no table yet at {self.path}; there is "
                    "nothing to replay.",
                    remedy=Update(self.index.argument),
                    code="no_table",
                )
            if first < 1:
                raise UserError(
                    f"A replay from slot {first} was asked for.", "It can start from slot 1 on."
                )
            return None
        if state.slot == 0:
            if first == 1 and (from_source or self._is_damaged()):
                return state  # what is put back is the first load itself
            raise UserError(
                f"A replay from slot {first} was asked for, and the table stands at slot 0: there "
                "is no update to replay yet."
            )
        if not 1 <= first <= state.slot:
            raise UserError(
                f"A replay from slot {first} was asked for, and the table stands at slot "
                f"{state.slot}.",
                f"It can start from slot 1 to {state.slot}.",
            )
        return state

    def _is_damaged(self) -> bool:
        try:
            self.state()
        except DamagedTable:
            return True
        return False

    def as_of(self, slot: int) -> datetime:
        return self.index.timeline.end_of(slot)

    def log_at(self, slot: int) -> tuple[Log, Note]:
        """The table as it was after update `slot`, for time travel."""
        state = self.required_state()
        if slot == state.slot:
            return state.log, state.note
        version = state.log.version_of(slot)
        if version is None:
            kept = sorted(note.slot for _, note in state.log.notes())
            raise UserError(
                f"Slot {slot} of {self.index.name!r} cannot be read; the log holds slots "
                f"{kept[0]} to {kept[-1]} (updates that were folded have only their last slot)."
            )
        log = open_log(self.path, version)
        assert log is not None
        commit = log.commit(version)
        assert commit is not None
        assert commit.note is not None
        return log, commit.note

    # -- checks ----------------------------------------------------------------------------------

    def _check_place_is_free(self) -> None:
        check_not_inside_another(self.path)
        local = self.path.removeprefix("file://")
        if "://" in local:
            return
        place = Path(local)
        if place.is_file():
            raise UserError(
                f"{self.path} is a file, not a folder. Choose another place in the YAML (table:)."
            )
        if aside := asides(self.path):
            raise DamagedTable(
                f"The log of {self.path} was set aside as {aside[-1]}, and no fresh one was begun.",
                remedy=Replay(self.index.argument, None, from_source=True),
            )
        if place.is_dir() and any(entry.name not in _BEFORE_A_TABLE for entry in place.iterdir()):
            raise UserError(
                f"{self.path} is a folder that is not empty and holds no table of Tidetable. "
                "Choose another place in the YAML (table:); it was not touched."
            )

    def _check_layout(self, log: Log) -> None:
        made = json.loads(log.properties.get(PROPERTY_LAYOUT, "{}"))
        now = self.index.layout_fingerprint
        changed = sorted(name for name in {*made, *now} if made.get(name) != now.get(name))
        if changed:
            differences = "; ".join(
                f"{name} was {json.dumps(made.get(name))} and is now {json.dumps(now.get(name))}"
                for name in changed
            )
            raise UserError(
                f"The YAML of {self.index.name!r} has changed since its table was made: "
                f"{differences}. Rows lie where the old values put them. Put the old values back, "
                "or give the index a new `table:` and build it again."
            )

    def _check_undamaged(self, state: State, later: list[Commit]) -> None:
        foreign = next((commit for commit in reversed(later) if commit.changes_rows), None)
        are_its_own = not any(commit.names_files for commit in later)
        wrong = disagreement(state.log.files, state.note, are_its_own=are_its_own)
        if foreign is None and wrong is None:
            return
        check_readable(self.path)
        mend = Replay(self.index.argument, mending_slot(state))
        if foreign is not None:
            raise DamagedTable(
                f"Version {foreign.version} of {self.path} ({foreign.operation}) changed rows "
                "and was not made by Tidetable.",
                remedy=mend,
            )
        raise DamagedTable(f"{self.path} holds {wrong}.", remedy=mend)


def mending_slot(state: State) -> int:
    """The latest slot from which a replay mends the table: it goes back to before all damage.

    Damage is a change of rows by others between two commits of ours, or a version that does not
    hold the rows that its note counts.
    """
    chain = list(state.log.notes())
    sound = len(chain)
    for place in range(len(chain) - 1, -1, -1):
        if not _is_sound(state.log, chain, place):
            break
        sound = place
    before = (note.slot for _, note in chain[sound:] if note.slot < state.slot)
    return max(1, next(before, state.slot - 1) + 1)


def _is_sound(log: Log, chain: list[tuple[int, Note]], place: int) -> bool:
    """Whether a commit of the chain followed the one before it, and holds what it says."""
    version, note = chain[place]
    if note.kind in (NoteKind.UPDATE, NoteKind.REBUILD) and place + 1 < len(chain):
        for between in range(chain[place + 1][0] + 1, version):
            commit = log.commit(between)
            if commit is None or (commit.note is None and commit.changes_rows):
                return False
    try:
        then = open_log(log.path, version)
    except DeltaError:
        return True  # too long ago to be looked at; a replay to there loads from the source
    return then is None or disagreement(then.files, note) is None
