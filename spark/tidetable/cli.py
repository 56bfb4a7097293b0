"""The command `tidetable`: check, plan, update, replay, probe, scan, status, simulate.

Exit status: 0 done (also when there was nothing to do), 1 failed but a retry can help,
2 the user's input is wrong. Only what needs Spark imports it: a probe does not wait for a JVM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tidetable import __version__
from tidetable.core.errors import TidetableError, UserError

if TYPE_CHECKING:
    from tidetable.core.config import Index
    from tidetable.delta.read import View
    from tidetable.delta.report import UpdateReport
    from tidetable.delta.restriction import Restriction

app = typer.Typer(
    name="tidetable",
    help="Delta tables whose rows expire.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

ROWS_SHOWN = 50

IndexName = Annotated[
    str, typer.Argument(metavar="INDEX", help="A name under include/indexes, or a YAML file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per line, for programs.")]
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


class PlacementName(StrEnum):
    ROUND_ROBIN = "round_robin"
    CHRONOLOGICAL = "chronological"


def project_root() -> Path:
    """TIDETABLE_HOME, or the nearest folder upwards with include/indexes, or this repository."""
    if home := os.environ.get("TIDETABLE_HOME"):
        return Path(home).resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "include" / "indexes").is_dir():
            return folder
    return Path(__file__).resolve().parents[2]


def load(name: str) -> Index:
    from tidetable.core.config import find_index, load_index

    root = project_root()
    return load_index(find_index(name, root), root)


def parse_when(text: str | None, option: str) -> datetime | None:
    from tidetable.core.config import parse_time

    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


def emit(data: Any) -> None:
    from tidetable.show import json_line

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
    answer: dict[str, Any] = {"index": found.name, "scheme": found.build_scheme().label, "ok": True}
    if not yaml_only:
        from tidetable.delta.session import spark_session
        from tidetable.delta.update import Updater

        with busy("starting Spark", as_json):
            spark = spark_session(project_root())
        with busy("reading the source", as_json):
            answer |= Updater(spark, found).preview()
    if as_json:
        emit(answer)
        return
    out.print(f"[bold]{found.name}[/]: {answer['scheme']}, p = {found.period}. The YAML is right.")
    if yaml_only:
        return
    where = "no table yet" if answer["slot"] is None else f"table at slot {answer['slot']}"
    out.print(f"{where}; slot {answer['next_slot']} would read {answer['read']:,} rows:")
    out.print(
        f"  {answer['inserted']:,} to insert, {answer['dead_on_arrival']:,} dead on arrival, "
        f"{answer['quarantined']:,} bad"
    )
    for reason, rows in sorted(answer["reasons"].items()):
        out.print(f"    {rows:>6,}  {reason}")


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
    from tidetable import show
    from tidetable.core.config import format_time
    from tidetable.delta.status import outlook

    found = outlook(load(index), slot)
    data = found.as_json()
    if as_json:
        emit(data)
        return
    if found.creates:
        out.print(f"There is no table yet: the first update makes it and loads slot 0 "
                  f"(as of {format_time(found.as_of)}).")  # fmt: skip
        if not found.plan.touched:
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
    found = load(index)
    if until is not None and slots is not None:
        raise UserError("Give --until or --slots, not both.")
    target = _target(found, parse_when(until, "--until"), slots)
    from tidetable.delta.table import IndexTable

    state = IndexTable(found).state()
    if state is not None and state.slot >= target:
        err.print(f"Nothing to do: {found.name} stands at slot {state.slot} already.")
        return
    from tidetable.delta.session import spark_session
    from tidetable.delta.update import Updater

    with busy("starting Spark", as_json):
        spark = spark_session(project_root())
    at = -1 if state is None else state.slot
    commits = (1 if fold else target - max(at, 0)) + (state is None)
    updater = Updater(spark, found)
    _run(found, updater.catch_up(target, fold=fold), commits, as_json)


@app.command()
def replay(
    index: IndexName,
    first: Annotated[
        int, typer.Option("--from", metavar="J", help="The first slot to apply again.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Restore the state before slot J and apply the slots since then again, from the source."""
    from tidetable.delta.table import IndexTable

    found = load(index)
    state = IndexTable(found).state(trusting=True)
    at = 0 if state is None else state.slot
    if dry_run and state is not None:
        version = state.log.version_of(first - 1)
        how = "load it from the source" if version is None else f"put back version {version}"
        err.print(
            f"Would restore {found.name} to slot {first - 1} ({how}) and apply slots {first} to "
            f"{at} again. Nothing was changed."
        )
        return
    from tidetable.delta.replay import replay as replay_from
    from tidetable.delta.session import spark_session
    from tidetable.delta.update import Updater

    with busy("starting Spark", as_json):
        spark = spark_session(project_root())
    _run(found, replay_from(Updater(spark, found), first), at - first + 1, as_json)


def _target(index: Index, until: datetime | None, slots: int | None) -> int:
    timeline = index.timeline
    last = None if index.end is None else _slot_ended_by(index, index.end)
    if slots is not None:
        from tidetable.delta.table import IndexTable

        state = IndexTable(index).state()
        target = (0 if state is None else state.slot) + slots
    else:
        # The only place that asks the clock, and only if the user gave no time.
        moment = until if until is not None else datetime.now(UTC) - index.source.grace
        target = _slot_ended_by(index, moment)
    if target < 0:
        raise UserError(f"That time lies before the index starts, {timeline.start.isoformat()}.")
    return target if last is None else min(target, last)


def _slot_ended_by(index: Index, moment: datetime) -> int:
    slot = index.timeline.slot_of(moment)
    return slot if index.timeline.end_of(slot) <= moment else slot - 1


def _run(index: Index, reports: Iterator[UpdateReport], commits: int, as_json: bool) -> None:
    if as_json:
        for report in reports:
            emit(report.as_json())
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tidetable import show

    done: list[UpdateReport] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())  # fmt: skip
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(index.name, total=max(1, commits))
        for report in reports:
            done.append(report)
            progress.update(task, advance=1, description=f"{index.name} slot {report.slot}")
            if report.late or report.missing:
                _tell_late(report)
    if not done:
        err.print("Nothing to do: another writer has applied these slots already.")
        return
    out.print(show.update_table(done))
    bad = sum(report.quarantined for report in done)
    if bad:
        from tidetable.delta.place import quarantine_path

        err.print(f"{bad:,} bad rows are in quarantine: {quarantine_path(index)}")


def _tell_late(report: UpdateReport) -> None:
    if report.late:
        err.print(f"slot {report.slot}: {report.late:,} rows arrived after their slot was done")
    if report.missing:
        err.print(
            f"[yellow]slot {report.slot}: the source holds {report.missing:,} rows fewer for past "
            "slots than were read then; if that is intended: tidetable replay"
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
    from tidetable.delta.restriction import Restriction, keys_or_range

    wanted = Restriction(
        keys=keys_or_range(keys or [], key_from, key_to),
        key_from=key_from,
        key_to=key_to,
        inserted_from=parse_when(inserted_from, "--inserted-from"),
        inserted_to=parse_when(inserted_to, "--inserted-to"),
        alive_at=parse_when(alive_at, "--alive-at"),
    )
    _read(index, wanted, slot, engine, as_json, count=False, all_rows=True)


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
    from tidetable.delta.restriction import Restriction

    wanted = Restriction(
        key_from=key_from,
        key_to=key_to,
        inserted_from=parse_when(inserted_from, "--inserted-from"),
        inserted_to=parse_when(inserted_to, "--inserted-to"),
        alive_at=parse_when(alive_at, "--alive-at"),
    )
    _read(index, wanted, slot, engine, as_json, count=count, all_rows=False)


def _read(
    name: str,
    wanted: Restriction,
    slot: int | None,
    engine: Engine,
    as_json: bool,
    *,
    count: bool,
    all_rows: bool,
) -> None:
    from tidetable.core.config import format_time
    from tidetable.delta.read import view

    seen = view(load(name), slot)
    if count:
        total = _count(seen, wanted, engine, as_json)
        if as_json:
            emit({"count": total, "slot": seen.slot, "as_of": format_time(seen.as_of)})
        else:
            out.print(f"{total:,} rows as of {format_time(seen.as_of)} (slot {seen.slot})")
        return
    rows = _rows(seen, wanted, engine, as_json)
    if as_json:
        for row in rows:
            emit(row)
        return
    from tidetable import show

    shown = list(rows if all_rows else islice(rows, ROWS_SHOWN + 1))
    cut = not all_rows and len(shown) > ROWS_SHOWN
    if all_rows:
        order = (seen.index.key, "_expiration_slot")
        shown.sort(key=lambda row: tuple(show.plain(row[name]) for name in order[:1]))
    if shown:
        out.print(show.rows_table(seen.columns, shown[:ROWS_SHOWN] if cut else shown))
    number = f"the first {ROWS_SHOWN}" if cut else f"{len(shown):,}"
    more = "; --json gives all, --count their number" if cut else ""
    out.print(f"{number} rows as of {format_time(seen.as_of)} (slot {seen.slot}){more}")


def _rows(
    seen: View, wanted: Restriction, engine: Engine, as_json: bool
) -> Iterator[dict[str, Any]]:
    from tidetable.delta import read

    if engine is Engine.DELTA_RS:
        for batch in read.batches(seen, wanted):
            yield from read.rows(batch)
        return
    from tidetable.delta.session import spark_session

    with busy("starting Spark", as_json):
        spark = spark_session(project_root())
    for row in read.frame(spark, seen, wanted).toLocalIterator():
        yield read.spark_row(row)


def _count(seen: View, wanted: Restriction, engine: Engine, as_json: bool) -> int:
    from tidetable.delta import read

    if engine is Engine.DELTA_RS:
        return read.count(seen, wanted)
    from tidetable.delta.session import spark_session

    with busy("starting Spark", as_json):
        spark = spark_session(project_root())
    return read.frame(spark, seen, wanted).count()


@app.command()
def status(index: IndexName, as_json: AsJson = False) -> None:
    """Slot, live rows, files, and how evenly the cells are filled. Starts no JVM."""
    from tidetable import show
    from tidetable.delta.status import status as read_status

    found = read_status(load(index))
    if as_json:
        emit(found.as_json())
        return
    out.print(show.status_table([found]))
    out.print()
    out.print(show.cells_picture(found.cells))
    out.print()
    out.print(show.forecast(found.note.live_by_expiration, found.slot))


@app.command()
def simulate(
    scheme: Annotated[SchemeName, typer.Option(help="Which scheme.")],
    period: Annotated[int, typer.Option(metavar="P", help="Slots in the window.", min=1)],
    insertion: Annotated[int | None, typer.Option(metavar="G", help="Parts by insertion.")] = None,
    expiration: Annotated[
        int | None, typer.Option(metavar="E", help="Parts by expiration.")
    ] = None,
    placement: Annotated[PlacementName, typer.Option()] = PlacementName.ROUND_ROBIN,
    groups: Annotated[int | None, typer.Option(metavar="E", help="Groups of Sweep.")] = None,
    every: Annotated[int, typer.Option(metavar="M", help="Sweep every M-th time.")] = 1,
    deletion_vectors: Annotated[
        bool, typer.Option("--deletion-vectors/--no-deletion-vectors", help="For Sweep.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """What a scheme would write and keep, in the model of the papers' Theorem 1.

    Constant rate, lifetimes uniform over 1..P slots: rows written per row inserted, files, and the
    share of stored rows that is dead.
    """
    from tidetable import show
    from tidetable.core.placement import Placement
    from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep
    from tidetable.core.simulate import simulate as run

    chosen: Scheme
    if scheme is SchemeName.SWEEP:
        if groups is None:
            raise UserError("sweep needs --groups E.")
        chosen = Sweep(period, groups, every, deletion_vectors)
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


# -- running -------------------------------------------------------------------------------------


@contextmanager
def busy(what: str, quiet: bool) -> Iterator[None]:
    if quiet or not err.is_terminal:
        yield
        return
    with err.status(what):
        yield


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
    """The entry point: errors become a sentence and an exit status."""
    try:
        app(standalone_mode=True)
    except TidetableError as error:
        err.print("[bold red]error:[/] ", end="")
        err.print(str(error), markup=False, soft_wrap=True)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        err.print("Stopped. What was committed stays; run it again to go on.")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        if os.environ.get("TIDETABLE_DEBUG"):
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        err.print("[bold red]failed:[/] ", end="")
        err.print(lines[0], markup=False, soft_wrap=True)
        err.print("A retry may help. TIDETABLE_DEBUG=1 shows the whole error.")
        sys.exit(1)


if __name__ == "__main__":
    main()
