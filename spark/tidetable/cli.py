"""The command `tidetable`: what can be done to an index, and what can be asked of it.

Exit status: 0 done (also when there was nothing to do), 1 failed but a retry can help,
2 the user's input is wrong. Only what needs Spark imports it: a probe does not wait for a JVM.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from tidetable import __version__
from tidetable.core.errors import TidetableError, UserError
from tidetable.core.failures import failure
from tidetable.output.terminal import Output, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidetable.config import Index
    from tidetable.table.damage import DamagedLog
    from tidetable.table.read import View
    from tidetable.table.report import UpdateReport
    from tidetable.table.restriction import Restriction
    from tidetable.table.state import State


class Commands(TyperGroup):
    """All commands: whatever they raise becomes a sentence and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (TyperException, typer.Exit, typer.Abort):
            raise  # wrong usage, --help: typer's own affair
        except BrokenPipeError:  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt as stop:
            # What was under way knows more than nothing, or says nothing.
            say(str(stop) or "Stopped. What was committed stays, and nothing is half done.")
            raise typer.Exit(130) from None
        except Exception as error:
            if os.environ.get("TIDETABLE_DEBUG") and not isinstance(error, TidetableError):
                raise
            raise typer.Exit(tell(error, as_json=ctx.meta.get(_JSON, False))) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of Rust, which is no Exception
                raise
            raise typer.Exit(tell(error, as_json=ctx.meta.get(_JSON, False))) from None


app = typer.Typer(
    name="tidetable",
    cls=Commands,
    help="Delta tables whose rows expire.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out = Output(highlight=False)
err = Output(stderr=True, highlight=False)

ROWS_SHOWN = 20
_JSON = "tidetable.json"


def _remember_json(ctx: typer.Context, wanted: bool) -> bool:
    ctx.meta[_JSON] = wanted  # errors are told in the same way
    return wanted


IndexName = Annotated[
    str, typer.Argument(metavar="INDEX", help="A name under include/indexes, or a YAML file.")
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", callback=_remember_json, is_eager=True,
        help="One JSON object per line, for programs.",
    ),
]  # fmt: skip
Slot = Annotated[
    int | None, typer.Option("--slot", help="The table as it was after this earlier update.")
]


class Engine(StrEnum):
    """What reads the table."""

    DELTA_RS = "delta-rs"
    SPARK = "spark"


class SchemeName(StrEnum):
    REBUILD = "rebuild"
    NO_REBUILD = "no_rebuild"
    SWEEP = "sweep"
    TIERS = "tiers"


class PlacementName(StrEnum):
    ROUND_ROBIN = "round_robin"
    CHRONOLOGICAL = "chronological"


def load(name: str) -> Index:
    from tidetable.config import find_index, load_index, project_root

    root = project_root()
    return load_index(find_index(name, root), root).given_as(name)


def parse_when(text: str | None, option: str) -> datetime | None:
    from tidetable.config import parse_time

    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


def emit(data: Any) -> None:
    from tidetable.output.show import json_line

    sys.stdout.write(json_line(data) + "\n")
    sys.stdout.flush()


# -- check ---------------------------------------------------------------------------------------


@app.command()
def check(
    index: IndexName,
    yaml_only: Annotated[
        bool, typer.Option("--yaml-only", help="Only the YAML; do not look at source and table.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Is the index in order? YAML, table and the rows waiting in the source. Changes nothing."""
    found = load(index)
    if not yaml_only:
        from tidetable.table.state import resolved

        found = resolved(found)
    answer: dict[str, Any] = {"index": found.name, "scheme": found.scheme_label, "ok": True}
    if not yaml_only:
        answer |= _preview(found, as_json)
    if as_json:
        emit(answer)
    else:
        _show_check(found, answer, with_source=not yaml_only)
    if not answer["ok"]:
        raise UserError(
            f"{answer['quarantined']} of {answer['read']} rows are bad; quality.bad_rows_max "
            f"allows {found.quality.bad_rows_max}: the update would fail. Correct the source, or "
            "raise the limit if such rows are to be expected."
        )


def _preview(index: Index, as_json: bool) -> dict[str, Any]:
    from tidetable.engine.updater import Updater
    from tidetable.quality.volume import of_preview
    from tidetable.table.state import IndexTable

    IndexTable(index).state()  # a table that is not ours need not wait for Spark
    spark = start_spark(as_json)
    with busy("reading the source", as_json):
        ended = index.timeline.ended_by(datetime.now(UTC) - index.source.grace)
        answer = Updater(spark, index).preview(ended)
    answer |= of_preview(index, answer, ended)
    return answer | {"ok": index.quality.bad_rows_max.allows(answer["quarantined"], answer["read"])}


def _show_check(index: Index, answer: dict[str, Any], *, with_source: bool) -> None:
    out.print(f"[bold]{index.name}[/]: {answer['scheme']}, p = {index.period}. The YAML is right.")
    if not with_source:
        return
    where = "no table yet" if answer["slot"] is None else f"table at slot {answer['slot']}"
    out.print(f"{where}; slot {answer['next_slot']} would read {answer['read']:,} rows:")
    out.print(
        f"  {answer['inserted']:,} to insert, {answer['dead_on_arrival']:,} dead on arrival, "
        f"{answer['quarantined']:,} bad"
    )
    for reason, rows in sorted(answer["reasons"].items()):
        out.print(f"    {rows:>6,}  {visible(reason)}", markup=False)
    if answer["new_columns"]:
        names = visible(", ".join(answer["new_columns"]))
        out.print(f"  not in the table, so left out (source.new_columns): {names}", markup=False)
    if answer["misplaced"]:
        out.print(f"  {_misplaced(answer['misplaced'])}", markup=False)
    for warning in answer["warnings"]:
        say(f"warning: {warning}")


def _misplaced(rows: int) -> str:
    return (
        f"{rows:,} rows lie in a folder that their arrival time does not belong to, where no "
        "update looks for them: correct source.path or source.path_timezone, or move them"
    )


# -- plan ----------------------------------------------------------------------------------------


@app.command()
def plan(
    index: IndexName,
    slot: Annotated[
        int | None, typer.Option("--slot", help="A later update than the next.", min=0)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What the next update would do to which cells, and why. Changes nothing, starts no JVM."""
    from tidetable.config import format_time
    from tidetable.output import show
    from tidetable.table.status import outlook

    found = outlook(load(index), slot)
    data = found.as_json()
    if as_json:
        emit(data)
        return
    if found.creates:
        out.print("There is no table yet: the first update makes it and loads slot 0.")
    if not found.plan.touched:
        if not found.creates:
            out.print(f"Update {found.slot}, as of {format_time(found.as_of)}, touches no cell.")
        return
    out.print(f"Update {found.slot}, as of {format_time(found.as_of)}:")
    out.print(show.outlook_table(found))
    if found.expiring is not None:
        out.print(
            f"{found.expiring:,} rows expire. Rewritten: {data['rewritten_rows']:,} rows in "
            f"{data['rewritten_files']} files, {show.human_bytes(data['rewritten_bytes'])}."
        )


# -- update and replay ---------------------------------------------------------------------------


@app.command()
def update(
    index: IndexName,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Every slot that ends by this time.")
    ] = None,
    slots: Annotated[int | None, typer.Option(metavar="N", help="The next N slots.", min=0)] = None,
    fold: Annotated[bool, typer.Option("--fold", help="All of them in one commit.")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply the next slots in order; makes the table when there is none.

    Without --until and --slots: every slot whose end, plus the source's grace, is past (and not
    after the YAML's `end`).
    """
    from tidetable.table.state import IndexTable

    found = load(index)
    if until is not None and slots is not None:
        raise UserError("Give --until or --slots, not both.")
    state = IndexTable(found).state()
    target = _target(found, state, parse_when(until, "--until"), slots)
    if target < 0:
        say(f"Nothing to do: {found.name} starts at {_time_of(found, 0)}.")
        return
    if state is not None and state.slot >= target:
        say(
            f"Nothing to do: {found.name} stands at slot {state.slot} already, as of "
            f"{_time_of(found, state.slot)}."
        )
        return
    spark = start_spark(as_json)
    from tidetable.advisor.choose import choose_scheme
    from tidetable.engine.updater import Updater

    at = -1 if state is None else state.slot
    commits = (1 if fold and target > max(at, 0) else target - max(at, 0)) + (state is None)
    updater = (
        Updater(spark, found, _tell_choice, choose_scheme)
        if found.is_auto
        else Updater(spark, found)
    )
    _run(found, updater.catch_up(target, fold=fold), commits, as_json)


@app.command()
def replay(
    index: IndexName,
    first: Annotated[
        int, typer.Option("--from", metavar="J", help="The first slot to apply again.")
    ],
    from_source: Annotated[
        bool,
        typer.Option(
            "--from-source",
            help="Load that state from the source; a log that cannot be read is set aside.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Restore the state before slot J and apply the slots since then again, from the source."""
    from tidetable.table.damage import DamagedLog
    from tidetable.table.state import IndexTable

    found = load(index)
    state = None
    try:
        state = IndexTable(found).state_to_replay(first, from_source=from_source)
    except DamagedLog as damage:
        if not from_source:
            raise
        _set_aside(found, damage, first, dry_run)
        if dry_run:
            return
    if dry_run:
        say(f"{_replay_in_words(found, state, first, from_source)} Nothing was changed.")
        return
    spark = start_spark(as_json)
    from tidetable.engine.replay import replay as replay_from
    from tidetable.engine.updater import Updater

    commits = 1 if state is None else state.slot - first + 1
    reports = replay_from(Updater(spark, found), first, from_source=from_source)
    _run(found, reports, commits, as_json)


def _set_aside(index: Index, damage: DamagedLog, first: int, dry_run: bool) -> None:
    """Gives a log that cannot be read another name, and says so."""
    from tidetable.table.damage import LogFiles, check_owner, set_aside
    from tidetable.table.place import PROPERTY_INDEX

    if first < 1:
        raise UserError(f"--from {first}: a replay can start from slot 1 on.")
    why = f"_delta_log/{damage.damage.file} {damage.damage.what}"
    loads = f"load {index.name} as of slot {first - 1} from the source into a fresh log"
    if dry_run:
        files = LogFiles(damage.path)
        check_owner(files, index.name, PROPERTY_INDEX)
        say(
            f"Would set the log of {damage.path} aside as {files.next_aside()} ({why}) and {loads}."
            " The next update goes on from there. Nothing was changed."
        )
        return
    aside = set_aside(damage, index.name, PROPERTY_INDEX)
    say(f"The log of {damage.path} is set aside as {aside} ({why}). Now to {loads}.")


@app.command()
def rebuild(
    index: IndexName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be written again, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write all cells again, sorted and merged, in one commit. Rows and slot stay the same."""
    from tidetable.table.state import IndexTable

    found = load(index)
    state = IndexTable(found).required_state()
    if dry_run:
        _show_rebuild(state, as_json)
        return
    spark = start_spark(as_json)
    from tidetable.engine.rebuild import rebuild as rebuild_all
    from tidetable.engine.updater import Updater

    _run(found, (rebuild_all(one) for one in [Updater(spark, found)]), 1, as_json)


def _show_rebuild(state: State, as_json: bool) -> None:
    from tidetable.output import show

    log = state.log
    stored = sum(file.bytes for file in log.files)
    if as_json:
        sizes = {"cells": len(log.cells), "rows": log.rows, "files": len(log.files)}
        emit({"slot": state.slot, **sizes, "bytes": stored})
        return
    say(
        f"Would write {_rows_in_words(log.rows)} again: {show.number_of(len(log.files), 'file')} "
        f"in {show.number_of(len(log.cells), 'cell')}, {show.human_bytes(stored)}. "
        "Nothing was changed."
    )


def _replay_in_words(
    index: Index, state: State | None, first: int, from_source: bool = False
) -> str:
    if state is None:
        return (
            f"Would load {index.name} as of slot {first - 1} from the source: its log no longer "
            "says at which slot it stands. The next update goes on from there."
        )
    version = None if from_source else state.log.version_of(first - 1)
    how = "load it from the source" if version is None else f"put back version {version}"
    return (
        f"Would restore {index.name} to slot {first - 1} ({how}) and apply slots {first} to "
        f"{state.slot} again."
    )


def _target(index: Index, state: State | None, until: datetime | None, slots: int | None) -> int:
    """The slot to go to; below 0 if the index has not started yet and no time was given."""
    if slots is not None:
        target = (0 if state is None else state.slot) + slots
    elif until is not None:
        target = index.timeline.ended_by(until)
        if target < 0:
            raise UserError(
                f"--until: that time lies before {index.name} starts, {_time_of(index, 0)}. "
                "Give that time or a later one."
            )
    else:
        # The only place that asks the clock, and only if the user gave no time.
        target = index.timeline.ended_by(datetime.now(UTC) - index.source.grace)
    last = None if index.end is None else index.timeline.ended_by(index.end)
    if last is None or target <= last:
        return target
    if slots is not None or until is not None:
        say(f"{index.name} ends with slot {last}, {_time_of(index, last)}: no further than that.")
    return last


def _time_of(index: Index, slot: int) -> str:
    from tidetable.config import format_time

    return format_time(index.timeline.end_of(slot))


def _run(index: Index, reports: Iterator[UpdateReport], commits: int, as_json: bool) -> None:
    """Shows each commit when it is made, whatever becomes of those that follow."""
    try:
        if as_json:
            for report in reports:
                emit(report.as_json())
                _tell_late(index, report)
        else:
            _show_run(index, reports, commits)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_where_it_stopped(index)) from None


def _show_run(index: Index, reports: Iterator[UpdateReport], commits: int) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tidetable.output import show

    done = bad = 0
    lines = show.UpdateLines(out)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())  # fmt: skip
    # The bar is drawn where the lines go, if that is a terminal: so they go above it.
    bar = out if out.is_terminal else err
    try:
        with Progress(
            *columns, console=bar, transient=True, disable=not bar.is_terminal
        ) as progress:
            task = progress.add_task(index.name, total=max(1, commits))
            for report in reports:
                lines.show(report)
                done, bad = done + 1, bad + report.quarantined
                progress.update(task, advance=1, description=f"{index.name} slot {report.slot}")
                _tell_late(index, report)
    finally:
        if bad:
            from tidetable.table.place import quarantine_path

            told = "1 bad row is" if bad == 1 else f"{bad:,} bad rows are"
            say(f"{told} in quarantine: {quarantine_path(index)}")
    if not done:
        say("Nothing to do: another writer has applied these slots already.")


def _where_it_stopped(index: Index) -> str:
    """What an update that was interrupted leaves behind, from the log: nobody else knows it all."""
    from tidetable.table.state import IndexTable

    try:
        state = IndexTable(index).state(trusting=True)
    except Exception:  # no time for the whole story
        return ""
    if state is None:
        stands = f"{index.name} has no rows yet"
    else:
        stands = f"{index.name} stands at slot {state.slot}, as of {_time_of(index, state.slot)}"
    return (
        f"Stopped. {stands}: what was committed stays, and nothing is half done. "
        f"To go on: tidetable update {index.argument}"
    )


def _tell_choice(progress: str) -> None:
    """Of what an update says about itself only what takes long the first time."""
    if progress.startswith(("calibrating", "choosing", "chosen")):
        say(progress)


def _tell_late(index: Index, report: UpdateReport) -> None:
    if report.folders and report.folders["missing"]:
        from tidetable.table.folders import folders_in_words

        say(
            f"slot {report.slot}: of the folders that source.path names for it, "
            f"{folders_in_words(report.folders)}"
        )
    if report.late:
        say(f"slot {report.slot}: {report.late:,} rows arrived after their slot was done")
    if report.misplaced:
        say(f"slot {report.slot}: {_misplaced(report.misplaced)}")
    if report.missing:
        say(
            f"slot {report.slot}: the source holds {report.missing:,} rows fewer for past slots "
            f"than were read then; if that is intended: tidetable replay {index.argument} --from "
            "J, J being the first of these slots"
        )


# -- reads ---------------------------------------------------------------------------------------

InsertedFrom = Annotated[
    str | None, typer.Option("--inserted-from", metavar="T", help="Inserted at T or later.")
]
InsertedTo = Annotated[
    str | None, typer.Option("--inserted-to", metavar="T", help="Inserted at T or earlier.")
]
AliveAt = Annotated[str | None, typer.Option("--alive-at", metavar="T", help="Still alive at T.")]
KeyFrom = Annotated[str | None, typer.Option("--from", metavar="K", help="Keys from K on.")]
KeyTo = Annotated[str | None, typer.Option("--to", metavar="K", help="Keys up to K.")]
EngineOption = Annotated[Engine, typer.Option(help="What reads: delta-rs needs no JVM.")]


@app.command()
def probe(
    index: IndexName,
    keys: Annotated[list[str] | None, typer.Argument(metavar="KEY", help="Keys.")] = None,
    key_from: KeyFrom = None,
    key_to: KeyTo = None,
    inserted_from: InsertedFrom = None,
    inserted_to: InsertedTo = None,
    alive_at: AliveAt = None,
    slot: Slot = None,
    engine: EngineOption = Engine.DELTA_RS,
    as_json: AsJson = False,
) -> None:
    """The live rows of a key, of several keys, or of a range of keys."""
    from tidetable.table.restriction import Restriction, keys_or_range

    wanted = Restriction(
        keys=keys_or_range(keys or [], key_from, key_to),
        key_from=key_from,
        key_to=key_to,
        inserted_from=parse_when(inserted_from, "--inserted-from"),
        inserted_to=parse_when(inserted_to, "--inserted-to"),
        alive_at=parse_when(alive_at, "--alive-at"),
    )
    _read(index, wanted, slot, engine, as_json, count=False, in_order=True)


@app.command()
def scan(
    index: IndexName,
    key_from: KeyFrom = None,
    key_to: KeyTo = None,
    inserted_from: InsertedFrom = None,
    inserted_to: InsertedTo = None,
    alive_at: AliveAt = None,
    slot: Slot = None,
    count: Annotated[bool, typer.Option("--count", help="Only how many rows.")] = False,
    engine: EngineOption = Engine.DELTA_RS,
    as_json: AsJson = False,
) -> None:
    """All live rows, or how many there are."""
    from tidetable.table.restriction import Restriction

    wanted = Restriction(
        key_from=key_from,
        key_to=key_to,
        inserted_from=parse_when(inserted_from, "--inserted-from"),
        inserted_to=parse_when(inserted_to, "--inserted-to"),
        alive_at=parse_when(alive_at, "--alive-at"),
    )
    _read(index, wanted, slot, engine, as_json, count=count, in_order=False)


def _read(
    name: str,
    wanted: Restriction,
    slot: int | None,
    engine: Engine,
    as_json: bool,
    *,
    count: bool,
    in_order: bool,
) -> None:
    from tidetable.config import format_time
    from tidetable.table.read import view

    seen = view(load(name), slot)
    if count:
        total = _count(seen, wanted, engine, as_json)
        if as_json:
            emit({"count": total, "slot": seen.slot, "as_of": format_time(seen.as_of)})
        else:
            number = _rows_in_words(total)
            out.print(f"{number} as of {format_time(seen.as_of)} (slot {seen.slot})")
        return
    rows = _rows(seen, wanted, engine, as_json, in_order)
    if as_json:
        for row in rows:
            emit(row)
        return
    from tidetable.output import show

    # A probe shows all it finds; a scan of a large table must not fill the screen.
    shown = list(rows if in_order else islice(rows, ROWS_SHOWN + 1))
    cut = not in_order and len(shown) > ROWS_SHOWN
    if shown:
        out.print(show.rows_table(seen.columns, shown[:ROWS_SHOWN] if cut else shown))
    number = f"the first {ROWS_SHOWN} rows" if cut else _rows_in_words(len(shown))
    more = "; --json gives all, --count their number" if cut else ""
    out.print(f"{number} as of {format_time(seen.as_of)} (slot {seen.slot}){more}")


def _rows_in_words(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _rows(
    seen: View, wanted: Restriction, engine: Engine, as_json: bool, in_order: bool
) -> Iterator[dict[str, Any]]:
    from tidetable.table import read

    if engine is Engine.SPARK:
        spark = start_spark(as_json)
        from tidetable.engine import reading

        frame = reading.sorted_frame if in_order else reading.frame
        yield from reading.spark_rows(frame(spark, seen, wanted))
    elif in_order:
        yield from read.sorted_rows(seen, wanted)
    else:
        for batch in read.batches(seen, wanted):
            yield from read.rows(batch)


def _count(seen: View, wanted: Restriction, engine: Engine, as_json: bool) -> int:
    from tidetable.table import read

    if engine is Engine.DELTA_RS:
        return read.count(seen, wanted)
    spark = start_spark(as_json)
    from tidetable.engine import reading

    return reading.frame(spark, seen, wanted).count()


@app.command()
def status(index: IndexName, as_json: AsJson = False) -> None:
    """Slot, live rows, files, and how evenly the cells are filled. Starts no JVM."""
    from tidetable.advisor.drift import drift
    from tidetable.output import show
    from tidetable.table.state import IndexTable
    from tidetable.table.status import status as read_status

    described = load(index)
    found = read_status(described)
    parted = drift(found.index, IndexTable(described).required_state())
    if as_json:
        emit(found.as_json() | {"drift": None if parted is None else parted.as_json()})
        return
    out.print(show.status_summary(found))
    if parted is not None and parted.sentences:
        out.print(show.drift_summary(parted))
    if not found.live:
        return
    out.print()
    out.print(show.cells_picture(found.cells))
    out.print(show.cells_legend(found.cells))
    out.print()
    period = found.index.period
    out.print(show.forecast(found.note.live_by_expiration, found.slot, period))


# -- upkeep --------------------------------------------------------------------------------------


@app.command()
def validate(
    index: IndexName,
    due_slot: Annotated[
        int | None,
        typer.Option("--due-slot", metavar="J", help="The slot at which the table should stand."),
    ] = None,
    against_source: Annotated[
        bool,
        typer.Option("--against-source", help="Compare the rows with the source too, by Spark."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Is the table what it should be? Makes the quality report. Starts no JVM by itself."""
    from tidetable.output import show
    from tidetable.quality import reports_home
    from tidetable.quality import validate as check_quality

    found = load(index)
    compared = _compared(found, as_json) if against_source else None
    with busy("checking", as_json):
        from tidetable.config import project_root

        home = reports_home(project_root())
        outcome = check_quality(found, due_slot=due_slot, reports=home, against_source=compared)
    if as_json:
        emit(outcome.as_json())
    else:
        out.print(show.outcome_summary(outcome))
        say(f"The report: {outcome.report}")
    outcome.require(found.argument)


def _compared(index: Index, as_json: bool) -> dict[str, Any]:
    """The table next to its source; for people also how much was compared."""
    from tidetable.table.state import IndexTable

    IndexTable(index).state(trusting=True)  # a table that is not ours need not wait for Spark
    spark = start_spark(as_json)
    from tidetable.engine.against_source import compare_now

    with busy("comparing with the source", as_json):
        found = compare_now(spark, index)
    say(
        f"Compared with the source: {_rows_in_words(found.rows)} of the table, "
        f"{_rows_in_words(found.source_rows)} of slots {found.first} to {found.slot}."
    )
    return found.as_json()


@app.command()
def maintain(
    index: IndexName,
    force: Annotated[bool, typer.Option("--force", help="All of it now, due or not.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is due, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Checkpoints, files that no version needs, old rows of the table of updates. Starts no JVM.

    Only if it is due, which the number of updates since the last time decides.
    """
    from tidetable.output import show
    from tidetable.table.upkeep import maintain as do_maintain
    from tidetable.table.upkeep import outstanding

    found = load(index)
    done = outstanding(found) if dry_run else do_maintain(found, force=force)
    if as_json:
        emit(done)
    else:
        out.print(show.maintenance(done))


@app.command()
def purge(
    index: IndexName,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete them; without it they are only shown.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the files that no kept version needs any longer; with --yes delete them. No JVM."""
    from tidetable.output import show
    from tidetable.table.upkeep import purge as do_purge
    from tidetable.table.upkeep import purgeable

    found = load(index)
    gone = do_purge(found) if yes else purgeable(found)
    if as_json:
        emit({**gone.as_json(), "deleted": yes})
    else:
        out.print(show.purged(gone, deleted=yes))


@app.command()
def simulate(
    scheme: Annotated[SchemeName, typer.Option(help="Which scheme.")],
    period: Annotated[int, typer.Option(metavar="P", help="Slots in the window.", min=1)],
    insertion: Annotated[int | None, typer.Option(metavar="G", help="Parts by insertion.")] = None,
    expiration: Annotated[
        int | None, typer.Option(metavar="E", help="Parts by expiration.")
    ] = None,
    placement: Annotated[PlacementName, typer.Option()] = PlacementName.ROUND_ROBIN,
    groups: Annotated[
        int | None, typer.Option(metavar="E", help="Groups of Sweep or Tiers.")
    ] = None,
    every: Annotated[int, typer.Option(metavar="M", help="Sweep every M-th time.")] = 1,
    deletion_vectors: Annotated[
        bool, typer.Option("--deletion-vectors/--no-deletion-vectors", help="For Sweep.")
    ] = True,
    merge_log: Annotated[
        int, typer.Option(metavar="C", help="Merge Sweep's log every C updates; 0 is never.", min=0)
    ] = 0,
    fan_in: Annotated[
        int | None, typer.Option(metavar="T", help="Runs that Tiers merges at a time.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What a scheme would write and keep, in the model of the papers' Theorem 1.

    Constant rate, lifetimes uniform over 1..P slots: rows written per row inserted, files, and the
    share of stored rows that is dead.
    """
    from tidetable.core.placement import Placement
    from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers
    from tidetable.core.simulate import simulate as run
    from tidetable.output import show

    chosen: Scheme
    if scheme is SchemeName.SWEEP:
        if groups is None:
            raise UserError("sweep needs --groups E.")
        chosen = Sweep(period, groups, every, deletion_vectors, merge_log)
    elif scheme is SchemeName.TIERS:
        if groups is None or fan_in is None:
            raise UserError("tiers needs --groups E and --fan-in T.")
        chosen = Tiers(period, groups, fan_in)
    else:
        if insertion is None or expiration is None:
            raise UserError(f"{scheme.value} needs --insertion G and --expiration E.")
        kind = Rebuild if scheme is SchemeName.REBUILD else NoRebuild
        chosen = kind(period, insertion, expiration, Placement(placement.value))
    found = run(chosen)
    if as_json:
        emit(
            {
                "scheme": chosen.label,
                "period": period,
                "written_avg": round(found.written_avg, 4),
                "written_max": round(found.written_max, 4),
                "files_avg": round(found.files_avg, 4),
                "files_max": found.files_max,
                "dead_avg": round(found.dead_avg, 4),
            }
        )
        return
    out.print(show.simulation_table(f"{chosen.label}, p = {period}", found))


# -- advise --------------------------------------------------------------------------------------


@app.command()
def advise(
    index: IndexName,
    probes_per_update: Annotated[
        float | None, typer.Option(metavar="N", help="Keys looked up between two updates.", min=0)
    ] = None,
    scans_per_update: Annotated[
        float | None, typer.Option(metavar="N", help="Scans between two updates.", min=0)
    ] = None,
    update_seconds_max: Annotated[
        float | None, typer.Option(metavar="S", help="No update may take longer.", min=0)
    ] = None,
    files_max: Annotated[
        int | None, typer.Option(metavar="N", help="No more files in the table.", min=1)
    ] = None,
    purge_within: Annotated[
        str | None,
        typer.Option(metavar="D", help="Bytes of expired rows are gone so soon, such as 36h."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What things cost, from this file, whatever machine."),
    ] = None,
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Measure this machine anew.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Which scheme and settings suit this source, on this machine? Changes nothing."""
    from tidetable.advisor import advise as search
    from tidetable.config import parse_duration
    from tidetable.output import show

    found = load(index)
    limit = None
    if purge_within is not None:
        try:
            limit = parse_duration(purge_within)
        except ValueError as error:
            raise UserError(f"--purge-within: {error}") from None
    if calibration is not None and not recalibrate and not calibration.is_file():
        raise UserError(
            f"--calibration: there is no file {calibration}. Leave the option out, or make the "
            "file with --recalibrate."
        )
    spark = start_spark(as_json)
    from tidetable.advisor.calibrate import calibrated
    from tidetable.advisor.choose import require, wishes_of
    from tidetable.advisor.histogram import read_workload

    asked = {
        "probes_per_update": probes_per_update,
        "scans_per_update": scans_per_update,
        "update_seconds_max": update_seconds_max,
        "files_max": files_max,
        "purge_within": limit,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    wishes = replace(wishes_of(found), **given)  # type: ignore[arg-type]
    with busy("reading the source", as_json):
        workload = read_workload(spark, found)
    prices = calibrated(spark, found, say, path=calibration, anew=recalibrate)
    with busy("simulating", as_json):
        advice = search(workload, prices, wishes)
    if as_json:
        for one in advice.best or advice.nearest:
            first = bool(advice.best) and one is advice.best[0]
            emit(one.as_json() | {"why": advice.why if first else None})
    else:
        out.print(show.advice(advice))
    require(advice)


# -- running -------------------------------------------------------------------------------------


def start_spark(as_json: bool) -> SparkSession:
    from tidetable.config import project_root
    from tidetable.engine.session import spark_session

    with busy("starting Spark", as_json):
        return spark_session(project_root())


@contextmanager
def busy(what: str, quiet: bool) -> Iterator[None]:
    if quiet or not err.is_terminal:
        yield
        return
    with err.status(what):
        yield


def say(sentence: str) -> None:
    """To people, on stderr: stdout is for the answer."""
    err.print(visible(sentence, lines=True), markup=False, soft_wrap=True)


def tell(error: BaseException, *, as_json: bool) -> int:
    """Says on stderr what went wrong; the exit status."""
    expected = isinstance(error, TidetableError)
    if isinstance(error, TidetableError):
        text, retry_can_help = str(error), error.retry_can_help
    else:
        found = failure(error)
        text, retry_can_help = found.text, found.retry_can_help
    if as_json:
        from tidetable.output.show import json_line

        sys.stderr.write(json_line({"error": text, "retry_can_help": retry_can_help}) + "\n")
    else:
        mark = "failed" if retry_can_help and not expected else "error"
        err.print(f"[bold red]{mark}:[/] ", end="")
        say(text)
        if not expected:
            say(("A retry may help. " if retry_can_help else "") + _DEBUG_SHOWS)
    return 1 if retry_can_help else 2


_DEBUG_SHOWS = "TIDETABLE_DEBUG=1 shows the whole error."


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"tidetable {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Delta tables whose rows expire."""


def main() -> None:
    """The entry point."""
    if not os.environ.get("TIDETABLE_DEBUG"):
        # Libraries log what they raise as well (Py4J a whole stack for Ctrl-C); we say it once.
        logging.getLogger().addHandler(logging.NullHandler())
    app()


if __name__ == "__main__":
    main()
