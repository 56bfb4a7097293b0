"""Every check holds for a table that is right, and fails for one that is wrong in its way.

The wrong tables are copies of real ones, changed without a JVM. Most changes carry a note as if we
had made them ourselves: then nothing gives them away but the check in question.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.quality.tables import SCHEMES, SLOT, Stored, Tables, Wrong
from tests.workspace import at, log_of
from tidetable.engine.rebuild import rebuild
from tidetable.engine.replay import replay
from tidetable.engine.row_check import row_figures
from tidetable.engine.updater import Updater
from tidetable.quality import Outcome, validate
from tidetable.quality.figures import CHECKED_ROWS, gather
from tidetable.quality.mend import wrong_checks
from tidetable.quality.outcome import NOT_OF_THE_ROWS
from tidetable.quality.suite import SIZE, checks
from tidetable.table.history import Updates
from tidetable.table.log import open_log
from tidetable.table.report import UpdateReport

STRICT = {"bad_rows_max": "5%", "check_rows_every": 7}


def judged(wrong: Wrong, due_slot: int | None = SLOT) -> Outcome:
    table = Path(wrong.index.table)
    outcome = validate(wrong.index, due_slot=due_slot, reports=table.parent / "reports")
    # What Great Expectations finds is also what tells from where to mend it.
    found = {check.name for check in wrong_checks(gather(wrong.index, due_slot))}
    assert found == {finding.name for finding in outcome.failed} - NOT_OF_THE_ROWS
    return outcome


def failed(wrong: Wrong, due_slot: int | None = SLOT) -> set[str]:
    """The names of the checks that fail; at least one has to."""
    outcome = judged(wrong, due_slot)
    assert not outcome.success
    return {finding.name for finding in outcome.failed}


@pytest.fixture
def sweep(tables: Tables, tmp_path: Path) -> Wrong:
    return tables.copy("sweep", tmp_path / "copy", quality=STRICT)


@pytest.fixture
def grid(tables: Tables, tmp_path: Path) -> Wrong:
    return tables.copy("rebuild", tmp_path / "copy", quality=STRICT)


# -- right tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_right_table_holds(tables: Tables, tmp_path: Path, scheme: str) -> None:
    """All that can be looked at has been: the rows too, since slot 7 checked each of them."""
    right = tables.copy(scheme, tmp_path / "copy", quality=STRICT)
    outcome = judged(right)
    assert (outcome.failed, outcome.warnings) == ([], [])
    assert (outcome.success, outcome.checked, outcome.slot) == (True, SIZE, SLOT)
    assert outcome.figures["rows"] == outcome.figures["live"] == 126
    skipped = {check.name: check.skipped for check in checks(gather(right.index, SLOT))}
    with_log = {"live_rows_by_group"} if scheme in ("sweep_with_log", "tiers") else set()
    # Its path has no placeholder, it is too young to know what is usual, and nobody compared it.
    of_source = {"folders", "volume", "against_source"}
    assert {name for name, why in skipped.items() if why} == with_log | of_source


@pytest.mark.parametrize("scheme", ["rebuild", "tiers"])
def test_a_table_that_is_rebuilt_or_replayed_holds(
    tables: Tables, tmp_path: Path, scheme: str
) -> None:
    here = tables.copy(scheme, tmp_path / "copy")
    updater = Updater(tables.spark, here.index)
    rebuild(updater)
    assert here.state.note.kind == "rebuild"
    assert judged(here).failed == []
    list(replay(updater, SLOT))
    assert (here.state.note.kind, here.state.slot) == ("update", SLOT)
    assert judged(here).failed == []


def test_statistics_do_not_tell_which_rows_a_deletion_vector_hides(
    tables: Tables, tmp_path: Path
) -> None:
    """Their bounds are those of the hidden rows too: no reason to call a right table wrong."""
    right = tables.copy("no_rebuild", tmp_path / "copy")
    figures = gather(right.index, SLOT)
    assert 0 < sum(cell.open for cell in figures.cells) < figures.rows
    assert judged(right).failed == []


# -- the rows, by the statistics of the files ------------------------------------------------------


def test_a_row_in_a_cell_that_the_scheme_does_not_have(grid: Wrong) -> None:
    grid.change_one(grid.one(_g=0, _e=0), _g=5)
    assert failed(grid) == {"cells", "placement", "live_rows_by_group"}


def test_a_file_without_statistics(sweep: Wrong) -> None:
    sweep.without_statistics(sweep.note())
    assert "statistics" in failed(sweep)


def test_a_commit_of_somebody_else(sweep: Wrong) -> None:
    """Even if all rows are as they were: who knows for how long."""
    sweep.rewrite(lambda rows: rows, note=None)
    outcome = judged(sweep)
    assert [finding.name for finding in outcome.failed] == ["foreign"]
    version = sweep.state.log.version
    assert f"Found: version {version} (WRITE)." in outcome.failed[0].sentence


def test_an_expired_row_put_back(grid: Wrong) -> None:
    row = grid.new_row(SLOT - 2, SLOT)
    grid.append([row], grid.note())
    outcome = judged(grid)
    names = [finding.name for finding in outcome.failed]
    assert names == ["expired", "live_rows", "live_rows_by_group"]
    assert outcome.failed[0].sentence == (
        f"No row has expired by slot {SLOT}. Found: the first is {SLOT} "
        f"(first_expiration {SLOT} in ({row['_g']},{row['_e']}))."
    )


def test_an_expired_row_put_back_by_somebody_else(tables: Tables, tmp_path: Path) -> None:
    wrong = tables.copy("sweep_with_log", tmp_path / "copy")
    wrong.append([wrong.new_row(SLOT - 2, SLOT)], note=None)
    assert {"foreign", "expired", "live_rows"} <= failed(wrong)


def test_a_row_that_lives_too_long(sweep: Wrong) -> None:
    sweep.append([sweep.new_row(SLOT, SLOT + 7)], sweep.note())
    assert failed(sweep) == {"expiration_slots", "live_rows", "live_rows_by_group"}


def test_a_row_that_was_inserted_too_long_ago(sweep: Wrong) -> None:
    row = sweep.one(_expiration_slot=SLOT + 1)
    sweep.change_one(row, _insertion_slot=SLOT - 6)
    assert failed(sweep) == {"old_insertion_slots"}


def test_a_row_that_was_inserted_in_the_future(sweep: Wrong) -> None:
    row = sweep.one(_expiration_slot=SLOT + 1)
    sweep.change_one(row, _insertion_slot=SLOT + 1)
    assert failed(sweep) == {"new_insertion_slots"}


def test_two_rows_in_each_others_cells(grid: Wrong) -> None:
    """As many rows in every cell as before."""
    one, other = grid.one(_g=0, _e=0), grid.one(_g=1, _e=1)
    cells = {one["id"]: (1, 1), other["id"]: (0, 0)}

    def exchanged(rows: list[Stored]) -> list[Stored]:
        return [
            row | dict(zip(("_g", "_e"), cells.get(row["id"], (row["_g"], row["_e"])), strict=True))
            for row in rows
        ]

    grid.rewrite(exchanged, grid.note())
    assert failed(grid) == {"placement"}


def test_a_row_left_in_the_log_after_its_sweep(tables: Tables, tmp_path: Path) -> None:
    """Slot 7 sweeps the group of slots 1, 4, 7, 10: a row of slot 6 no longer waits there."""
    wrong = tables.copy("sweep_with_log", tmp_path / "copy")
    row = wrong.one(_insertion_slot=6, _expiration_slot=10)
    assert (row["_g"], row["_e"]) == (0, 0)
    wrong.append([row | {"_g": 1, "_e": -1}], wrong.note(live=127))
    assert "placement" in failed(wrong)


def test_an_expiration_time_of_another_slot(sweep: Wrong) -> None:
    """The row dies two slots later than its slot says."""
    row = sweep.one(_expiration_slot=SLOT + 6)
    sweep.change_one(row, expires_at=at(SLOT + 7.5))
    assert failed(sweep) == {"slots_of_times"}


@pytest.mark.parametrize("key", [None, ""])
def test_a_row_without_a_key(sweep: Wrong, key: str | None) -> None:
    sweep.change_one(sweep.rows()[0], key=key)
    assert failed(sweep) == {"key"}


@pytest.mark.parametrize("column", ["inserted_at", "expires_at"])
def test_a_row_without_a_time(sweep: Wrong, column: str) -> None:
    sweep.change_one(sweep.one(_expiration_slot=SLOT + 3), **{column: None})
    assert failed(sweep) == {"times"}


@pytest.mark.parametrize("column", ["_insertion_slot", "_expiration_slot"])
def test_a_row_without_a_slot(sweep: Wrong, column: str) -> None:
    sweep.change_one(sweep.one(_expiration_slot=SLOT + 3), **{column: None})
    assert failed(sweep) == {"slots"}


# -- the books -------------------------------------------------------------------------------------


def test_a_lost_row(sweep: Wrong) -> None:
    sweep.rewrite(lambda rows: rows[1:], sweep.note())
    assert failed(sweep) == {"live_rows", "live_rows_by_group"}


def test_a_lost_row_that_another_one_makes_up_for(sweep: Wrong) -> None:
    """The number is right, but not that of the two groups."""
    lost, twice = sweep.one(_e=0), sweep.one(_e=1)
    sweep.rewrite(
        lambda rows: [row for row in rows if row["id"] != lost["id"]] + [twice], sweep.note()
    )
    assert failed(sweep) == {"live_rows_by_group"}


def test_a_forecast_that_does_not_add_up(sweep: Wrong) -> None:
    forecast = dict(sweep.state.note.live_by_expiration)
    forecast[SLOT + 1] += 1
    sweep.rewrite(lambda rows: rows, sweep.note(live_by_expiration=forecast))
    assert failed(sweep) == {"forecast", "live_rows_by_group"}


def test_a_row_read_that_nobody_accounts_for(sweep: Wrong) -> None:
    sweep.rewrite(lambda rows: rows, sweep.note(read=1))
    assert failed(sweep) == {"read_law"}


def test_live_rows_that_do_not_follow_from_those_before(sweep: Wrong) -> None:
    sweep.rewrite(lambda rows: rows, sweep.note(read=1, inserted=1))
    assert failed(sweep) == {"live_law"}


def test_too_many_bad_rows(tables: Tables, tmp_path: Path) -> None:
    """One of the 37 rows of slot 7 was bad. The update let it pass; the limit is lower by now."""
    right = tables.copy("sweep", tmp_path / "5", quality={"bad_rows_max": "5%"})
    assert judged(right).success
    for limit in ("2.7%", 0):
        wrong = tables.copy("sweep", tmp_path / str(limit), quality={"bad_rows_max": limit})
        outcome = judged(wrong)
        assert [finding.name for finding in outcome.failed] == ["bad_rows"]
        assert outcome.failed[0].observed == "1 of 37 (2.7%)"


def test_a_table_that_is_behind(sweep: Wrong) -> None:
    assert judged(sweep, SLOT).success
    assert judged(sweep, None).success
    assert judged(sweep, SLOT - 3).success
    assert failed(sweep, SLOT + 1) == {"fresh"}


# -- balance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_failure", ["fail", "warn"])
def test_more_files_than_the_yaml_allows(tables: Tables, tmp_path: Path, on_failure: str) -> None:
    quality = {**STRICT, "files_per_cell_max": 1, "on_failure": on_failure}
    wrong = tables.copy("sweep", tmp_path / "copy", quality=quality)
    outcome = judged(wrong)
    told = outcome.failed if on_failure == "fail" else outcome.warnings
    assert [finding.name for finding in told] == ["files"]
    assert outcome.success is (on_failure == "warn")


def test_more_files_than_the_scheme_leaves(grid: Wrong) -> None:
    """Rebuild leaves one; the rows of a cell are added one by one."""
    kept = [row for row in grid.rows() if (row["_g"], row["_e"]) != (1, 2)]
    apart = [row for row in grid.rows() if (row["_g"], row["_e"]) == (1, 2)]
    grid.rewrite(lambda _: kept, grid.note())
    for row in apart:
        grid.append([row], grid.note())
    outcome = judged(grid)
    assert [finding.name for finding in outcome.failed] == ["files"]
    assert f"at most {len(apart)}, in (1,2)" in outcome.failed[0].sentence


# -- the rows, each of them read -------------------------------------------------------------------


def check_rows(tables: Tables, wrong: Wrong) -> dict[str, int]:
    """What an update does after a commit when it is due: counts, and hands the counts over."""
    counted = row_figures(tables.spark, wrong.index, SLOT, log_of(wrong.index))
    state = wrong.state
    report = UpdateReport(
        slot=SLOT, as_of="", inserted=0, expired=0, dead_on_arrival=0, quarantined=0,
        live=state.note.live, rewritten_rows=0, written_bytes=0, cells=0, seconds=0.0,
        version=state.version, checks=counted,
    )  # fmt: skip
    Updates(wrong.index).record([report])
    return counted


def _change(expiration: int = 10, **changes: Any) -> Callable[[Wrong], None]:
    return lambda wrong: wrong.change_one(
        wrong.one(_insertion_slot=5, _expiration_slot=expiration), **changes
    )


WRONG_ROWS: dict[str, Callable[[Wrong], None]] = {
    "rows": lambda wrong: wrong.rewrite(lambda rows: rows[1:], wrong.note()),
    "expired": lambda wrong: wrong.append([wrong.new_row(5, SLOT)], wrong.note()),
    "insertion_out_of_range": _change(_insertion_slot=SLOT + 1),
    "expiration_out_of_range": _change(_insertion_slot=3),
    # Slots 3, 5 and 7 share a g: the statistics of the file show 3 and 7.
    "misplaced": _change(8, _insertion_slot=4),
    "no_key": _change(key=""),
    "no_inserted_at": _change(inserted_at=None),
    "no_expires_at": _change(expires_at=None),
    "wrong_expiration_slot": _change(expires_at=at(8.5)),
    "wrong_insertion_slot": _change(arrived_at=at(6.5)),
}


def test_no_count_of_the_rows_is_left_out() -> None:
    assert tuple(WRONG_ROWS) == CHECKED_ROWS


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_a_row_that_is_wrong_is_found_when_all_are_read(
    tables: Tables, grid: Wrong, name: str
) -> None:
    WRONG_ROWS[name](grid)
    counted = check_rows(tables, grid)
    assert counted[name] == (grid.state.note.live - 1 if name == "rows" else 1)
    assert ("rows_read" if name == "rows" else f"rows_{name}") in failed(grid)


def test_reading_all_rows_finds_what_statistics_do_not_show(tables: Tables, grid: Wrong) -> None:
    """A row of slot 5 that says it is of slot 4, between the least and the greatest of its file."""
    WRONG_ROWS["misplaced"](grid)
    assert judged(grid).success
    counted = check_rows(tables, grid)
    assert {name for name, rows in counted.items() if rows} == {"rows", "misplaced",
                                                               "wrong_insertion_slot"}  # fmt: skip
    assert failed(grid) == {"rows_misplaced", "rows_wrong_insertion_slot"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_rows_of_a_right_table_are_right(tables: Tables, tmp_path: Path, scheme: str) -> None:
    right = tables.copy(scheme, tmp_path / "copy")
    counted = row_figures(tables.spark, right.index, SLOT, log_of(right.index))
    assert counted == {**dict.fromkeys(CHECKED_ROWS, 0), "rows": 126}
    earlier = open_log(right.index.table, right.state.version - 1)
    assert earlier is not None
    before = row_figures(tables.spark, right.index, SLOT - 1, earlier)
    assert before == counted


def test_a_row_in_the_log_after_its_sweep_is_misplaced(tables: Tables, tmp_path: Path) -> None:
    wrong = tables.copy("sweep_with_log", tmp_path / "copy")
    waiting = wrong.one(_g=1, _e=-1)
    swept = wrong.one(_insertion_slot=6, _expiration_slot=10)
    wrong.append([swept | {"_g": 1, "_e": -1}, waiting], wrong.note())
    assert row_figures(tables.spark, wrong.index, SLOT, log_of(wrong.index))["misplaced"] == 1


def test_what_an_earlier_update_counted_does_not_count_for_this_one(
    tables: Tables, sweep: Wrong
) -> None:
    """A commit that read no row leaves these checks without anything to look at."""
    assert judged(sweep).figures["checks"]["rows"] == 126
    sweep.rewrite(lambda rows: rows, sweep.note())
    assert judged(sweep).figures["checks"] is None
    skipped = [check.name for check in checks(gather(sweep.index)) if check.skipped]
    of_rows = [f"rows_{name}" for name in CHECKED_ROWS[1:]]
    of_source = ["folders", "volume", "against_source"]
    assert skipped == ["rows_read", *of_rows, "fresh", *of_source]
