"""What Python programs do with an index: the commands of `tidetable` as functions.

    import tidetable

    index = tidetable.load("flights_sweep")
    tidetable.update(index, until="2013-01-02T18:00:00Z")
    rows = tidetable.probe(index, "N14228")  # a pyarrow.Table

Every function takes an index or its name. Mistakes of the caller are UserError, what a retry may
mend is TransientError, both of tidetable.core.errors. What reads starts no JVM unless it is given a
Spark session; what writes takes a session, or makes one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from tidetable.config import Index, find_index, load_index, parse_time, project_root
from tidetable.core.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tidetable.core.simulate import Simulation
    from tidetable.engine.updater import Updater
    from tidetable.quality import Outcome
    from tidetable.table.read import View
    from tidetable.table.report import UpdateReport
    from tidetable.table.restriction import Restriction
    from tidetable.table.status import Outlook, Status

IndexOrName: TypeAlias = Index | str
Moment: TypeAlias = datetime | str
"""A time with a zone: a datetime, or text such as 2013-01-02T18:00:00Z."""


def load(name_or_path: str | Path, project: str | Path | None = None) -> Index:
    """The index of this name in a project, or of this YAML file. ConfigError names its mistakes.

    The project is the folder that has include/indexes: TIDETABLE_HOME, the working directory or
    one above it, unless it is given.
    """
    root = project_root() if project is None else Path(project).resolve()
    return load_index(find_index(str(name_or_path), root), root).given_as(str(name_or_path))


def session(project: str | Path | None = None) -> SparkSession:
    """The active Spark session, or a new one that suits small updates; its log is in .cache."""
    from tidetable.engine.session import spark_session

    return spark_session(project_root() if project is None else Path(project).resolve())


# -- asking ----------------------------------------------------------------------------------------


def status(index: IndexOrName) -> Status:
    """Slot, live rows, files, and how evenly the cells are filled."""
    from tidetable.table.status import status as of_table

    return of_table(_index(index))


def plan(index: IndexOrName, slot: int | None = None) -> Outlook:
    """What the next update, or a later one, would do to which cells, and why."""
    from tidetable.table.status import outlook

    return outlook(_index(index), slot)


def check(index: IndexOrName, spark: SparkSession | None = None) -> dict[str, Any]:
    """What the next update would read and refuse, as `tidetable check --json` has it.

    `ok` says whether the bad rows are few enough for that update.
    """
    from tidetable.engine.updater import Updater
    from tidetable.quality.volume import of_preview
    from tidetable.table.state import resolved

    described = resolved(_index(index))
    ended = described.timeline.ended_by(datetime.now(UTC) - described.source.grace)
    answer = Updater(_spark(spark), described).preview(ended)
    answer |= of_preview(described, answer, ended)
    allowed = described.quality.bad_rows_max.allows(answer["quarantined"], answer["read"])
    return {"index": described.name, "scheme": described.scheme_label, **answer, "ok": allowed}


def simulate(scheme: Mapping[str, Any], period: int) -> Simulation:
    """What a scheme, written as in the YAML, would write and keep with a window of so many slots.

    The model is that of Theorem 1: a constant rate, lifetimes uniform over 1..period slots.
    """
    from tidetable.config import load_scheme
    from tidetable.core.simulate import simulate as run

    return run(load_scheme(json.dumps(dict(scheme)), period, "scheme").build(period))


# -- reading ---------------------------------------------------------------------------------------


@overload
def probe(
    index: IndexOrName,
    *keys: Any,
    spark: None = None,
    key_from: Any = None,
    key_to: Any = None,
    inserted_from: Moment | None = None,
    inserted_to: Moment | None = None,
    alive_at: Moment | None = None,
    slot: int | None = None,
) -> pa.Table: ...
@overload
def probe(
    index: IndexOrName,
    *keys: Any,
    spark: SparkSession,
    key_from: Any = None,
    key_to: Any = None,
    inserted_from: Moment | None = None,
    inserted_to: Moment | None = None,
    alive_at: Moment | None = None,
    slot: int | None = None,
) -> DataFrame: ...
def probe(
    index: IndexOrName,
    *keys: Any,
    spark: SparkSession | None = None,
    key_from: Any = None,
    key_to: Any = None,
    inserted_from: Moment | None = None,
    inserted_to: Moment | None = None,
    alive_at: Moment | None = None,
    slot: int | None = None,
) -> pa.Table | DataFrame:
    """The live rows of some keys, or of a range of keys, by key.

    A pyarrow.Table; a DataFrame if a Spark session is given.
    """
    from tidetable.core.columns import EXPIRATION_SLOT
    from tidetable.table.restriction import keys_or_range

    low, high = _text(key_from), _text(key_to)
    wanted = _restriction(
        keys_or_range([str(key) for key in keys], low, high),
        low, high, inserted_from, inserted_to, alive_at,
    )  # fmt: skip
    seen = _view(index, slot)
    if spark is not None:
        from tidetable.engine.reading import sorted_frame

        return sorted_frame(spark, seen, wanted)
    order = [(seen.index.key, "ascending"), (EXPIRATION_SLOT, "ascending")]
    return _table(seen, wanted).sort_by(order)


@overload
def scan(
    index: IndexOrName,
    *,
    spark: None = None,
    key_from: Any = None,
    key_to: Any = None,
    inserted_from: Moment | None = None,
    inserted_to: Moment | None = None,
    alive_at: Moment | None = None,
    slot: int | None = None,
) -> pa.Table: ...
@overload
def scan(
    index: IndexOrName,
    *,
    spark: SparkSession,
    key_from: Any = None,
    key_to: Any = None,
    inserted_from: Moment | None = None,
    inserted_to: Moment | None = None,
    alive_at: Moment | None = None,
    slot: int | None = None,
) -> DataFrame: ...
def scan(
    index: IndexOrName,
    *,
    spark: SparkSession | None = None,
    key_from: Any = None,
    key_to: Any = None,
    inserted_from: Moment | None = None,
    inserted_to: Moment | None = None,
    alive_at: Moment | None = None,
    slot: int | None = None,
) -> pa.Table | DataFrame:
    """All live rows, or those within these limits, in no order.

    A pyarrow.Table, so all of them in memory; a DataFrame if a Spark session is given.
    """
    wanted = _restriction((), _text(key_from), _text(key_to), inserted_from, inserted_to, alive_at)
    seen = _view(index, slot)
    if spark is None:
        return _table(seen, wanted)
    from tidetable.engine.reading import frame

    return frame(spark, seen, wanted)


def count(
    index: IndexOrName,
    *,
    key_from: Any = None,
    key_to: Any = None,
    inserted_from: Moment | None = None,
    inserted_to: Moment | None = None,
    alive_at: Moment | None = None,
    slot: int | None = None,
) -> int:
    """How many rows `scan` would give; without limits from the log alone."""
    from tidetable.table import read

    wanted = _restriction((), _text(key_from), _text(key_to), inserted_from, inserted_to, alive_at)
    return read.count(_view(index, slot), wanted)


# -- writing ---------------------------------------------------------------------------------------


def update(
    index: IndexOrName,
    spark: SparkSession | None = None,
    *,
    until: Moment | None = None,
    slots: int | None = None,
    fold: bool = False,
) -> list[UpdateReport]:
    """Applies the next slots in order and says what each commit did; makes the table first.

    Up to a time, or so many slots, or every slot that has ended; with `fold` in one commit. Empty
    if there was nothing to do. What was committed stays if a later slot fails.
    """
    from tidetable.table.state import IndexTable
    from tidetable.table.target import wanted_slot, within_end

    described = _index(index)
    state = IndexTable(described).state()
    at = None if state is None else state.slot
    wanted = wanted_slot(described, at, _moment(until), slots, datetime.now(UTC))
    target = within_end(described, wanted)
    if target < 0 or (at is not None and at >= target):
        return []
    return list(_updater(described, spark).catch_up(target, fold=fold))


def replay(
    index: IndexOrName,
    first: int,
    spark: SparkSession | None = None,
    *,
    from_source: bool = False,
) -> list[UpdateReport]:
    """Restores the state before slot `first` and applies the slots since then again."""
    from tidetable.table.state import IndexTable

    described = _index(index)
    IndexTable(described).state_to_replay(first, from_source=from_source)
    updater = _updater(described, spark)
    from tidetable.engine.replay import replay as replay_from

    return list(replay_from(updater, first, from_source=from_source))


def rebuild(index: IndexOrName, spark: SparkSession | None = None) -> UpdateReport:
    """Writes all cells again, sorted and merged, in one commit. Rows and slot stay the same."""
    from tidetable.table.state import IndexTable

    described = _index(index)
    IndexTable(described).required_state()
    updater = _updater(described, spark)
    from tidetable.engine.rebuild import rebuild as rebuild_all

    return rebuild_all(updater)


# -- upkeep ----------------------------------------------------------------------------------------


def validate(
    index: IndexOrName,
    *,
    due_slot: int | None = None,
    spark: SparkSession | None = None,
    reports: Path | None = None,
) -> Outcome:
    """Whether the table is what it should be, with a report in .tidetable/_reports.

    With a Spark session the rows are compared with the source too. A table that is wrong is an
    outcome; `Outcome.require()` makes it an error.
    """
    from tidetable.quality import reports_home
    from tidetable.quality import validate as judged

    described = _index(index)
    compared = None
    if spark is not None:
        from tidetable.engine.against_source import compare_now

        compared = compare_now(spark, described).as_json()
    home = reports_home(project_root()) if reports is None else reports
    return judged(described, due_slot=due_slot, reports=home, against_source=compared)


def maintain(index: IndexOrName, *, force: bool = False, purge: bool = False) -> dict[str, Any]:
    """Checkpoints and clean-up, if due or with `force`; says what was done.

    Files that no kept version needs are counted, and deleted only with `purge`.
    """
    from tidetable.table.upkeep import maintain as do_maintain

    return do_maintain(_index(index), force=force, purging=purge)


# -- what callers may write ------------------------------------------------------------------------


def _index(index: IndexOrName) -> Index:
    return index if isinstance(index, Index) else load(index)


def _spark(spark: SparkSession | None) -> SparkSession:
    return session() if spark is None else spark


def _updater(index: Index, spark: SparkSession | None) -> Updater:
    from tidetable.engine.updater import Updater

    if not index.is_auto:
        return Updater(_spark(spark), index)
    from tidetable.advisor.choose import choose_scheme

    return Updater(_spark(spark), index, choose=choose_scheme)


def _view(index: IndexOrName, slot: int | None) -> View:
    from tidetable.table.read import view

    return view(_index(index), slot)


def _table(view: View, wanted: Restriction) -> pa.Table:
    from tidetable.table.read import whole

    return whole(view, wanted)


def _restriction(
    keys: Sequence[str],
    key_from: str | None,
    key_to: str | None,
    inserted_from: Moment | None,
    inserted_to: Moment | None,
    alive_at: Moment | None,
) -> Restriction:
    from tidetable.table.restriction import Restriction

    return Restriction(
        keys=tuple(keys),
        key_from=key_from,
        key_to=key_to,
        inserted_from=_moment(inserted_from),
        inserted_to=_moment(inserted_to),
        alive_at=_moment(alive_at),
    )


def _moment(moment: Moment | None) -> datetime | None:
    if moment is None:
        return None
    if isinstance(moment, str):
        try:
            return parse_time(moment)
        except ValueError as error:
            raise UserError(str(error)) from None
    if moment.tzinfo is None:
        raise UserError(f"{moment} has no zone; give a datetime with one, such as tzinfo=UTC.")
    return moment


def _text(key: Any) -> str | None:
    return None if key is None else str(key)
