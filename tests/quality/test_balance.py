"""When cells are called uneven, and when not. No JVM: the tables are made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.handmade import make_table, make_update
from tests.workspace import Row, Workspace, row
from tidetable.config import Index
from tidetable.quality import Outcome, validate
from tidetable.quality.figures import gather
from tidetable.quality.suite import checks

pytestmark = pytest.mark.slow  # Great Expectations takes seconds to be imported

GRID = {"name": "rebuild", "insertion": 2, "expiration": 3}


def judged(index: Index) -> Outcome:
    reports = Path(index.table).parent / "reports"
    return validate(index, due_slot=None, reports=reports)


def skipped(index: Index, name: str) -> str | None:
    return next(check.skipped for check in checks(gather(index)) if check.name == name)


def even(rows: int) -> list[Row]:
    """Rows of all slots of the window and of all lifetimes."""
    pairs = [(slot, end) for slot in range(-5, 1) for end in range(1, slot + 7)]
    return [row(number, pairs[number % 21][0] - 0.5, pairs[number % 21][1] - 0.5)
            for number in range(rows)]  # fmt: skip


def skewed(rows: int) -> list[Row]:
    """All expire in slot 3: one group of three has them all."""
    return [row(number, -0.5, 2.5) for number in range(rows)]


@pytest.mark.parametrize("on_failure", ["fail", "warn"])
def test_uneven_cells_fail_or_warn_as_the_yaml_says(workspace: Workspace, on_failure: str) -> None:
    index = make_table(workspace, skewed(60), quality={"on_failure": on_failure})
    outcome = judged(index)
    assert outcome.figures["imbalance"] == 3
    told = [finding.name for finding in outcome.warnings]
    if on_failure == "fail":
        assert [finding.name for finding in outcome.failed] == ["balance"]
        assert outcome.failed[0].sentence == (
            "The largest cell is at most 1.5 times the mean. Found: it is 3.00 times."
        )
        assert told == ["balance_as_predicted"]
    else:
        assert outcome.success
        assert told == ["balance", "balance_as_predicted"]


def test_what_is_untrue_fails_even_if_the_yaml_says_warn(workspace: Workspace) -> None:
    from deltalake import DeltaTable

    index = make_table(workspace, skewed(60), quality={"on_failure": "warn"})
    DeltaTable(index.table).delete("id = 7")
    outcome = judged(index)
    assert {finding.name for finding in outcome.failed} == {
        "foreign",
        "live_rows",
        "live_rows_by_group",
    }
    assert [finding.name for finding in outcome.warnings] == ["balance", "balance_as_predicted"]


@pytest.mark.parametrize("scheme", [{"name": "sweep", "groups": 3}, GRID], ids=["sweep", "grid"])
def test_an_even_stream_is_even(workspace: Workspace, scheme: dict[str, Any]) -> None:
    """As uneven as predicted, to the last row."""
    index = make_table(workspace, even(210), scheme=scheme)
    outcome = judged(index)
    assert (outcome.failed, outcome.warnings) == ([], [])
    assert outcome.figures["imbalance"] == outcome.figures["imbalance_predicted"]
    assert skipped(index, "balance") is None


def test_a_handful_of_rows_is_not_called_uneven(workspace: Workspace) -> None:
    index = make_table(workspace, skewed(5))
    outcome = judged(index)
    assert outcome.figures["imbalance"] == 3
    assert (outcome.success, outcome.warnings) == (True, [])
    assert "5 rows in 3 cells are too few to tell from accident" in str(skipped(index, "balance"))


def test_an_empty_table_is_fine(workspace: Workspace) -> None:
    outcome = judged(make_table(workspace, []))
    assert (outcome.failed, outcome.warnings) == ([], [])
    assert outcome.figures["imbalance"] is None


def test_a_table_that_is_still_filling_is_not_called_uneven(workspace: Workspace) -> None:
    """Slot 1 of a source without a past: all rows came in with one slot, hence into one g."""
    index = make_table(workspace, [], scheme=GRID)
    new = [row(number, 0.5, 1.5 + number % 6) for number in range(180)]
    make_update(workspace, index, new, slot=1)
    outcome = judged(index)
    assert outcome.figures["imbalance"] == 2
    assert (outcome.failed, outcome.warnings) == ([], [])
    assert "the table is still filling" in str(skipped(index, "balance"))


def test_a_scheme_that_cannot_meet_the_limit_is_told(workspace: Workspace) -> None:
    """Chronological parts are uneven by nature; the sentence says what to do."""
    scheme = {**GRID, "insertion": 3, "placement": "chronological"}
    index = make_table(workspace, even(2100), scheme=scheme)
    outcome = judged(index)
    assert [finding.name for finding in outcome.failed] == ["balance"]
    assert "gives 1.71 even to an even stream: choose another scheme" in (
        outcome.failed[0].sentence
    )
