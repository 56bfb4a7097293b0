"""The table of updates: a row for each commit of ours, for the page, the quality report and users.

A row tells what its commit did. Nearly all of it is in the commit itself, in the note and in the
files that came and went; only the time it took and what a check counted are known to the writer
alone. So a row that was not written, because the program died right after its commit, is made up
for by the next one. An app transaction that carries the index's version makes a row come once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    QueryBuilder,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError

from tidetable.config import Index
from tidetable.core.balance import alike, imbalance
from tidetable.core.cell import Cell, CellState
from tidetable.core.errors import TransientError
from tidetable.core.plan import Action, Touch
from tidetable.table.beside import Kind, open_beside, own_table
from tidetable.table.history_row import AS_JSON, SCHEMA, UpdateRow
from tidetable.table.log import Commit, Log, arrow, open_log
from tidetable.table.newest import lowest_of_newest
from tidetable.table.note import Note, NoteKind
from tidetable.table.place import updates_path
from tidetable.table.read import rows as python_rows
from tidetable.table.records import as_table
from tidetable.table.report import UpdateReport
from tidetable.table.state import resolved

ROWS_MAX = 10_000
"""So many rows stay at most; the newest."""

KEPT_FOR = timedelta(days=90)
"""No row stays for longer than this behind the newest."""

FILES_MAX = 100
"""Every record is a file of its own; so many are merged into one."""

HEALED_MAX = 200
"""So many missing rows are made up for at most; each costs a look at an old version."""

RACES_MAX = 10

_PROPERTIES = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Turn:
    """What one commit read: a row without all that says how."""

    slot: int
    kind: str
    read: int
    late: int


class Updates:
    """The table of updates of one index. No JVM."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.path = updates_path(index)

    def record(self, reports: Sequence[UpdateReport] = (), seen: Log | None = None) -> int:
        """Adds a row for each commit of ours up to the version `seen` (without it, the newest)
        that has none yet; how many.

        A commit that one of `reports` tells about gets its figures, the others what the log says.
        """
        told = {report.version: report for report in reports}
        for _ in range(RACES_MAX):
            added = self._recorded(told, seen)
            seen = None
            if added is not None:
                return added
        raise TransientError(
            f"Other writers of {self.path} committed first, {RACES_MAX} times in a row. "
            "The next update adds what is missing."
        )

    def last(self, number: int) -> list[UpdateRow]:
        """The newest rows, oldest first; none if there is no table."""
        log = self._log()
        if log is None or number < 1:
            return []
        low = lowest_of_newest(log.table, "version", number)
        where = None if low is None else f"version >= {low}"
        found = [
            _parsed(row) for batch in arrow(log.table.scan(predicate=where))
            for row in python_rows(batch)
        ]  # fmt: skip
        return sorted(found, key=lambda row: row.version)[-number:]

    def turns(self, number: int) -> list[Turn]:
        """What the newest commits read, oldest first."""
        log = self._log()
        if log is None or number < 1:
            return []
        names = [one.name for one in fields(Turn)]
        newest = f"SELECT {', '.join(names)} FROM t ORDER BY version DESC LIMIT {number}"
        query = QueryBuilder().register("t", log.table)
        found = arrow(query.execute(newest)).read_all()
        columns = [found.column(name).to_pylist() for name in names]
        return [Turn(*row) for row in zip(*columns, strict=True)][::-1]

    @property
    def files(self) -> int:
        """How many files the table has."""
        log = self._log()
        return 0 if log is None else len(log.table.file_uris())

    def tidy(self, *, merge_above: int = FILES_MAX) -> dict[str, int]:
        """Drops rows that are too old or too many, and merges small files; what was done."""
        log = self._log()
        if log is None:
            return {"dropped_rows": 0, "merged_files": 0}
        table = log.table
        dropped = 0
        oldest = _oldest_to_keep(table)
        if oldest is not None:
            dropped = table.delete(f"version < {oldest}").get("num_deleted_rows", 0)
        merged = 0
        if len(table.file_uris()) > merge_above:
            merged = table.optimize.compact()["numFilesRemoved"]
        return {"dropped_rows": dropped, "merged_files": merged}

    # -- marks -----------------------------------------------------------------------------------

    def mark(self, what: str) -> int | None:
        """The slot that `set_mark` last noted for this."""
        log = self._log()
        return None if log is None else log.table.transaction_version(self._mark_id(what))

    def set_mark(self, what: str, slot: int) -> None:
        """Notes a slot, in a commit of its own that adds no row."""
        table = self._table()
        note = CommitProperties(app_transactions=[Transaction(self._mark_id(what), slot)])
        table.create_write_transaction([], "append", SCHEMA, commit_properties=note)

    def _mark_id(self, what: str) -> str:
        return f"{self.index.name}#{what}"

    # -- writing ---------------------------------------------------------------------------------

    def _recorded(self, reports: Mapping[int, UpdateReport], seen: Log | None) -> int | None:
        """How many rows were added; None if another writer was first."""
        if seen is None and self._log() is None and open_log(self.index.table) is None:
            return 0
        table = self._table()
        done = None if seen is None else table.transaction_version(self._writer(seen))
        if seen is None or (done is not None and done >= seen.version):
            # After the table: what another one records meanwhile is never newer than what we see.
            log = open_log(self.index.table)
            if log is None:
                return 0
        else:
            log = seen
        self.index = resolved(self.index)
        writer = self._writer(log)
        done = table.transaction_version(writer)
        if done is not None and done > log.version:
            done = None  # an older copy was put back in its place
        rows = list(self._missing(log, done, reports))
        if not rows:
            return 0
        last = Transaction(writer, max(row.version for row in rows))
        files = len(table.file_uris())
        try:
            write_deltalake(
                table,
                _stored(rows),
                # Rows of a table that is gone make way.
                mode="append" if done is not None or not files else "overwrite",
                commit_properties=CommitProperties(app_transactions=[last]),
            )
        except CommitFailedError:
            return None
        if files > 2 * FILES_MAX:
            # Where nobody runs the maintenance: the cost must not grow with every update.
            self.tidy()
        return len(rows)

    def _writer(self, log: Log) -> str:
        """By which id the rows of this table's commits are written, so that each is there once."""
        # The version counts from 0 again in a table that was made anew: its id tells them apart.
        return f"{self.index.name}#updates#{log.metadata.id}"

    def _log(self) -> Log | None:
        """The table's log; None if there is none, UserError if it is not ours."""
        return open_beside(self.index, Kind.UPDATES)

    def _table(self) -> DeltaTable:
        """The table to be written to; made if need be."""
        return _with_all_columns(own_table(self.index, Kind.UPDATES, _PROPERTIES).table)

    # -- rows ------------------------------------------------------------------------------------

    def _missing(
        self, log: Log, done: int | None, reports: Mapping[int, UpdateReport]
    ) -> Iterator[UpdateRow]:
        """Rows of the commits after version `done`, the newest first."""
        noted: list[tuple[Commit, Note]] = []
        for commit in log.commits():
            if commit.note is None:
                continue
            noted.append((commit, commit.note))
            # One more than needed: what was new in a commit shows against the note before it.
            if len(noted) > HEALED_MAX or commit.version <= (-1 if done is None else done):
                break
        for place, (commit, note) in enumerate(noted[:HEALED_MAX]):
            if done is not None and commit.version <= done:
                return
            before = noted[place + 1][1] if place + 1 < len(noted) else None
            try:
                then = log if commit.version == log.version else _open(log, commit.version)
                yield self._row(then, commit.version, note, before, reports.get(commit.version))
            except (DeltaError, FileNotFoundError):
                return  # the log of that time is cleaned up; so is everything before it

    def _row(
        self, log: Log, version: int, note: Note, before: Note | None, report: UpdateReport | None
    ) -> UpdateRow:
        changes = Changes.of(log, version)
        sizes = {
            cell: log.cells.get(cell, CellState()).rows
            for cell in self.index.build_scheme().cells()
        }
        if report is None:
            touched = changes.touched(self.index, note, log)
            new = (
                0
                if note.kind in (NoteKind.RESTORE, NoteKind.REBUILD)
                else _stored_new(note, before)
            )
            rewritten = 0 if note.kind == NoteKind.RESTORE else max(0, changes.written_rows - new)
            written = 0 if note.kind == NoteKind.RESTORE else changes.written_bytes
        else:
            touched = report.touched
            rewritten, written = report.rewritten_rows, report.written_bytes
        return UpdateRow(
            index=note.index,
            slot=note.slot,
            as_of=self.index.timeline.end_of(note.slot),
            committed_at=changes.committed_at,
            version=version,
            kind=note.kind,
            read=note.read,
            inserted=note.inserted,
            expired=note.expired,
            dead_on_arrival=note.dead_on_arrival,
            quarantined=note.quarantined,
            live=note.live,
            late=sum(note.late.values()),
            missing=0 if report is None else report.missing,
            rewritten_rows=rewritten,
            written_bytes=written,
            files=len(log.files),
            bytes=log.files.bytes,
            cells=len(touched) if report is None else report.cells,
            imbalance=round(imbalance(alike(sizes).values()), 4) if note.live else None,
            seconds=None if report is None else report.seconds,
            reasons=note.reasons,
            touched=touched,
            checks=None if report is None else report.checks,
            predicted_s=note.predicted_s,
            folders=None if report is None else report.folders,
            against_source=None if report is None else report.against_source,
        )


@dataclass(frozen=True)
class Changes:
    """What one commit did to which files."""

    committed_at: datetime
    added: Mapping[str, Mapping[str, Any]]
    removed: Mapping[str, Mapping[str, Any]]

    @staticmethod
    def of(log: Log, version: int) -> Changes:
        actions = log.actions(version)
        info: dict[str, Any] = next(
            (one["commitInfo"] for one in actions if "commitInfo" in one), {}
        )
        since = timedelta(milliseconds=info.get("inCommitTimestamp", info.get("timestamp", 0)))
        return Changes(
            _EPOCH + since,
            {one["add"]["path"]: one["add"] for one in actions if "add" in one},
            {one["remove"]["path"]: one["remove"] for one in actions if "remove" in one},
        )

    @property
    def _written(self) -> list[Mapping[str, Any]]:
        """Without those that only got a deletion vector: these go and come in one commit."""
        return [add for path, add in self.added.items() if path not in self.removed]

    @property
    def written_rows(self) -> int:
        return sum(
            json.loads(add.get("stats") or "{}").get("numRecords", 0) for add in self._written
        )

    @property
    def written_bytes(self) -> int:
        return sum(add["size"] for add in self._written)

    def touched(self, index: Index, note: Note, after: Log) -> list[dict[str, Any]]:
        """The touched cells and what was done to each, as far as the files tell."""
        added = {_cell(add) for add in self._written}
        marked = {_cell(add) for path, add in self.added.items() if path in self.removed}
        gone = {_cell(one) for path, one in self.removed.items() if path not in self.added}
        planned: Mapping[Cell, Touch] = {}
        if note.kind == NoteKind.UPDATE and note.previous is not None:
            planned = index.build_scheme().fold(note.previous + 1, note.slot).touched
        told = []
        for cell in sorted(added | marked | gone):
            plan = planned.get(cell)
            if note.kind in (NoteKind.LOAD, NoteKind.RESTORE):
                action = note.kind
            elif cell not in after.cells:
                moved = plan is not None and plan.action is Action.MOVE
                action = str(Action.MOVE if moved else Action.DROP)
            else:
                loses = cell in marked or cell in gone
                action = str(_action(None if plan is None else plan.action, cell in added, loses))
            told.append(touched_cell(cell, action, note.kind if plan is None else plan.why))
        return told


def touched_cell(cell: Cell, action: str, why: str) -> dict[str, Any]:
    """A touched cell as reports and rows have it."""
    return {"g": cell.g, "e": cell.e, "action": action, "why": why}


def _action(planned: Action | None, takes: bool, loses: bool) -> Action:
    """What was done to a cell that was planned to be touched so, and got or lost files."""
    if planned is Action.APPEND_AND_EXPIRE:
        if not loses:
            return Action.APPEND
        return planned if takes else Action.EXPIRE
    if planned is Action.MOVE and not loses:
        return Action.APPEND
    return Action.REWRITE if planned is None else planned


def _cell(action: Mapping[str, Any]) -> Cell:
    values = action.get("partitionValues") or {}
    return Cell(int(values.get("_g", 0)), int(values.get("_e", 0)))


def _stored_new(note: Note, before: Note | None) -> int:
    """How many of a commit's rows were new: what lives now less what lived before and still does.

    Not `inserted`: in a fold rows may come and go without ever being stored.
    """
    if note.kind == NoteKind.LOAD or before is None:
        return note.live if note.kind == NoteKind.LOAD else note.inserted
    stayed = sum(rows for slot, rows in before.live_by_expiration.items() if slot > note.slot)
    return note.live - stayed


def _with_all_columns(table: DeltaTable) -> DeltaTable:
    """Adds the columns that an older version of this program did not have yet."""
    present = {field.name for field in table.schema().fields}
    missing = [field for field in Schema.from_arrow(SCHEMA).fields if field.name not in present]
    if missing:
        table.alter.add_columns(missing)
    return table


def _open(log: Log, version: int) -> Log:
    found = open_log(log.path, version)
    if found is None:
        raise FileNotFoundError(f"{log.path} at version {version}")
    return found


def _stored(rows: Sequence[UpdateRow]) -> pa.Table:
    return as_table(map(_flat, rows), SCHEMA)


def _flat(row: UpdateRow) -> dict[str, Any]:
    data = row.as_json()
    for name in AS_JSON:
        data[name] = None if data[name] is None else json.dumps(data[name])
    return data


def _parsed(stored: Mapping[str, Any]) -> UpdateRow:
    data = dict(stored)
    for name in AS_JSON:
        # A table that an older version has written has fewer columns.
        data[name] = None if data.get(name) is None else json.loads(data[name])
    return UpdateRow(**data)


def _oldest_to_keep(table: DeltaTable) -> int | None:
    """The lowest version whose row stays; None if all do."""
    query = QueryBuilder().register("t", table)

    def answer(sql: str) -> int | None:
        found = arrow(query.execute(sql)).read_all().column(0).to_pylist()
        return found[0] if found else None

    by_number = answer(f"SELECT version FROM t ORDER BY version DESC LIMIT 1 OFFSET {ROWS_MAX - 1}")
    by_age = answer(
        "SELECT min(version) FROM t WHERE committed_at >= "
        f"(SELECT max(committed_at) FROM t) - INTERVAL '{KEPT_FOR.days} days'"
    )
    oldest = answer("SELECT min(version) FROM t")
    bounds = [bound for bound in (by_number, by_age) if bound is not None]
    if oldest is None or not bounds or max(bounds) <= oldest:
        return None
    return max(bounds)
