"""One plan, one commit: what is written, what is removed, and the fence around it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.core.errors import TransientError
from tidetable.core.file_size import target_file_bytes
from tidetable.core.plan import Action, Plan, Route
from tidetable.core.schemes import Scheme
from tidetable.engine import swap
from tidetable.engine.arrange import Arrangement, arrange, arranged, key_ranges, spread
from tidetable.engine.parts import Written
from tidetable.engine.planned import Planned, read_again
from tidetable.engine.reuse import handed_over
from tidetable.engine.row_size import size_of
from tidetable.engine.session import cores
from tidetable.engine.staging import BatchCounts, expiry_column
from tidetable.engine.workbench import Outcome, Workbench
from tidetable.table.actions import removal_of
from tidetable.table.append import NotTheNewest, transaction
from tidetable.table.commits import commit
from tidetable.table.files import Files
from tidetable.table.log import Log
from tidetable.table.note import Note
from tidetable.table.steps import Step, reached
from tidetable.table.storage import remove_files
from tidetable.table.tally import disagreement, files_after, with_digests


class OtherRows(Exception):
    """What was written is not what the note counts."""


class LostRace(Exception):
    """Another writer committed first; nothing of ours is in the table."""


@dataclass(frozen=True)
class Removal:
    """What leaves the table: whole cells, with their files, and rows of files that stay."""

    cells: frozenset[Cell] = frozenset()
    rows: tuple[str, ...] = ()
    everything: bool = False

    def files(self, log: Log) -> Files:
        """The files of the cells that leave."""
        return log.files if self.everything else log.files.of(self.cells)


@dataclass(frozen=True)
class Change:
    """What one commit does to the version that `log` shows."""

    log: Log
    rows: DataFrame | Written | None
    """To be written, or written already by tasks; None if there are none."""

    removal: Removal
    bench: Workbench
    """Where Spark's Delta works, for tables that need it."""

    planned: Planned | None = None
    """What may be written, as far as it is known."""


def removed_by(plan: Plan, scheme: Scheme, log: Log) -> Removal:
    """What leaves the table by the plan."""
    present = set(log.cells)
    leaving_whole = plan.cells(Action.REWRITE, Action.MOVE, Action.DROP)
    expired = f"{EXPIRATION_SLOT} <= {plan.last}"
    rows = []
    for cell in plan.cells(Action.EXPIRE, Action.APPEND_AND_EXPIRE):
        leaves = expired
        if cell in plan.moves and (group := scheme.group_sql(EXPIRATION_SLOT)):
            # Rows that move out of a log are removed from it as the expired ones are.
            leaves = f"{expired} OR {_is_one_of(group, plan.moves[cell].homes)}"
        if cell in present:
            rows.append(f"({in_cells([cell])} AND ({leaves}))")
    return Removal(frozenset(leaving_whole) & present, tuple(rows))


def workbench(log: Log, plan: Plan | None) -> Workbench:
    """Where Spark's Delta can work on the cells that the plan touches; on all if there is none."""
    return Workbench(log, set(log.cells) if plan is None else set(plan.touched) & set(log.cells))


def kept_rows(
    spark: SparkSession, plan: Plan, scheme: Scheme, bench: Workbench
) -> DataFrame | None:
    """The live rows that have to be written again, in the cells they go to."""
    log = bench.log
    rewritten = read_again(plan, log)
    routes = list(_routes(plan, log))
    if not rewritten and not routes:
        return None

    def alive(cells: list[Cell]) -> DataFrame:
        return _stored(spark, bench, cells).where(alive_after(plan.last))

    frames = [alive(rewritten)] if rewritten else []
    group = scheme.group_sql(EXPIRATION_SLOT)
    frames += [_moved(alive(cells), route, group) for route, cells in routes]
    return reduce(DataFrame.unionByName, frames)


def alive_after(slot: int) -> str:
    """A predicate for the rows that are not expired after `slot`."""
    return f"{EXPIRATION_SLOT} > {handed_over(f'{slot}L', EXPIRATION_SLOT)}"


def _stored(spark: SparkSession, bench: Workbench, cells: list[Cell]) -> DataFrame:
    """The rows of these cells."""
    log = bench.log
    files = log.files.of(cells)
    if swap.is_plain(log) and swap.are_in_cells(files):
        return swap.rows_of(spark, log, files)
    return bench.rows(spark).where(in_cells(cells))


def _routes(plan: Plan, log: Log) -> Iterator[tuple[Route, list[Cell]]]:
    """The routes that a live row may take, each with the cells from which it leads."""
    together: list[tuple[Route, list[Cell]]] = []
    for cell, route in sorted(plan.moves.items()):
        if cell not in log.cells or not log.cells[cell].some_live(plan.last):
            continue
        for known, cells in together:
            if known == route:
                cells.append(cell)
                break
        else:
            together.append((route, [cell]))
    yield from together


def _moved(rows: DataFrame, route: Route, group: str | None) -> DataFrame:
    """The rows that take the route, in the cells they go to."""
    if not route.homes or group is None:
        assert route.rest is not None
        g, e = str(route.rest.g), str(route.rest.e)
    else:
        levels = sorted({home.g for home in route.homes.values()})
        tests = {
            level: _is_one_of(group, [k for k, home in route.homes.items() if home.g == level])
            for level in levels
        }
        g = "CASE " + " ".join(f"WHEN {test} THEN {level}" for level, test in tests.items())
        e = f"CASE WHEN {_is_one_of(group, route.homes)} THEN {group}"
        if route.rest is None:
            rows = rows.where(_is_one_of(group, route.homes))
            g, e = f"{g} END", f"{e} END"
        else:
            g, e = f"{g} ELSE {route.rest.g} END", f"{e} ELSE {route.rest.e} END"
    return _in_cell(rows, g, e)


def with_cells(frame: DataFrame, scheme: Scheme, plan: Plan | None) -> DataFrame:
    """New rows with the cell they go to."""
    g, e = scheme.cell_sql(plan, INSERTION_SLOT, EXPIRATION_SLOT)
    return _in_cell(frame, g, e)


def _in_cell(frame: DataFrame, g: str, e: str) -> DataFrame:
    # One call: Spark analyses the whole plan for each. What is added is 0, but Spark does not know
    # that. What it knows to be the same for all rows it takes out of the sort that follows.
    # The rest is then not the order that a write by cell asks for: it sorts by cell instead, and
    # inside the cells rows would lie as they came.
    nothing = f"pmod({EXPIRATION_SLOT}, 1)"
    return frame.withColumns(
        {CELL_G: F.expr(f"int({g} + {nothing})"), CELL_E: F.expr(f"int({e} + {nothing})")}
    )


def laid_out(
    spark: SparkSession,
    index: Index,
    frame: DataFrame,
    log: Log,
    plan: Plan,
    new: Mapping[Cell, int],
    expired: int,
) -> DataFrame:
    """The rows to write, sorted inside their cells and split where a cell is large.

    `new` counts the new rows by cell and `expired` the stored ones that leave; sizes are guessed
    from what a stored row takes.
    """
    per_row = row_bytes(log)
    if per_row is None:
        return spread(frame, index, size_of(frame, sum(new.values())), cores(spark))
    sizes = sizes_after(log, plan, {cell: rows * per_row for cell, rows in new.items()}, expired)
    kept = kept_bytes(log, plan.last, expired)
    groups = len({cell.e for cell in index.build_scheme().cells() if not cell.is_log})
    for route, cells in _routes(plan, log):
        moved = sum(kept[cell] for cell in cells)
        for home in route.homes.values():
            # Which groups the rows of a log belong to is not known before they are read.
            sizes[home] = sizes.get(home, 0) + moved // groups
        if route.rest is not None:
            staying = moved * (groups - len(route.homes)) // groups
            sizes[route.rest] = sizes.get(route.rest, 0) + staying
    return arranged(
        frame, arrangement_of(spark, index, log, plan, sizes), index.key, expiry_column(index)
    )


def row_bytes(log: Log) -> float | None:
    """What a stored row takes; None if there is none."""
    return log.files.bytes / log.rows if log.rows else None


def sizes_after(log: Log, plan: Plan, new: Mapping[Cell, float], expired: int) -> dict[Cell, int]:
    """What will be written to each cell, in bytes: new rows, and stored ones that stay in it."""
    sizes = {cell: int(size) for cell, size in new.items()}
    kept = kept_bytes(log, plan.last, expired)
    for cell in read_again(plan, log):
        sizes[cell] = sizes.get(cell, 0) + kept[cell]
    return sizes


def arrangement_of(
    spark: SparkSession, index: Index, log: Log, plan: Plan, sizes: Mapping[Cell, int]
) -> Arrangement:
    """Tasks for cells of these sizes, cut by the keys of the files that are replaced."""
    read = {*read_again(plan, log), *plan.cells(Action.MOVE)}
    replaced = log.files.of(read) or log.files
    target = target_file_bytes(index.target_file_size, log.files.bytes)
    return arrange(sizes, target, cores(spark), lambda: key_ranges(log, replaced, index.key))


def kept_bytes(log: Log, last: int, expired: int) -> dict[Cell, int]:
    """What each cell holds beyond slot `last`, the expired rows taken off where they may lie."""
    dying = {cell for cell, state in log.cells.items() if state.some_expire(last)}
    rows = sum(log.cells[cell].rows for cell in dying)
    living = 1 - min(1.0, expired / rows) if rows else 1.0
    return {
        cell: int(state.bytes * (living if cell in dying else 1.0))
        for cell, state in log.cells.items()
    }


def write_commit(
    spark: SparkSession,
    change: Change,
    note: Note,
    fence: str,
    replaced: Callable[[], list[str]] = list,
) -> None:
    """Writes the rows and removes what leaves, in one commit that uses up `fence`.

    LostRace, with the table as it was, if it is not the next one after the version of the change.
    `replaced` names files of the source that are no longer those that were counted: if there are
    any, TransientError, with the table as it was.
    """
    log = change.log
    if log.is_used_up(fence):
        raise LostRace(f"{fence} is used up")
    outcome = _outcome(spark, change)
    reached(Step.FILES_WRITTEN)
    try:
        _check_source(replaced)
        _check_rows(change, outcome.actions, note)
        publish(log, outcome.actions, note, fence)
    except OtherRows as error:
        remove_files(log.path, outcome.files)
        raise _source_was_changed(log, error) from error
    except NotTheNewest as error:
        remove_files(log.path, outcome.files)
        raise LostRace(str(error)) from error


def publish(
    log: Log, actions: list[dict[str, Any]], note: Note, fence: str, operation: str = "WRITE"
) -> None:
    """Makes the version after `log`, with the note in it, and what the files then say of their
    rows; NotTheNewest if there is such a version."""
    commit(
        log,
        operation,
        [transaction(fence), *actions],
        parameters={"mode": "Overwrite", "partitionBy": json.dumps([CELL_G, CELL_E])},
        user_metadata=with_digests(note, files_after(log, actions)).dumps(),
    )


def _outcome(spark: SparkSession, change: Change) -> Outcome:
    """The files that come and those that go, as actions; those that come are written."""
    log, removal = change.log, change.removal
    if _is_files_for_files(change):
        gone = [
            removal_of(
                {
                    "path": file.path,
                    "size": file.bytes,
                    "partitionValues": {CELL_G: str(file.cell.g), CELL_E: str(file.cell.e)},
                },
                _now_ms(),
            )
            for file in removal.files(log)
        ]
        added = change.rows.placed() if isinstance(change.rows, Written) else []
        return Outcome([*added, *gone], [one["add"]["path"] for one in added])
    outcome = _by_spark(spark, change)
    leaving = {file.path for file in removal.files(log)}
    gone = [
        removal_of(added, _now_ms())
        for path, added in change.bench.began_with.files.items()
        if unquote(path) in leaving
    ]
    if len(gone) != len(leaving):
        raise TransientError(
            f"The log of {log.path} names other files than before. Run it again; if it says the "
            "same, the log is damaged."
        )
    return Outcome([*outcome.actions, *gone], outcome.files)


def _by_spark(spark: SparkSession, change: Change) -> Outcome:
    """What Spark's Delta does: rows that come, and rows that leave files which stay."""
    leaving = " OR ".join(change.removal.rows) or None
    if change.rows is None and leaving is None:
        return Outcome()
    assert not isinstance(change.rows, Written)
    rows = change.bench.rows(spark).limit(0) if change.rows is None else change.rows
    return change.bench.written(rows, leaving)


def _is_files_for_files(change: Change) -> bool:
    """Whether all that comes and goes are files that we know."""
    if isinstance(change.rows, Written):
        return True
    return change.rows is None and not change.removal.rows and swap.is_plain(change.log)


def check_arrived(log: Log, arrived: BatchCounts, counted: BatchCounts, last: int) -> None:
    """TransientError unless the tasks have met the rows that were counted, by expiration slot."""
    met, wanted = arrived.by_expiration(last), counted.by_expiration(last)
    for slot in sorted(met.keys() | wanted.keys()):
        if met.get(slot, 0) != wanted.get(slot, 0):
            what = f"{met.get(slot, 0)} new rows that expire in slot {slot}"
            raise _source_was_changed(log, f"{what}, not {wanted.get(slot, 0)}")


def _source_was_changed(log: Log, what: object) -> TransientError:
    return TransientError(
        f"{log.path} would hold {what}: the source was changed while it was read. The table was "
        "left as it was. Run it again once nothing writes to the source's past."
    )


def _check_source(replaced: Callable[[], list[str]]) -> None:
    """OtherRows if a file of the source is no longer what it was when it was counted."""
    if files := replaced():
        raise OtherRows(f"rows of {files[0]}, which is no longer the file that was counted")


def _check_rows(change: Change, actions: list[dict[str, Any]], note: Note) -> None:
    """OtherRows if the table would not hold the rows that the note counts, where they belong."""
    after = files_after(change.log, actions)
    wrong = disagreement(after, note, are_its_own=False)
    if wrong is None and change.planned is not None:
        wrong = change.planned.misfit(after.without(change.log.files))
    if wrong is not None:
        raise OtherRows(wrong)


def _now_ms() -> int:
    return int(time.time() * 1000)


def in_cells(cells: list[Cell]) -> str:
    """A predicate on partition columns only, so that no file is read to evaluate it."""
    by_g: dict[int, list[int]] = {}
    for cell in cells:
        by_g.setdefault(cell.g, []).append(cell.e)
    tests = [
        f"({CELL_G} = {g} AND {CELL_E} IN ({', '.join(map(str, es))}))"
        for g, es in sorted(by_g.items())
    ]
    return "(" + " OR ".join(tests) + ")"


def _is_one_of(expression: str, groups: Iterable[int]) -> str:
    return f"{expression} IN ({', '.join(map(str, sorted(groups)))})"
