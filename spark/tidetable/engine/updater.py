"""Updates: from the slot the table stands at to the slot asked for, one commit each or folded."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidetable.config import Index, SchemeConfig
from tidetable.core.cell import Cell
from tidetable.core.columns import INSERTION_SLOT, RAW, REASON
from tidetable.core.errors import Replay, TransientError, UserError
from tidetable.core.plan import Action, Plan
from tidetable.core.schemes import Scheme
from tidetable.engine import parts
from tidetable.engine.arrange import spread
from tidetable.engine.commit import (
    Change,
    LostRace,
    Removal,
    alive_after,
    arrangement_of,
    check_arrived,
    kept_rows,
    laid_out,
    removed_by,
    row_bytes,
    sizes_after,
    with_cells,
    workbench,
    write_commit,
)
from tidetable.engine.create import create_table
from tidetable.engine.late import Stragglers, counted_arrivals, find_stragglers, recount_slot
from tidetable.engine.planned import Planned
from tidetable.engine.quarantine import Quarantine
from tidetable.engine.row_size import size_of
from tidetable.engine.session import cores
from tidetable.engine.source import Source, SourceRows, reading
from tidetable.engine.staging import NO_ARRIVAL, BatchCounts, counted, staged
from tidetable.engine.swap import schema_of
from tidetable.engine.workbench import Workbench
from tidetable.table.beside import check_places
from tidetable.table.damage import DamagedTable
from tidetable.table.folders import folders_of, folders_to_begin_with, none_there
from tidetable.table.history import Updates, touched_cell
from tidetable.table.log import Log, open_log
from tidetable.table.note import Note, NoteKind
from tidetable.table.report import UpdateReport
from tidetable.table.retention import follow_yaml
from tidetable.table.state import (
    IndexTable,
    State,
    resolved,
)
from tidetable.table.steps import Step, reached
from tidetable.table.tally import disagreement

RACES_MAX = 5
"""So often an update starts over because another writer was quicker."""

Progress = Callable[[str], None]


class Choice(Protocol):
    """A scheme for a table that is to be made, chosen by an advisor."""

    @property
    def scheme(self) -> SchemeConfig: ...

    @property
    def about(self) -> Mapping[str, Any]:
        """Why, for people and for the properties of the table."""

    def as_json(self) -> dict[str, Any]: ...


Choose = Callable[[SparkSession, Index, Progress], Choice]


@dataclass(frozen=True)
class Done:
    """A commit of ours: what is told of it, and where the index stands by it."""

    report: UpdateReport
    state: State


_LOGGER = logging.getLogger(__name__)


class Updater:
    """Applies updates to one index. What is right is decided by the Delta commit alone."""

    def __init__(
        self,
        spark: SparkSession,
        index: Index,
        progress: Progress | None = None,
        choose: Choose | None = None,
        choosing: Progress | None = None,
    ) -> None:
        """`choose` chooses the scheme when the table is made, for an index that says auto.

        `progress` is told what is going on; what the choice says goes to `choosing`, if given.
        """
        self.spark = spark
        self._choose = choose
        self._say = progress or (lambda _: None)
        self._say_of_choice = choosing or self._say
        self._places_are_checked = False
        self._adopt(resolved(index))

    def _adopt(self, index: Index) -> None:
        """Works on this index from now on. Only `load_first` may meet one with no scheme yet."""
        self.index = index
        self._scheme = None if index.is_auto else index.build_scheme()
        self.table = IndexTable(index)
        self.source = Source(self.spark, index)
        self.quarantine = Quarantine(self.spark, index)
        self.updates = Updates(index)
        self._folders: dict[str, Any] | None = None  # of the batch that was staged last

    def _follow_choice(self) -> None:
        """Takes on the scheme that the table has been made with since this writer began."""
        if self.index.is_auto:
            self._adopt(self.table.index)

    @property
    def scheme(self) -> Scheme:
        return self.index.build_scheme() if self._scheme is None else self._scheme

    # -- what callers use --------------------------------------------------------------------------

    def state(self, before: Log | None = None) -> State | None:
        """Where the index stands; None before its first load. `before`: see `IndexTable.log`."""
        state = self.table.state(before=before)
        self._follow_choice()
        self.check_places()
        return state

    def required_state(self) -> State:
        """The same; UserError before its first load."""
        state = self.table.required_state()
        self._follow_choice()
        self.check_places()
        return state

    def check_places(self) -> None:
        """UserError, before anything is changed, if a place beside the table is somebody else's."""
        if not self._places_are_checked:
            check_places(self.index)
            self._places_are_checked = True

    def catch_up(self, target: int, *, fold: bool = False) -> Iterator[UpdateReport]:
        """Brings the table to slot `target`, yielding a report after each commit.

        Makes and loads the table when there is none. At that slot or past it: yields nothing.
        """
        state = self.state()
        if state is None:
            report, state = self.load_first()
            if report is not None:
                yield report
        races = 0
        while state.slot < target:
            last = target if fold else state.slot + 1
            done = self._update(state, last)
            if done is not None:
                # Not before: an update that is refused leaves the table wholly as it was.
                changed = follow_yaml(self.index, done.state.log)
                yield self._told(done, state.slot + 1)
                races = 0
                if not changed:
                    # Whoever has come after it makes the next commit start over.
                    state = done.state
                    continue
            else:
                races += 1
                if races > RACES_MAX:
                    raise TransientError(
                        f"Other writers of {self.index.name!r} committed first, {races} times in a "
                        "row. Nothing was lost.",
                        remedy="Run it again, with one writer at a time.",
                        code="lost_race",
                    )
            state = self._state_after_commit()

    def load_first(self) -> tuple[UpdateReport | None, State]:
        """Makes the table and loads what arrived before `start` and lives past it (slot 0)."""
        known = self._schema()
        rows = self._staged(1 - self.index.period, 0, known)
        fence = f"{self.index.name}@new"
        done = self._load(rows, 0, fence=fence, quarantine=True, create=known is None)
        if done is None:
            return None, self._state_after_commit()
        return self._told(done, 0), done.state

    def reload(self, slot: int, state: State | None) -> UpdateReport | None:
        """Replaces the whole table by the state of `slot` as the source tells it.

        None, with the table as it was, if another writer was first. A table whose log was set
        aside is made again.
        """
        if state is None and open_log(self.index.table) is None:
            rows = self._staged(slot - self.index.period + 1, slot, None)
            fence = f"{self.index.name}@new"
            done = self._load(rows, slot, fence=fence, quarantine=False, create=True)
            return None if done is None else self._told(done, slot)
        log = self._required_log() if state is None else state.log
        rows = self._staged(slot - self.index.period + 1, slot, schema_of(log))
        # It starts from a state as an update does: of the two only one can come after it.
        fence = f"{self.index.name}@reload#{log.version}" if state is None else state.fence
        done = self._load(rows, slot, fence=fence, quarantine=False, base=log)
        return None if done is None else self._told(done, slot)

    def rewrite(self, state: State, plan: Plan, note: Note) -> UpdateReport | None:
        """Writes stored rows again as the plan says and takes no new ones; None if not the first.

        All rows pass through here, so they are checked as well if rows are checked at all.
        """
        began = time.monotonic()
        self.source.begin()  # and reads nothing of it
        self._folders = None
        after = self._commit(state, plan, None, note, BatchCounts())
        if after is None:
            return None
        done = self._verified(after, state.log, plan, 0, began, Stragglers())
        return self._told(done, note.slot, always=True)

    def record(self, *reports: UpdateReport, seen: Log | None = None) -> None:
        """Adds the rows that the table of updates lacks; if that fails, no update fails for it.

        `seen` is the log as the last of `reports` left it.
        """
        try:
            self.updates.record(reports, seen)
            reached(Step.RECORDED)
        except Exception as error:
            _LOGGER.warning(
                "The table of updates %s was not written; the next update makes up for it: %s",
                self.updates.path, error,
            )  # fmt: skip

    def preview(self, ended: int | None = None) -> dict[str, Any]:
        """What the next batch holds, without changing anything. `ended` is the last slot so far."""
        state = self.state()
        slot = None if state is None else state.slot
        first = 1 - self.index.period if slot is None else slot + 1
        last = 0 if slot is None else slot + 1
        known = self._schema()
        rows = self._rows(first, last, known)
        counts = counted(staged(self.index, rows, first, last), earliest=last)
        _, misplaced = counted_arrivals(self.index, rows, first, last)
        folders = self._folders
        if slot is None and ended is not None:
            begin = folders_to_begin_with(self.index, ended)
            folders = none_there(begin) if begin and not self.source.has_any(begin) else None
        return {
            "slot": slot,
            "next_slot": last,
            "read": counts.read,
            "inserted": counts.inserted,
            "dead_on_arrival": counts.dead_on_arrival,
            "quarantined": counts.quarantined,
            "reasons": counts.reasons,
            "new_columns": sorted(rows.new),
            "columns_unasked": rows.unasked,
            "misplaced": misplaced,
            "folders": folders,
        }

    # -- one update -----------------------------------------------------------------------------

    def _update(self, state: State, last: int) -> Done | None:
        """Slots state.slot + 1 .. last in one commit; None if another writer was first."""
        began = time.monotonic()
        first = state.slot + 1
        self._say(f"slot {last}: reading the source")
        batch = self._staged(first, last, schema_of(state.log))
        most = self._plan_for_any_batch(state, last)
        due = recount_slot(self.index, first, last)
        if (
            due is None
            and _tells_of_a_batch(state.note)
            and parts.can_write(self.spark, state.log, most)
        ):
            return self._update_in_one_job(state, batch, most, began)
        return self._update_counted_first(state, batch, last, due, began)

    def _update_in_one_job(
        self, state: State, batch: DataFrame, most: Plan, began: float
    ) -> Done | None:
        """The tasks that write the files also count the batch: what comes of the plan, and whether
        it may be committed, is known when they are there."""
        first, last = most.first, most.last
        reached(Step.PLAN_MADE)
        self._say(f"slot {last}: {len(most.touched)} cells")
        run = uuid.uuid4().hex
        expected = self._expected_bytes(state, most)
        with self._written(state, most, batch, expected, state.note.expired_by(last), run) as done:
            batch, counts = self._without_known_unreadable(batch, done.counts, first)
            self._check_bad_rows(counts, last)
            new_rows = self._new_rows_by_cell(counts, most)
            plan = self.scheme.fold(first, last).pruned(
                state.log.cells, new_rows, merges=self.scheme.merges
            )
            done.only(plan.touched)
            note = self._note(state, last, counts, counts.arrivals(), Stragglers(), run)
            if not self._write_quarantine(batch, counts, first, last, state):
                return None
            with workbench(state.log, plan) as bench:
                after = self._committed(state, plan, done, note, new_rows, bench)
        if after is None:
            return None
        stored = sum(new_rows.values())
        return self._verified(after, state.log, plan, stored, began, Stragglers())

    def _update_counted_first(
        self, state: State, staged_rows: DataFrame, last: int, due: int | None, began: float
    ) -> Done | None:
        first = state.slot + 1
        batch = read = self._held(staged_rows)
        late = Stragglers()
        try:
            counts = counted(batch)
            batch, counts = self._without_known_unreadable(batch, counts, first)
            if due is not None:
                late = find_stragglers(self.spark, self.index, self.source, state, first, due)
            arrivals = counts.arrivals()
            counts = counts.plus(late.counts)
            self._check_bad_rows(counts, last)
            if late.frame is not None:
                batch = batch.unionByName(late.frame, allowMissingColumns=True)
            new_rows = self._new_rows_by_cell(counts, self.scheme.fold(first, last))
            plan = self.scheme.fold(first, last).pruned(
                state.log.cells, new_rows, merges=self.scheme.merges
            )
            note = self._note(state, last, counts, arrivals, late, uuid.uuid4().hex)
            reached(Step.PLAN_MADE)
            if not self._write_quarantine(batch, counts, first, last, state):
                return None
            self._say(f"slot {last}: {len(plan.touched)} cells")
            after = self._commit(state, plan, batch, note, counts)
            if after is None:
                return None
            stored = sum(new_rows.values())
            return self._verified(after, state.log, plan, stored, began, late)
        finally:
            read.unpersist()
            if late.frame is not None:
                late.frame.unpersist()

    def _plan_for_any_batch(self, state: State, last: int) -> Plan:
        """The plan as if new rows came into each cell that may get some."""
        plan = self.scheme.fold(state.slot + 1, last)
        anywhere = dict.fromkeys(plan.touched, 1)
        return plan.pruned(state.log.cells, anywhere, merges=self.scheme.merges)

    def _expected_bytes(self, state: State, plan: Plan) -> dict[Cell, float]:
        """What new rows will take in each cell, going by what came before: for the layout only."""
        cells = [cell for cell, touch in plan.touched.items() if touch.takes_new_rows]
        note = state.note
        rows = note.inserted / max(1, note.slot - (note.previous or 0))
        size = (row_bytes(state.log) or 0.0) * rows * (plan.last - state.slot)
        return dict.fromkeys(cells, size / max(1, len(cells)))

    def _written(
        self,
        state: State,
        plan: Plan,
        batch: DataFrame | None,
        new: Mapping[Cell, float],
        expired: int,
        run: str,
    ) -> AbstractContextManager[parts.Written]:
        """The files of the plan, written by tasks; `new` is what new rows take in each cell."""
        log = state.log
        # Of the others only files go, or nothing.
        writes = dict.fromkeys(plan.cells(Action.REWRITE, Action.APPEND), 0.0)
        sizes = sizes_after(log, plan, {**writes, **new}, expired)
        arrangement = arrangement_of(self.spark, self.index, log, plan, sizes)
        rows = None if batch is None else with_cells(batch.drop(RAW), self.scheme, plan)
        return parts.written(self.spark, self.index, log, plan, rows, arrangement, run)

    def _commit(
        self,
        state: State,
        plan: Plan,
        batch: DataFrame | None,
        note: Note,
        counts: BatchCounts,
    ) -> State | None:
        """`counts` is what the batch held when it was counted; without one no row comes."""
        log, expired = state.log, state.note.expired_by(plan.last)
        new_rows = self._new_rows_by_cell(counts, plan)
        batch = batch if new_rows else None  # else it need not be part of the write at all
        with workbench(log, plan) as bench:
            if parts.can_write(self.spark, log, plan):
                with self._written_counted(state, plan, batch, new_rows, note) as done:
                    check_arrived(log, done.counts, counts, plan.last)
                    return self._committed(state, plan, done, note, new_rows, bench)
            frame = kept_rows(self.spark, plan, self.scheme, bench)
            if batch is not None:
                fresh = batch.where(f"{REASON} IS NULL AND {alive_after(plan.last)}")
                placed = with_cells(fresh.drop(REASON, RAW), self.scheme, plan)
                frame = placed if frame is None else placed.unionByName(frame)
            if frame is not None:
                frame = laid_out(self.spark, self.index, frame, log, plan, new_rows, expired)
            return self._committed(state, plan, frame, note, new_rows, bench)

    def _written_counted(
        self,
        state: State,
        plan: Plan,
        batch: DataFrame | None,
        new_rows: Mapping[Cell, int],
        note: Note,
    ) -> AbstractContextManager[parts.Written]:
        """The files of the plan where it is known how many rows come into each cell."""
        per_row = row_bytes(state.log)
        if per_row is None and batch is not None:  # the first rows of a table, as in a load
            rows = with_cells(batch.drop(RAW), self.scheme, plan)
            return self._loaded(state.log, rows, plan.last, sum(new_rows.values()), note.run)
        new = {cell: rows * (per_row or 0.0) for cell, rows in new_rows.items()}
        expired = state.note.expired_by(plan.last)
        return self._written(state, plan, batch, new, expired, note.run)

    def _committed(
        self,
        state: State,
        plan: Plan,
        rows: DataFrame | parts.Written | None,
        note: Note,
        new_rows: dict[Cell, int],
        bench: Workbench,
    ) -> State | None:
        removal = removed_by(plan, self.scheme, state.log)
        planned = Planned.update(self.scheme, plan, state.log, new_rows)
        return self._wrote(Change(state.log, rows, removal, bench, planned), note, state.fence)

    def _wrote(self, change: Change, note: Note, fence: str) -> State | None:
        """The table as the change has left it; None if another writer was first."""
        try:
            with reading(but_not=self.index.table):
                write_commit(self.spark, change, note, fence, self.source.replaced)
        except LostRace:
            return None
        reached(Step.COMMITTED)
        log = self._state_after_commit(change.log).log
        for version, found in log.notes():
            if found.run == note.run:
                # Somebody may have committed after it.
                then = log if version == log.version else open_log(self.index.table, version)
                return None if then is None else State(then, version, found)
        return None

    def _note(
        self,
        state: State,
        last: int,
        counts: BatchCounts,
        arrivals: dict[int, int],
        late: Stragglers,
        run: str,
    ) -> Note:
        before = state.note.live_by_expiration
        expired = state.note.expired_by(last)
        # Inside a fold rows may come and go; one by one they would have been counted twice too.
        passing = counts.inserted - sum(counts.by_expiration(last).values())
        forecast = {slot: rows for slot, rows in before.items() if slot > last}
        for slot, rows in counts.by_expiration(last).items():
            forecast[slot] = forecast.get(slot, 0) + rows
        note = Note(
            index=self.index.name,
            slot=last,
            previous=state.slot,
            run=run,
            read=counts.read,
            inserted=counts.inserted,
            dead_on_arrival=counts.dead_on_arrival,
            quarantined=counts.quarantined,
            expired=expired + passing,
            live=sum(forecast.values()),
            arrivals=arrivals,
            late=dict(late.by_slot),
            live_by_expiration=forecast,
            reasons=counts.reasons,
            # A fold is no average update.
            predicted_s=state.predicted_s if last == state.slot + 1 else None,
        )
        _check_laws(note, state.note.live)
        return note

    # -- a load ---------------------------------------------------------------------------------

    def _load(
        self,
        rows: DataFrame,
        slot: int,
        *,
        fence: str,
        quarantine: bool,
        create: bool = False,
        base: Log | None = None,
    ) -> Done | None:
        """What is alive after `slot` becomes the table; None if another writer was first.

        `base` is the version that it is to follow; without it the newest.
        """
        began = time.monotonic()
        self._say(f"slot {slot}: loading what is alive")
        batch = self._held(rows)
        try:
            counts = counted(batch, earliest=slot)
            self._check_bad_rows(counts, slot)
            if create:
                # Not before: with a table there the YAML could no longer be corrected.
                self._create(_stored_schema(rows))
                reached(Step.TABLE_CREATED)
            forecast = counts.by_expiration(slot)
            note = Note(
                index=self.index.name,
                slot=slot,
                previous=None,
                run=uuid.uuid4().hex,
                kind=NoteKind.LOAD,
                read=counts.read,
                inserted=sum(forecast.values()),
                dead_on_arrival=counts.dead_on_arrival,
                quarantined=counts.quarantined,
                live=sum(forecast.values()),
                live_by_expiration=forecast,
                reasons=counts.reasons,
            )
            _check_laws(note, 0)
            if quarantine:
                # Slots before the first update have no meaning to people: all of it is slot 0's.
                bad = batch.withColumn(INSERTION_SLOT, F.lit(slot).cast("bigint"))
                if not self._write_quarantine(bad, counts, slot, slot, None):
                    return None
            log = self._required_log() if base is None else base
            good = batch.where(f"{REASON} IS NULL AND {alive_after(slot)}")
            frame = with_cells(good.drop(RAW), self.scheme, None)
            with workbench(log, None) as bench, self._rows_of_load(log, frame, note) as rows:
                everything = Removal(everything=bool(log.files))
                if isinstance(rows, parts.Written):
                    check_arrived(log, rows.counts, counts, slot)
                planned = Planned.load(self.scheme, slot)
                change = Change(log, rows, everything, bench, planned)
                after = self._wrote(change, note, fence)
            if after is None:
                return None
            return self._verified(after, log, None, note.live, began, Stragglers())
        finally:
            batch.unpersist()

    def _rows_of_load(
        self, log: Log, rows: DataFrame, note: Note
    ) -> AbstractContextManager[DataFrame | parts.Written | None]:
        """The rows of a load as a change has them: written by tasks, if these can."""
        if not note.live:
            return nullcontext(None)
        if parts.can_load(self.spark, log):
            return self._loaded(log, rows, note.slot, note.live, note.run)
        size = size_of(rows, note.live)
        return nullcontext(spread(rows.drop(REASON), self.index, size, cores(self.spark)))

    def _loaded(
        self, log: Log, rows: DataFrame, last: int, number: int, run: str
    ) -> AbstractContextManager[parts.Written]:
        """The files of so many rows that come into a table without any."""
        size = size_of(rows, number)
        return parts.loaded(self.spark, self.index, log, last, rows, size, run)

    def _create(self, schema: StructType) -> None:
        """Makes the table; if the scheme is auto, with what the advisor chooses."""
        if not self.index.is_auto or self._choose is None:
            create_table(self.spark, self.index, schema)
            return
        chosen = self._choose(self.spark, self.index, self._say_of_choice)
        create_table(self.spark, self.index.with_scheme(chosen.scheme), schema, chosen.as_json())
        # Of two writers that make it at once, one has chosen for both.
        self._adopt(resolved(self.index))
        self._say_of_choice(f"chosen: {self.scheme.label}. {chosen.about['why']}")

    # -- parts of both --------------------------------------------------------------------------

    def _rows(self, first: int, last: int, known: StructType | None) -> SourceRows:
        timeline = self.index.timeline
        self.source.begin()
        rows = self.source.rows(timeline.begin_of(first), timeline.end_of(last), known)
        self._folders = folders_of(self.index, rows.missing, first, last)
        return rows

    def _staged(self, first: int, last: int, known: StructType | None) -> DataFrame:
        return staged(self.index, self._rows(first, last, known), first, last)

    def _held(self, batch: DataFrame) -> DataFrame:
        """The batch, kept while it is counted and then written, if reading it again costs more.

        From a columnar source counting takes a few columns only. Should the rows have changed
        until they are written, the commit is refused.
        """
        return batch if self._is_read_twice() else batch.persist()

    def _is_read_twice(self) -> bool:
        return self.index.source.is_columnar

    def _schema(self) -> StructType | None:
        """The columns of the table; None if there is none yet."""
        log = self.table.log()
        self._follow_choice()
        return None if log is None else schema_of(log)

    def _required_log(self) -> Log:
        log = self.table.log()
        if log is None:
            raise TransientError(
                f"The table {self.index.table} went away while it was being loaded. Run it again."
            )
        return log

    def _without_known_unreadable(
        self, batch: DataFrame, counts: BatchCounts, first: int
    ) -> tuple[DataFrame, BatchCounts]:
        if not any(reason == NO_ARRIVAL for _, reason in counts.bad):
            return batch, counts
        fresh = self.quarantine.without_known(batch, first)
        if fresh is batch:
            return batch, counts
        return fresh, counted(fresh)

    def _check_bad_rows(self, counts: BatchCounts, slot: int) -> None:
        limit = self.index.quality.bad_rows_max
        if limit.allows(counts.quarantined, counts.read):
            return
        reasons = ", ".join(
            f"{reason}: {rows}"
            for reason, rows in sorted(counts.reasons.items(), key=lambda x: -x[1])
        )
        raise UserError(
            f"{counts.quarantined} of the {counts.read} rows for slot {slot} of "
            f"{self.index.name!r} are bad ({reasons}); quality.bad_rows_max allows {limit}. "
            "The table was not changed. Correct the source, or raise the limit if such rows are "
            "to be expected."
        )

    def _write_quarantine(
        self, batch: DataFrame, counts: BatchCounts, first: int, last: int, start: State | None
    ) -> bool:
        """Whether the update may go on; False if the index no longer stands at `start`."""
        if counts.quarantined:
            bad = self.quarantine.rows_of(batch, first)
        elif self.quarantine.holds_slots(first, last):
            # An attempt that did not get to its commit saw bad rows that are no longer there.
            bad = self.quarantine.empty()
        else:
            return True
        written = self.quarantine.write(bad, first, last, lambda: self._still_stands_at(start))
        if written:
            reached(Step.QUARANTINE_WRITTEN)
        return written

    def _still_stands_at(self, start: State | None) -> bool:
        log = open_log(self.index.table)
        newest = None if log is None else next(log.notes(), None)
        return (None if newest is None else newest[0]) == (None if start is None else start.version)

    def _new_rows_by_cell(self, counts: BatchCounts, plan: Plan) -> dict[Cell, int]:
        by_cell: dict[Cell, int] = {}
        for (ins, exp), rows in counts.good.items():
            if exp > max(ins, plan.last):
                cell = self.scheme.cell_of(ins, exp, plan)
                by_cell[cell] = by_cell.get(cell, 0) + rows
        return by_cell

    def _state_after_commit(self, before: Log | None = None) -> State:
        state = self.state(before)
        if state is None:
            raise TransientError(
                f"The table {self.index.table} went away while it was being updated. Run it again."
            )
        return state

    def _told(self, done: Done, first: int, *, always: bool = False) -> UpdateReport:
        """The report with what a check of all rows counted, if one is due, and recorded."""
        report = replace(done.report, folders=self._folders)
        every = self.index.quality.check_rows_every
        if (every and always) or _is_due(every, first, report.slot):
            from tidetable.engine.row_check import row_figures

            self._say(f"slot {report.slot}: checking all rows")
            checked = row_figures(self.spark, self.index, report.slot, done.state.log)
            report = replace(report, checks=checked)
        if _is_due(self.index.quality.against_source_every, max(1, first), report.slot):
            report = replace(report, against_source=self._against_source(report))
        self.record(report, seen=done.state.log)
        return report

    def _against_source(self, report: UpdateReport) -> dict[str, Any]:
        """What a comparison with the source finds; that one cannot be made fails no update."""
        from tidetable.engine.against_source import compare_now, unable

        self._say(f"slot {report.slot}: comparing all rows with the source")
        try:
            return compare_now(self.spark, self.index).as_json()
        except Exception as error:
            _LOGGER.warning("slot %s was not compared with the source: %s", report.slot, error)
            return unable(error)

    def _verified(
        self,
        state: State,
        before: Log,
        plan: Plan | None,
        stored: int,
        began: float,
        late: Stragglers,
    ) -> Done:
        """The commit of `state` with its report, after Delta's own figures have been compared with
        its note."""
        after, note = state.log, state.note
        written = after.files.without(before.files)
        if (wrong := disagreement(after.files, note)) is not None:
            raise DamagedTable(
                f"Version {after.version} of {self.index.table} holds {wrong}. The source may have "
                "changed while it was read.",
                remedy=Replay(self.index.argument, max(1, note.slot)),
            )
        if plan is None:
            touched = [touched_cell(cell, "load", f"loaded as of slot {note.slot}")
                       for cell in sorted(after.cells)]  # fmt: skip
        else:
            touched = [touched_cell(cell, str(touch.action), touch.why)
                       for cell, touch in sorted(plan.touched.items())]  # fmt: skip
        report = UpdateReport(
            slot=note.slot,
            as_of=self.table.as_of(note.slot).isoformat().replace("+00:00", "Z"),
            inserted=note.inserted,
            expired=note.expired,
            dead_on_arrival=note.dead_on_arrival,
            quarantined=note.quarantined,
            live=note.live,
            rewritten_rows=written.rows - stored,
            written_bytes=written.bytes,
            cells=len(touched),
            seconds=round(time.monotonic() - began, 3),
            version=after.version,
            late=sum(late.by_slot.values()),
            missing=sum(late.missing.values()),
            misplaced=late.misplaced,
            reasons=dict(note.reasons),
            touched=touched,
            predicted_s=note.predicted_s,
        )
        return Done(report, state)


def _tells_of_a_batch(note: Note) -> bool:
    """Whether a batch like the one before it may be expected, and the table has rows by which to
    tell its size. Otherwise it is counted before tasks are made for it."""
    return note.kind == NoteKind.UPDATE and note.inserted > 0 and note.live > 0


def _is_due(every: int, first: int, last: int) -> bool:
    """Whether one of the slots first..last is an every-th."""
    return bool(every) and -(-first // every) * every <= last


def _check_laws(note: Note, live_before: int) -> None:
    """The two laws of the books; they fail only if this program is wrong."""
    read = note.inserted + note.dead_on_arrival + note.quarantined
    if note.read != read:
        raise AssertionError(f"rows read {note.read} but accounted for {read}: {note}")
    if live_before + note.inserted != note.live + note.expired:
        raise AssertionError(f"live {live_before} + inserted != live + expired: {note}")


def _stored_schema(staged_rows: DataFrame) -> StructType:
    return StructType([f for f in staged_rows.schema if f.name not in (REASON, RAW)])
