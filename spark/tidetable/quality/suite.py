"""The checks: what must hold for a table, as Great Expectations takes it.

A suite is built anew for each validation, out of the figures it is going to judge, so that each
expectation can say in a sentence what it expects of this slot. It is never loaded from disk, and
its size is always the same: a check that has nothing to look at is there and says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tidetable.config import OnFailure
from tidetable.quality.figures import CHECKED_ROWS, Figures
from tidetable.table.folders import folders_in_words

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite

SIZE = 35
"""The number of expectations; a suite with any other is an error."""

UNEVEN_FACTOR = 1.5
"""More uneven by this factor than even arrivals would be is worth a warning."""

TRUTH, ROWS, BOOKS, TIME, SOURCE, BALANCE = (
    "The rows, by the statistics of the files",
    "The rows, each of them read",
    "The books",
    "Time",
    "The source",
    "Balance",
)


@dataclass(frozen=True)
class Check:
    """One expectation, before Great Expectations has to be imported."""

    name: str
    group: str
    sentence: str
    """What must hold, for people."""

    found: str
    """What the figures say, whether it holds or not."""

    kind: str
    """The class in great_expectations.expectations."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    skipped: str | None = None
    """Why there is nothing to look at; then the expectation finds nothing and holds."""

    severity: str = "critical"
    """critical, or warning: does not fail the validation."""


def checks(figures: Figures) -> list[Check]:
    """All checks for these figures, in the order of the report."""
    found = [
        *_of_files(figures),
        *_of_rows(figures),
        *_of_books(figures),
        *_of_time(figures),
        *_of_source(figures),
        *_of_balance(figures),
    ]
    if len(found) != SIZE or len({check.name for check in found}) != SIZE:
        raise AssertionError(f"the suite has {len(found)} checks; it must have {SIZE}")
    return found


def build_suite(name: str, of: list[Check], told: str) -> ExpectationSuite:
    """The suite for Great Expectations; `told` goes with its first expectation, for the page."""
    import great_expectations as gx

    expectations = [
        getattr(gx.expectations, check.kind)(
            **check.arguments,
            description=check.sentence,
            severity=check.severity,
            meta={
                "name": check.name,
                "place": place,
                "group": check.group,
                "found": check.found,
                "skipped": check.skipped,
                **({"told": told} if place == 0 else {}),
            },
        )
        for place, check in enumerate(of)
    ]
    suite = gx.ExpectationSuite(name=name, expectations=expectations)
    if len(suite.expectations) != SIZE:
        raise AssertionError(f"Great Expectations took {len(suite.expectations)} of {SIZE} checks")
    return suite


# -- what files say --------------------------------------------------------------------------------


def _of_files(figures: Figures) -> Iterator[Check]:
    slot, period = figures.slot, figures.index.period
    cells = figures.cells

    def total(name: str) -> int | None:
        counts = [getattr(cell, name) for cell in cells]
        return None if None in counts else sum(counts)

    def none_of(name: str, column: str, sentence: str, what: str, otherwise: str) -> Check:
        number = total(column)
        return Check(
            name,
            TRUTH,
            sentence,
            f"{_number(number)} {what}" if number else otherwise,
            "ExpectColumnValuesToBeBetween",
            {"column": column, "max_value": 0},
            skipped="the files have no statistics of this column" if number is None else None,
        )

    def bound(name: str, column: str, sentence: str, **limits: Any) -> Check:
        known = [value for cell in cells if (value := getattr(cell, column)) is not None]
        least = column.startswith("first")
        extreme = (min if least else max)(known, default=None)
        opened = total("open") if column == "first_expiration" else 0
        return Check(
            name,
            TRUTH,
            sentence,
            ("no row" if extreme is None else f"the {'first' if least else 'last'} is {extreme}")
            + (f"; {_number(opened)} rows in files with deletion vectors do not tell" if opened
               else ""),
            "ExpectColumnValuesToBeBetween",
            {"column": column, **limits},
            skipped=None if known else ("there is no row" if not figures.rows else
                                        "the statistics do not tell, because of deletion vectors"),
        )  # fmt: skip

    number = len(figures.scheme.cells())
    yield Check(
        "cells",
        TRUTH,
        f"All rows are in the {number} cells of {figures.scheme.label}",
        f"{figures.strays} other cells" if figures.strays else "no other cell",
        "ExpectTableRowCountToEqual",
        {"value": number},
    )
    yield none_of(
        "statistics", "no_statistics", "Every file has statistics", "files have none or not all",
        "all have",
    )  # fmt: skip
    yield Check(
        "foreign",
        TRUTH,
        f"Nobody else has changed rows since version {figures.note_version}",
        "; ".join(figures.foreign) if figures.foreign else "nobody has",
        "ExpectColumnValuesToBeBetween",
        {"column": "foreign_commits", "max_value": 0},
    )
    yield bound(
        "expired", "first_expiration", f"No row has expired by slot {slot}",
        min_value=slot, strict_min=True,
    )  # fmt: skip
    yield bound(
        "expiration_slots", "last_expiration",
        f"No row lives past slot {slot + period}, {period} slots on", max_value=slot + period,
    )  # fmt: skip
    yield bound(
        "old_insertion_slots", "first_insertion",
        f"No row was inserted before slot {slot - period + 1}, {period} slots ago",
        min_value=slot - period, strict_min=True,
    )  # fmt: skip
    yield bound(
        "new_insertion_slots", "last_insertion",
        f"No row was inserted after slot {slot}", max_value=slot,
    )  # fmt: skip
    placed = none_of(
        "placement", "misplaced", "Every row is in the cell that its slots say",
        "files have rows of other cells", "no file shows a row of another cell",
    )  # fmt: skip
    yield _told(placed, figures)
    yield none_of(
        "slots_of_times", "mistimed", "Expiration slots are those of the expiration times",
        "files have others", "the first and the last of each file are",
    )  # fmt: skip
    yield none_of("key", "no_key", "Every row has a key", "rows have none", "all have")
    yield none_of(
        "times", "no_time", "Every row has its two times", "times are missing", "all have"
    )
    yield none_of(
        "slots", "no_slot", "Every row has its two slots", "slots are missing", "all have"
    )


def _told(check: Check, figures: Figures) -> Check:
    """How far file statistics go in this matter."""
    proven = sum(cell.proven for cell in figures.cells)
    if any(cell.misplaced for cell in figures.cells):
        return check
    return replace(
        check,
        found=f"{check.found}; of {_number(figures.rows)} rows the statistics prove "
        f"{_number(proven)}, and of the others only that the least and greatest slots of their "
        "files are right",
    )


# -- what the rows say -----------------------------------------------------------------------------

_OF_ROWS = {
    "expired": "has expired",
    "insertion_out_of_range": "has an insertion slot out of range",
    "expiration_out_of_range": "has an expiration slot out of the range of its insertion slot",
    "misplaced": "is in a cell other than its slots say",
    "no_key": "is without a key",
    "no_inserted_at": "is without an insertion time",
    "no_expires_at": "is without an expiration time",
    "wrong_expiration_slot": "has an expiration slot that is not that of its time",
    "wrong_insertion_slot": "has an insertion slot before its arrival",
}


def _of_rows(figures: Figures) -> Iterator[Check]:
    every = figures.index.quality.check_rows_every
    skipped = None
    if figures.checks is None:
        how_often = f"every {every} updates" if every else "never (check_rows_every: 0)"
        skipped = f"this commit did not read all rows; that is done {how_often}"
    counts = figures.checks or {}
    live = figures.note.live
    yield Check(
        "rows_read",
        ROWS,
        f"There are as many rows as the note says, {_number(live)}",
        f"{_number(counts.get('rows', 0))} rows",
        "ExpectColumnValuesToBeBetween",
        {"column": "checked_rows", "min_value": live, "max_value": live},
        skipped,
    )
    for name in CHECKED_ROWS[1:]:
        yield Check(
            f"rows_{name}",
            ROWS,
            f"No row {_OF_ROWS[name]}",
            f"{_number(counts.get(name, 0))} rows",
            "ExpectColumnValuesToBeBetween",
            {"column": f"checked_{name}", "max_value": 0},
            skipped or (None if name in counts else "this check did not count it"),
        )


# -- what the notes say ----------------------------------------------------------------------------


def _of_books(figures: Figures) -> Iterator[Check]:
    note = figures.note
    yield Check(
        "live_rows",
        BOOKS,
        f"The table has {_number(note.live)} rows, as its note says",
        f"{_number(figures.rows)} rows",
        "ExpectColumnSumToBeBetween",
        {"column": "rows", "min_value": note.live, "max_value": note.live},
    )
    grouped = any(cell.group_noted is not None for cell in figures.cells)
    yield Check(
        "live_rows_by_group",
        BOOKS,
        "Each part by expiration slot has as many rows as the note says",
        "; ".join(
            dict.fromkeys(
                f"e{cell.e}: {cell.group_rows}, not {cell.group_noted}"
                for cell in figures.cells
                if cell.group_rows != cell.group_noted
            )
        )
        or "all have",
        "ExpectColumnPairValuesToBeEqual",
        {
            "column_A": "group_rows",
            "column_B": "group_noted",
            "ignore_row_if": "either_value_is_missing",
        },
        None if grouped else "rows wait in the log, which has rows of all groups",
    )
    yield _equal(
        "forecast", "forecast", "live",
        "The live rows by expiration slot add up to the live rows",
        f"{_number(sum(note.live_by_expiration.values()))} and {_number(note.live)}",
    )  # fmt: skip
    yield _equal(
        "read_law", "read", "accounted",
        "Rows read = inserted + dead on arrival + quarantined",
        f"{_number(note.read)} = {_number(note.inserted)} + {_number(note.dead_on_arrival)} + "
        f"{_number(note.quarantined)}",
    )  # fmt: skip
    before = figures.live_before
    yield _equal(
        "live_law", "live", "live_accounted",
        "Live rows before + inserted = live rows + expired",
        f"{_number(before or 0)} + {_number(note.inserted)} = {_number(note.live)} + "
        f"{_number(note.expired)}",
        "the log no longer has the note before" if before is None else None,
    )  # fmt: skip
    limit = figures.index.quality.bad_rows_max
    rate = f" ({note.quarantined / note.read:.1%})" if note.read else ""
    yield Check(
        "bad_rows",
        BOOKS,
        f"No more than {limit} of the rows read are bad",
        f"{_number(note.quarantined)} of {_number(note.read)}{rate}",
        "ExpectColumnValuesToBeBetween",
        {"column": "quarantined", "max_value": figures.bad_rows_allowed},
    )


def _equal(
    name: str, one: str, other: str, sentence: str, found: str, skipped: str | None = None
) -> Check:
    return Check(
        name,
        BOOKS,
        sentence,
        found,
        "ExpectColumnPairValuesToBeEqual",
        {"column_A": one, "column_B": other, "ignore_row_if": "either_value_is_missing"},
        skipped,
    )


# -- the source ------------------------------------------------------------------------------------


def _of_source(figures: Figures) -> Iterator[Check]:
    volume, folders = figures.volume, figures.folders
    warns = figures.index.quality.volume.on_failure is OnFailure.WARN
    severity = "warning" if warns else "critical"
    missing = 0 if folders is None else folders["missing"]
    skipped = None
    if folders is None:
        skipped = (
            "this commit took no rows of a slot of its own"
            if figures.index.source.has_placeholders
            else "source.path has no time placeholder"
        )
    elif missing and volume.is_quiet_time:
        skipped = (
            f"nothing is usual at this time of day ({missing} of {folders['expected']} are missing)"
        )
    yield Check(
        "folders",
        SOURCE,
        f"Every folder that source.path names for slot {figures.slot} is there",
        folders_in_words(folders) if folders and missing else "all are",
        "ExpectColumnValuesToBeBetween",
        {"column": "folders_missing", "max_value": missing if skipped else 0},
        skipped,
        severity,
    )
    yield Check(
        "volume",
        SOURCE,
        f"Slot {figures.slot} brought as many rows as is usual at this time, {volume.limits}"
        if volume.usual
        else f"Slot {figures.slot} brought as many rows as is usual at this time",
        volume.found,
        "ExpectColumnValuesToBeBetween",
        {"column": "volume", "min_value": volume.low or 0, "max_value": volume.high},
        volume.why_not,
        severity,
    )
    yield _against_source(figures)


def _against_source(figures: Figures) -> Check:
    found = figures.against_source
    skipped = None
    if found is None:
        every = figures.index.quality.against_source_every
        how_often = f"every {every} updates, and by" if every else "by"
        skipped = (
            f"this commit was not compared; that is done {how_often} validate --against-source"
        )
    elif found.get("error"):
        skipped = f"the comparison could not be made: {found['error']}"
    return Check(
        "against_source",
        SOURCE,
        "The live rows are those of the source, slot by slot",
        "" if skipped or found is None else _compared_in_words(found),
        "ExpectColumnValuesToBeBetween",
        {"column": "differing_slots", "max_value": 0},
        skipped,
    )


def _compared_in_words(found: Mapping[str, Any]) -> str:
    late = (
        f"; {_number(found['late'])} rows came late and are not taken yet" if found["late"] else ""
    )
    if not found["slots"]:
        return f"{_number(found['rows'])} rows are{late}"
    more = found["slots"] - len(found["named"])
    named = "; ".join(found["named"]) + (f"; and {more} more slots" if more > 0 else "")
    return f"{named}{late}"


# -- time and balance ------------------------------------------------------------------------------


def _of_time(figures: Figures) -> Iterator[Check]:
    due = figures.due_slot
    yield Check(
        "fresh",
        TIME,
        "The table stands at the slot that is due" + ("" if due is None else f", {due}"),
        f"it stands at slot {figures.slot}",
        "ExpectColumnPairValuesAToBeGreaterThanB",
        {
            "column_A": "slot",
            "column_B": "due_slot",
            "or_equal": True,
            "ignore_row_if": "either_value_is_missing",
        },
        "nobody said which slot is due" if due is None else None,
    )


def _of_balance(figures: Figures) -> Iterator[Check]:
    quality = figures.index.quality
    severity = "critical" if quality.on_failure is OnFailure.FAIL else "warning"
    uneven, predicted = figures.imbalance, figures.predicted
    times = "no row" if uneven is None else f"it is {uneven:.2f} times"
    by_itself = ""
    if predicted is not None and predicted > quality.imbalance_max:
        by_itself = (
            f"; {figures.scheme.label} gives {predicted:.2f} even to an even stream: choose "
            "another scheme or raise quality.imbalance_max"
        )
    yield Check(
        "balance",
        BALANCE,
        f"The largest cell is at most {quality.imbalance_max:g} times the mean",
        f"{times}{by_itself}",
        "ExpectColumnValuesToBeBetween",
        {"column": "imbalance", "max_value": quality.imbalance_max},
        figures.too_sparse,
        severity,
    )
    most = figures.by_accident * UNEVEN_FACTOR
    yield Check(
        "balance_as_predicted",
        BALANCE,
        f"It is not far from what the scheme gives an even stream: at most {most:.2f} times",
        times
        if predicted is None
        else f"{times}; predicted are {predicted:.2f}, up to {figures.by_accident:.2f} by accident",
        "ExpectColumnValuesToBeBetween",
        {"column": "imbalance_compared", "max_value": most},
        figures.too_sparse_to_compare,
        "warning",
    )
    limit = quality.files_per_cell_max
    largest = max(figures.cells, key=lambda cell: cell.files)
    yield Check(
        "files",
        BALANCE,
        f"No cell has more than {limit} files"
        if limit
        else "No cell has more files than the scheme leaves in it",
        f"at most {largest.files}, in {largest.cell}" if largest.files else "no file",
        "ExpectColumnPairValuesAToBeGreaterThanB",
        {
            "column_A": "files_allowed",
            "column_B": "files",
            "or_equal": True,
            "ignore_row_if": "either_value_is_missing",
        },
        severity=severity,
    )


def _number(number: int) -> str:
    return f"{number:,}"
