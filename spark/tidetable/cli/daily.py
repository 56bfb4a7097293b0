"""What people do every day: update an index, look at it, read from it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from tidetable.cli import running
from tidetable.cli.commands import Argument, Option, Panel, command
from tidetable.cli.options import (
    AliveAt,
    AsJson,
    Engine,
    EngineOption,
    IndexName,
    InsertedFrom,
    InsertedTo,
    KeyFrom,
    KeyTo,
    Last,
    OptionalIndexName,
    Slot,
    load,
    parse_when,
)
from tidetable.cli.output import Output, output
from tidetable.core.errors import UserError

if TYPE_CHECKING:
    from tidetable.config import Index
    from tidetable.table.read import View
    from tidetable.table.restriction import Restriction
    from tidetable.table.state import State


# -- update --------------------------------------------------------------------------------------


@command(Panel.DAILY, "tidetable update flights_sweep --until 2013-01-02T14:00:00Z")
def update(
    index: IndexName,
    until: Annotated[
        str | None, Option(help="Every slot that ends by this time.", metavar="TIME")
    ] = None,
    slots: Annotated[int | None, Option(help="The next N slots.", metavar="N", min=0)] = None,
    fold: Annotated[bool, Option("--fold", "All of them in one commit.")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply the next slots in order; makes the table when there is none.

    Without --until and --slots: every slot whose end, plus the source's grace, is past (and not
    after the YAML's `end`).
    """
    from tidetable.table.state import IndexTable

    out = output(as_json)
    described = load(index)
    if until is not None and slots is not None:
        raise UserError("Give --until or --slots, not both.")
    state = IndexTable(described).state()
    target = _target(out, described, state, parse_when(until, "--until"), slots)
    if target < 0:
        out.say(f"Nothing to do: {described.name} starts at {running.time_of(described, 0)}.")
        return
    if state is not None and state.slot >= target:
        out.say(
            f"Nothing to do: {described.name} stands at slot {state.slot} already, as of "
            f"{running.time_of(described, state.slot)}."
        )
        return
    at = -1 if state is None else state.slot
    commits = (1 if fold and target > max(at, 0) else target - max(at, 0)) + (state is None)
    spark = running.start_spark(out, brief=running.is_brief(state, commits))
    from tidetable.advisor.choose import choose_scheme
    from tidetable.engine.updater import Updater

    # Of what an update says about itself only what takes long the first time.
    updater = (
        Updater(spark, described, choose=choose_scheme, choosing=out.say)
        if described.is_auto
        else Updater(spark, described)
    )
    running.run(out, described, updater.catch_up(target, fold=fold), commits)


def _target(
    out: Output, index: Index, state: State | None, until: datetime | None, slots: int | None
) -> int:
    """The slot to go to; below 0 if the index has not started yet and no time was given."""
    from tidetable.table.target import wanted_slot, within_end

    # The only place that asks the clock, which counts only if the user gave no time.
    at = None if state is None else state.slot
    wanted = wanted_slot(index, at, until, slots, datetime.now(UTC))
    target = within_end(index, wanted)
    if target < wanted and (slots is not None or until is not None):
        ends = running.time_of(index, target)
        out.say(f"{index.name} ends with slot {target}, {ends}: no further than that.")
    return target


# -- status and plan -----------------------------------------------------------------------------


@command(Panel.DAILY, "tidetable status flights_sweep")
def status(index: OptionalIndexName = None, as_json: AsJson = False) -> None:
    """Slot, live rows, files, and how evenly the cells are filled. Starts no JVM.

    Without INDEX: where each index of the project stands, and how it is.
    """
    if index is None:
        _show_all(output(as_json))
        return
    from tidetable.table.state import IndexTable, chosen_of
    from tidetable.table.status import status_of

    table = IndexTable(load(index))
    state = table.required_state()
    found, parted = status_of(table, state), None
    if chosen_of(state.log) is not None:
        from tidetable.advisor.drift import drift

        parted = drift(found.index, state)
    data = found.as_json() | {"drift": None if parted is None else parted.as_json()}
    output(as_json).answer(data, lambda: _answers().standing(found, parted))


def _answers() -> Any:
    """How people see answers; a program has no time for it."""
    from tidetable.output import answers

    return answers


def _show_all(out: Output) -> None:
    from tidetable.config.loading import INDEXES
    from tidetable.output import lists
    from tidetable.page.standing import entries, stand
    from tidetable.pipeline.catalog import read_catalog
    from tidetable.quality import reports_home

    catalog = read_catalog()
    reports, now = reports_home(catalog.root), datetime.now(UTC)
    found = [stand(entry, now, reports).as_json() for entry in entries(catalog)]
    if not found:
        raise UserError(
            f"There is no index in {catalog.root / INDEXES}. Write one, or give the path of a YAML "
            "file: tidetable status FILE."
        )
    out.rows(map(lists.standing_data, found), lambda _: lists.standings(found))


@command(Panel.DAILY, "tidetable plan flights_sweep --slot 7")
def plan(
    index: IndexName,
    slot: Annotated[int | None, Option("--slot", "A later update than the next.", min=0)] = None,
    as_json: AsJson = False,
) -> None:
    """What the next update would do to which cells, and why. Changes nothing, starts no JVM."""
    from tidetable.table.status import outlook

    coming = outlook(load(index), slot)
    output(as_json).answer(coming.as_json(), lambda: _answers().planned(coming))


# -- probe and scan ------------------------------------------------------------------------------


@command(Panel.DAILY, "tidetable probe flights_sweep N14228 --alive-at 2013-01-02T16:30:00Z")
def probe(
    index: IndexName,
    keys: Annotated[list[str] | None, Argument("KEY", "Keys.")] = None,
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
    from tidetable.table.read import view
    from tidetable.table.restriction import Restriction, keys_or_range

    out = output(as_json)
    wanted = Restriction(
        keys=keys_or_range(keys or [], key_from, key_to),
        key_from=key_from,
        key_to=key_to,
        inserted_from=parse_when(inserted_from, "--inserted-from"),
        inserted_to=parse_when(inserted_to, "--inserted-to"),
        alive_at=parse_when(alive_at, "--alive-at"),
    )
    seen = view(load(index), slot)
    out.rows(
        _sorted_rows(out, seen, wanted, engine),
        lambda rows: _answers().all_rows(seen.columns, rows, seen.slot, seen.as_of),
    )


@command(Panel.DAILY, "tidetable scan flights_sweep --count")
def scan(
    index: IndexName,
    key_from: KeyFrom = None,
    key_to: KeyTo = None,
    inserted_from: InsertedFrom = None,
    inserted_to: InsertedTo = None,
    alive_at: AliveAt = None,
    slot: Slot = None,
    count: Annotated[bool, Option("--count", "Only how many rows.")] = False,
    engine: EngineOption = Engine.DELTA_RS,
    as_json: AsJson = False,
) -> None:
    """All live rows, or how many there are."""
    from tidetable.config import format_time
    from tidetable.table.read import view
    from tidetable.table.restriction import Restriction

    out = output(as_json)
    wanted = Restriction(
        key_from=key_from,
        key_to=key_to,
        inserted_from=parse_when(inserted_from, "--inserted-from"),
        inserted_to=parse_when(inserted_to, "--inserted-to"),
        alive_at=parse_when(alive_at, "--alive-at"),
    )
    seen = view(load(index), slot)
    if count:
        total = _count(out, seen, wanted, engine)
        out.answer(
            {"count": total, "slot": seen.slot, "as_of": format_time(seen.as_of)},
            lambda: _answers().counted(total, seen.slot, seen.as_of),
        )
        return
    out.rows(
        _rows(out, seen, wanted, engine),
        lambda rows: _answers().first_rows(seen.columns, rows, seen.slot, seen.as_of),
    )


def _sorted_rows(
    out: Output, seen: View, wanted: Restriction, engine: Engine
) -> Iterator[dict[str, Any]]:
    if engine is Engine.SPARK:
        spark = running.start_spark(out)
        from tidetable.engine import reading

        yield from reading.spark_rows(reading.sorted_frame(spark, seen, wanted))
    else:
        from tidetable.table import read

        yield from read.sorted_rows(seen, wanted)


def _rows(out: Output, seen: View, wanted: Restriction, engine: Engine) -> Iterator[dict[str, Any]]:
    if engine is Engine.SPARK:
        spark = running.start_spark(out)
        from tidetable.engine import reading

        yield from reading.spark_rows(reading.frame(spark, seen, wanted))
    else:
        from tidetable.table import read

        for batch in read.batches(seen, wanted):
            yield from read.rows(batch)


def _count(out: Output, seen: View, wanted: Restriction, engine: Engine) -> int:
    if engine is Engine.DELTA_RS:
        from tidetable.table import read

        return read.count(seen, wanted)
    spark = running.start_spark(out)
    from tidetable.engine import reading

    return reading.frame(spark, seen, wanted).count()


# -- history and quarantine ----------------------------------------------------------------------


@command(Panel.DAILY, "tidetable history flights_sweep --last 5")
def history(index: IndexName, last: Last = 20, as_json: AsJson = False) -> None:
    """What each commit of an update, a replay or a rebuild did. Starts no JVM."""
    from tidetable.output import lists
    from tidetable.table.history import Updates

    described = load(index)
    found = Updates(described).last(last)
    if not found:
        _require_table(described)
    output(as_json).rows((row.as_json() for row in found), lambda _: lists.history(found))


@command(Panel.DAILY, "tidetable quarantine flights_sweep --reason expiration")
def quarantine(
    index: IndexName,
    slot: Annotated[int | None, Option("--slot", "Of this slot.", "J")] = None,
    reason: Annotated[str | None, Option("--reason", "With this in the reason.", "R")] = None,
    last: Last = 20,
    as_json: AsJson = False,
) -> None:
    """The rows that were not taken: why, and the column that is bad. Starts no JVM."""
    from tidetable.output import lists
    from tidetable.table.bad_rows import bad_rows

    described = load(index)
    found = bad_rows(described, last, slot=slot, reason=reason)
    if not found.total:
        _require_table(described)
    output(as_json).rows((row.as_json() for row in found.rows), lambda _: lists.quarantine(found))


def _require_table(index: Index) -> None:
    """Nothing to show is right only for an index that has a table."""
    from tidetable.table.state import IndexTable

    IndexTable(index).required_state()
