"""From which slot a replay mends a table that is wrong, without a JVM.

A replay from slot J puts back the version of slot J-1, or loads it from the source if that is gone,
and goes on from there. So it mends only what came after that version: J must be chosen so that the
version is right. A stranger's commit is buried under our own when an update runs on top of it; the
log still shows it. Of other damage the same checks tell that the newest version has failed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tidetable.config import Index
from tidetable.quality.figures import Figures, figures_of, gather
from tidetable.quality.outcome import NOT_OF_THE_ROWS
from tidetable.quality.suite import ROWS, Check, checks
from tidetable.table.history import Updates
from tidetable.table.history_row import UpdateRow
from tidetable.table.log import Log, open_log
from tidetable.table.note import Note, NoteKind
from tidetable.table.state import IndexTable, State

if TYPE_CHECKING:
    import pandas as pd

LOOKS_MAX = 100
"""So many earlier versions are looked at."""


def judged_figures(
    index: Index, due_slot: int | None, against_source: Mapping[str, Any] | None = None
) -> Figures:
    """The figures of the index as it stands and, if it is wrong, the slot to replay from."""
    figures = gather(index, due_slot, against_source)
    wrong = wrong_checks(figures)
    if not wrong:
        return figures
    table = IndexTable(figures.index)
    state = table.state(trusting=True)
    assert state is not None
    first = replay_from(figures.index, state, wrong)
    if any(check.name == "against_source" for check in wrong):
        # The rows know better than the files, but each knows only what it has looked at.
        known = (figures.against_source or {}).get("replay_from")
        first = None if first is None or known is None else min(first, known)
    return replace(figures, replay_from=first)


def wrong_checks(figures: Figures) -> list[Check]:
    """The checks that say that the rows are wrong; what Great Expectations says of them too."""
    frame = figures.frame()
    return [
        check
        for check in checks(figures)
        if check.severity == "critical"
        and check.name not in NOT_OF_THE_ROWS
        and not holds(check, frame)
    ]


def replay_from(index: Index, state: State, wrong: Collection[Check]) -> int | None:
    """The slot from which a replay mends the table; None if it has to be made anew."""
    chain = list(state.log.notes())
    newest: dict[int, tuple[int, Note]] = {}  # by slot: what a replay would put back
    for version, note in chain:
        newest.setdefault(note.slot, (version, note))
    buried = _first_buried(state.log, chain, state.slot - index.period)
    # What only rows tell must have been told of the version as well.
    by_rows = any(check.group == ROWS for check in wrong)
    recorded = {row.version: row for row in Updates(index).last(2 * LOOKS_MAX)}
    looks = 0
    for slot in sorted(newest, reverse=True):
        version, note = newest[slot]
        if slot >= state.slot or (buried is not None and version > buried):
            continue
        looks += 1
        if looks > LOOKS_MAX:
            break
        if _is_right(index, version, note, recorded.get(version), by_rows):
            return slot + 1
    # Before the oldest slot that the log knows a replay loads from the source.
    oldest = min(newest)
    return oldest if oldest >= 1 else None


def _is_right(index: Index, version: int, note: Note, row: UpdateRow | None, by_rows: bool) -> bool:
    log = open_log(index.table, version)
    if log is None or (by_rows and (row is None or row.checks is None)):
        return False
    return not wrong_checks(figures_of(index, State(log, version, note), row))


def _first_buried(log: Log, chain: list[tuple[int, Note]], after: int) -> int | None:
    """The version of the first commit of somebody else that our own went on from.

    What came before a load or a restore is gone, and what came so long ago that no row of that time
    lives, too.
    """
    spans = [
        range(older + 1, newer)
        for (newer, note), (older, before) in pairwise(chain)
        if note.kind not in (NoteKind.LOAD, NoteKind.RESTORE) and before.slot > after
    ]
    found = [
        version
        for span in spans
        for version in span
        if (commit := log.commit(version)) is not None
        and commit.note is None
        and commit.changes_rows
    ]
    return min(found, default=None)


# -- the expectations, without Great Expectations --------------------------------------------------


def holds(check: Check, frame: pd.DataFrame) -> bool:
    """Whether the expectation holds; the few kinds that the suite has. What is missing holds."""
    arguments: Mapping[str, Any] = check.arguments
    if check.kind == "ExpectTableRowCountToEqual":
        return len(frame) == int(arguments["value"])
    if check.kind.startswith("ExpectColumnPair"):
        both = frame[[arguments["column_A"], arguments["column_B"]]].dropna()
        one, other = both.iloc[:, 0], both.iloc[:, 1]
        return bool((one == other).all() if check.kind.endswith("Equal") else (one >= other).all())
    values = frame[arguments["column"]].dropna()
    if check.kind == "ExpectColumnSumToBeBetween":
        return bool(arguments["min_value"] <= values.sum() <= arguments["max_value"])
    least, most = arguments.get("min_value"), arguments.get("max_value")
    if least is not None and arguments.get("strict_min"):
        return bool((values > least).all())
    return bool(
        (least is None or (values >= least).all()) and (most is None or (values <= most).all())
    )
