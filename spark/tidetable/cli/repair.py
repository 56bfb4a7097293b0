"""What keeps a table well: replay, rebuild, validate, maintain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidetable.cli import running
from tidetable.cli.commands import Panel, command
from tidetable.cli.options import AsJson, IndexName, load
from tidetable.cli.output import Output, output
from tidetable.core.errors import UserError

if TYPE_CHECKING:
    from tidetable.config import Index
    from tidetable.table.damage import DamagedLog
    from tidetable.table.state import State


# -- replay --------------------------------------------------------------------------------------


@command(Panel.REPAIR, "tidetable replay flights_sweep --from 4 --dry-run")
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

    out = output(as_json)
    described = load(index)
    state = None
    try:
        state = IndexTable(described).state_to_replay(first, from_source=from_source)
    except DamagedLog as damage:
        if not from_source:
            raise
        _set_aside(out, described, damage, first, dry_run)
        if dry_run:
            return
    if dry_run:
        out.say(f"{_replay_in_words(described, state, first, from_source)} Nothing was changed.")
        return
    spark = running.start_spark(out)
    from tidetable.engine.replay import replay as replay_from
    from tidetable.engine.updater import Updater

    commits = 1 if state is None else state.slot - first + 1
    reports = replay_from(Updater(spark, described), first, from_source=from_source)
    running.run(out, described, reports, commits)


def _set_aside(out: Output, index: Index, damage: DamagedLog, first: int, dry_run: bool) -> None:
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
        out.say(
            f"Would set the log of {damage.path} aside as {files.next_aside()} ({why}) and {loads}."
            " The next update goes on from there. Nothing was changed."
        )
        return
    aside = set_aside(damage, index.name, PROPERTY_INDEX)
    out.say(f"The log of {damage.path} is set aside as {aside} ({why}). Now to {loads}.")


def _replay_in_words(index: Index, state: State | None, first: int, from_source: bool) -> str:
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


# -- rebuild -------------------------------------------------------------------------------------


@command(Panel.REPAIR, "tidetable rebuild flights_sweep --dry-run")
def rebuild(
    index: IndexName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be written again, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write all cells again, sorted and merged, in one commit. Rows and slot stay the same."""
    from tidetable.table.state import IndexTable

    out = output(as_json)
    described = load(index)
    state = IndexTable(described).required_state()
    if dry_run:
        _show_rebuild(out, state)
        return
    spark = running.start_spark(out)
    from tidetable.engine.rebuild import rebuild as rebuild_all
    from tidetable.engine.updater import Updater

    # Not before it is asked for: what may interrupt it is told where it stopped.
    reports = (rebuild_all(updater) for updater in [Updater(spark, described)])
    running.run(out, described, reports, 1)


def _show_rebuild(out: Output, state: State) -> None:
    from tidetable.output.show import human_bytes, number_of

    log = state.log
    stored = log.files.bytes
    sizes = {"cells": len(log.cells), "rows": log.rows, "files": len(log.files)}
    told = (
        f"Would write {number_of(log.rows, 'row')} again: {number_of(len(log.files), 'file')} "
        f"in {number_of(len(log.cells), 'cell')}, {human_bytes(stored)}. Nothing was changed."
    )
    out.answer({"slot": state.slot, **sizes, "bytes": stored}, notes=[told])


# -- validate ------------------------------------------------------------------------------------


@command(Panel.REPAIR, "tidetable validate flights_sweep --due-slot 6")
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

    out = output(as_json)
    described = load(index)
    compared = _compared(out, described) if against_source else None
    with out.busy("checking"):
        from tidetable.config import project_root

        home = reports_home(project_root())
        outcome = check_quality(described, due_slot=due_slot, reports=home, against_source=compared)
    out.answer(
        outcome.as_json(),
        lambda: show.outcome_summary(outcome),
        notes=[f"The report: {outcome.report}"],
    )
    outcome.require(described.argument)


def _compared(out: Output, index: Index) -> dict[str, Any]:
    """The table next to its source; for people also how much was compared."""
    from tidetable.output.show import number_of
    from tidetable.table.state import IndexTable

    IndexTable(index).state(trusting=True)  # a table that is not ours need not wait for Spark
    spark = running.start_spark(out)
    from tidetable.engine.against_source import compare_now

    with out.busy("comparing with the source"):
        found = compare_now(spark, index)
    out.say(
        f"Compared with the source: {number_of(found.rows, 'row')} of the table, "
        f"{number_of(found.source_rows, 'row')} of slots {found.first} to {found.slot}."
    )
    return found.as_json()


# -- maintain ------------------------------------------------------------------------------------


@command(Panel.REPAIR, "tidetable maintain flights_sweep --force --purge --dry-run")
def maintain(
    index: IndexName,
    force: Annotated[bool, typer.Option("--force", help="All of it now, due or not.")] = False,
    purge: Annotated[
        bool,
        typer.Option("--purge", help="Delete what no kept version needs; else it is only shown."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is due, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Checkpoints, old rows beside the table, and files that no version needs. Starts no JVM.

    Only if it is due, which the number of updates since the last time decides. No file is deleted
    without --purge.
    """
    from tidetable.output import show
    from tidetable.table.upkeep import maintain as do_maintain
    from tidetable.table.upkeep import outstanding

    described = load(index)
    if dry_run:
        done = outstanding(described)
    else:
        done = do_maintain(described, force=force, purging=purge)
    output(as_json).answer(done, lambda: show.maintenance(done))


@command(Panel.REPAIR, "tidetable maintain flights_sweep --force --purge", hidden=True)
def purge(
    index: IndexName,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete them; without it they are only shown.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The files of `maintain --purge` alone, as it was called before; nothing without --yes."""
    from tidetable.output import show
    from tidetable.table.upkeep import purge as do_purge
    from tidetable.table.upkeep import purgeable

    described = load(index)
    gone = do_purge(described) if yes else purgeable(described)
    data = {**gone.as_json(), "deleted": yes}
    output(as_json).answer(data, lambda: show.purged(gone, deleted=yes))
