"""What a table and its quarantine must hold after any chain of commits.

The log says which operations were committed, in which order (load, update, restore, rebuild); what
rows each of them had to leave follows from the timestamps of the rows alone (see oracle.py). So a
crash in the middle of anything needs no special case: whatever was committed is followed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.oracle.oracle import Oracle, Row
from tests.workspace import EVERY, SCHEMA, START, Workspace
from tidetable.config import Index
from tidetable.core.columns import EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.table.history import Updates
from tidetable.table.log import open_log

Contents = Counter[tuple[Any, ...]]

NO_ARRIVAL = "no readable arrival time"


def reason(row: Row, longest: timedelta) -> str | None:
    """Why the row must not be taken; None for a good one."""
    if row["arrived_at"] is None:
        return NO_ARRIVAL
    if not row["key"]:
        return "no key"
    if row["expires_at"] < row["inserted_at"]:
        return "expires before it was inserted"
    if row["inserted_at"] > row["arrived_at"]:
        return "inserted after it arrived"
    if row["expires_at"] > row["arrived_at"] + longest:
        return "outlives the longest lifetime"
    return None


@dataclass(frozen=True)
class Page:
    """What the commits up to one slot have taken."""

    taken: tuple[tuple[int, int], ...] = ()
    """(number of the row in the source, insertion slot)."""

    seen: Mapping[int, frozenset[int]] | None = None
    """Slot -> rows that updates have read of it; slots of a load are not in it."""


class Books:
    """Follows the commits of one index, given the rows that its source shows."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.longest = index.longest_lifetime
        self.recount_every = index.source.recount_every
        self.clock = Oracle(START, EVERY, self.longest)
        self.source: list[Row] = []
        self.pages: dict[int, Page] = {}
        """Slot -> what was taken by then, for each slot that a restore can go back to."""

        self.slot: int | None = None
        self.version = -1
        self.quarantine: dict[int, Counter[tuple[int, str]]] = {}
        """Slot -> (row, reason)."""

    # -- following -------------------------------------------------------------------------------

    def show(self, rows: Iterable[Row]) -> None:
        """More rows in the source, from now on."""
        self.source.extend(rows)

    def follow(self) -> list[str]:
        """Takes over what was committed since the last time; the commits in words."""
        log = open_log(self.index.table)
        if log is None:
            return []
        newer = []
        for commit in log.commits():
            if commit.version <= self.version:
                break
            newer.append(commit)
        told = []
        for commit in reversed(newer):
            note = commit.note
            if note is None:
                told.append(f"{commit.version}: {commit.operation}")
                continue
            told.append(f"{commit.version}: {note.kind} {note.previous} -> {note.slot}")
            if note.kind == "load":
                self._load(note.slot)
            elif note.kind == "update":
                assert note.previous == self.slot, f"{told[-1]}, but the table stood at {self.slot}"
                self._update(note.previous + 1, note.slot)
            elif note.kind == "restore":
                self._restore(note.slot)
            else:
                assert (note.kind, note.slot) == ("rebuild", self.slot), told[-1]
        self.version = log.version
        return told

    def _load(self, slot: int) -> None:
        first = slot - self.index.period + 1
        rows = self._arrived(first, slot)
        taken = tuple((row, self._slot_of(row)) for row in rows if not self._reason(row))
        self.pages = {slot: Page(taken, {})}
        if self.slot is None:
            bad = [row for row in rows if self._reason(row)]
            self.quarantine = {slot: self._bad([*bad, *self._without_arrival(slot)])}
        self.slot = slot

    def _update(self, first: int, last: int) -> None:
        page = self.pages[first - 1]
        seen = dict(page.seen or {})
        taken = list(page.taken)
        bad: dict[int, list[int]] = {slot: [] for slot in range(first, last + 1)}
        # Those of an attempt that was not committed make way.
        for slot in bad:
            self.quarantine.pop(slot, None)
        bad[first] += self._without_arrival(first)
        for slot in bad:
            rows = self._arrived(slot, slot)
            seen[slot] = frozenset(rows)
            for row in rows:
                if self._reason(row):
                    bad[slot].append(row)
                else:
                    taken.append((row, slot))
        for row, slot in self._late(page, first, last):
            at = self._slot_of(row)
            seen[at] = seen[at] | {row}
            if self._reason(row):
                bad[slot].append(row)
            else:
                taken.append((row, slot))
        self.quarantine |= {slot: self._bad(rows) for slot, rows in bad.items()}
        self.pages[last] = Page(tuple(taken), seen)
        self.slot = last

    def _restore(self, slot: int) -> None:
        assert slot in self.pages, f"restored to slot {slot}, which no commit has left"
        self.pages = {at: page for at, page in self.pages.items() if at <= slot}
        self.slot = slot

    def _late(self, page: Page, first: int, last: int) -> Iterable[tuple[int, int]]:
        """Rows that a recount finds, and the slot that takes them."""
        every = self.recount_every
        due = -(-first // every) * every if every else last + 1
        if due > last:
            return
        for slot in range(max(1, due - every), first):
            known = (page.seen or {}).get(slot)
            if known is None:
                continue
            for row in self._arrived(slot, slot):
                if row not in known:
                    yield row, due

    # -- rows of the source, by their number -----------------------------------------------------

    def _reason(self, row: int) -> str | None:
        return reason(self.source[row], self.longest)

    def _slot_of(self, row: int) -> int:
        return self.clock.slot_of(self.source[row]["arrived_at"])

    def _arrived(self, first: int, last: int) -> list[int]:
        begin, end = self.clock.edge(first - 1), self.clock.edge(last)
        return [
            number
            for number, row in enumerate(self.source)
            if row["arrived_at"] is not None and begin < row["arrived_at"] <= end
        ]

    def _without_arrival(self, first: int) -> list[int]:
        """Those whose arrival cannot be read, less what earlier slots have in quarantine."""
        known = {row for slot, rows in self.quarantine.items() if slot < first for row, _ in rows}
        return [
            number
            for number, row in enumerate(self.source)
            if row["arrived_at"] is None and number not in known
        ]

    def _bad(self, rows: Iterable[int]) -> Counter[tuple[int, str]]:
        return Counter((row, self._reason(row) or "") for row in rows)

    # -- comparing -------------------------------------------------------------------------------

    def expected(self) -> Contents:
        """Every live row with all its columns and its two slots."""
        assert self.slot is not None
        oracle = Oracle(START, EVERY, self.longest)
        for row, slot in self.pages[self.slot].taken:
            if slot == self._slot_of(row):
                oracle.add([self.source[row]])
            else:
                oracle.take_late([self.source[row]], slot)
        live = oracle.live_at_slot(self.slot)
        return Counter((*values(row), *oracle.slots(row)) for row in live)

    def expected_quarantine(self) -> Counter[tuple[int, str, int]]:
        """(slot, reason, id) of every bad row of the slots that are done."""
        assert self.slot is not None
        found: Counter[tuple[int, str, int]] = Counter()
        for slot, rows in self.quarantine.items():
            if slot <= self.slot:
                for (row, why), number in rows.items():
                    found[slot, why, self.source[row]["id"]] += number
        return found

    def check(self, workspace: Workspace, *, settled: bool = True) -> None:
        """The table, its quarantine and (once things have settled) its table of updates."""
        if self.slot is None:
            return
        assert_same(contents(workspace.stored()), self.expected(), f"rows at slot {self.slot}")
        found = Counter(
            (one["slot"], one["reason"], json.loads(one["row"])["id"])
            for one in workspace.quarantined(self.index)
            if one["slot"] <= self.slot
        )
        assert_same(found, self.expected_quarantine(), f"quarantine at slot {self.slot}")
        if settled:
            self.check_updates()

    def check_updates(self) -> None:
        """A row in the table of updates for each commit of ours, once."""
        log = open_log(self.index.table)
        assert log is not None
        wanted = [
            (commit.version, commit.note.kind, commit.note.slot)
            for commit in log.commits()
            if commit.note is not None
        ]
        found = [(row.version, row.kind, row.slot) for row in Updates(self.index).last(1000)]
        assert found[-len(wanted) :] == wanted[::-1], f"table of updates: {found}, log: {wanted}"
        assert len(set(found)) == len(found), f"table of updates, doubled: {found}"


def assert_same(found: Counter[Any], wanted: Counter[Any], what: str) -> None:
    lacking, too_many = wanted - found, found - wanted
    assert not lacking, f"{what}: lacks {_listed(lacking)}; too many: {_listed(too_many)}"
    assert not too_many, f"{what}: too many: {_listed(too_many)}"


def _listed(rows: Counter[Any]) -> str:
    return f"{sum(rows.values())} {[str(row) for row in list(rows)[:5]]}"


def values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in SCHEMA.names)


def contents(rows: Iterable[Mapping[str, Any]]) -> Contents:
    """Stored rows, each with all of the user's columns and its two slots."""
    return Counter((*values(row), row[INSERTION_SLOT], row[EXPIRATION_SLOT]) for row in rows)
