"""What is left of a plan once the metadata of the table has been seen."""

from __future__ import annotations

import pytest

from tidetable.core.cell import LOG, Cell, CellState
from tidetable.core.plan import Action, Plan, Reason, Touch
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers

A, B, C = Cell(0, 0), Cell(0, 1), Cell(1, 0)
REBUILD = Rebuild(8, 2, 2)
NO_REBUILD = NoRebuild(8, 2, 2)
SWEEP = Sweep(8, 2)
SWEEP_LOG = Sweep(8, 2, deletion_vectors=True)


def held(first: int, last: int, files: int = 1) -> CellState:
    return CellState(rows=5, files=files, bytes=500, first_expiration=first, last_expiration=last)


def pruned(
    scheme: Scheme, states: dict[Cell, CellState], arrivals: dict[Cell, int], slot: int = 9
) -> Plan:
    return scheme.plan(slot).pruned(states, arrivals, merges=scheme.merges)


def actions(plan: Plan) -> dict[str, str]:
    return {str(cell): plan.touched[cell].action.value for cell in plan.cells()}


def test_an_update_of_an_empty_table_without_rows_touches_nothing() -> None:
    for scheme in (REBUILD, NO_REBUILD, SWEEP, SWEEP_LOG):
        plan = pruned(scheme, {}, {})
        assert not plan.touched
        assert not plan.moves
        assert (plan.first, plan.last) == (9, 9)


def test_a_cell_that_gets_no_row_and_loses_none_is_left_alone() -> None:
    states = {A: held(10, 12), B: held(10, 12), C: held(9, 12)}
    assert actions(pruned(REBUILD, states, {B: 1})) == {"(0,1)": "rewrite", "(1,0)": "rewrite"}
    assert actions(pruned(NO_REBUILD, states, {B: 1})) == {"(0,1)": "append", "(1,0)": "expire"}


@pytest.mark.parametrize(
    ("first_expiration", "arrivals", "action"),
    [(9, 1, "append+expire"), (10, 1, "append"), (9, 0, "expire")],
)
def test_where_insertions_and_expirations_cross_only_what_happens_is_done(
    first_expiration: int, arrivals: int, action: str
) -> None:
    plan = pruned(NO_REBUILD, {A: held(first_expiration, 12)}, {A: arrivals})
    assert actions(plan) == {"(0,0)": action}


def test_a_cell_in_which_every_row_expires_is_dropped_unread() -> None:
    states = {A: held(9, 9), B: held(10, 12), C: held(8, 9)}
    for scheme in (REBUILD, NO_REBUILD):
        assert actions(pruned(scheme, states, {})) == {"(0,0)": "drop", "(1,0)": "drop"}
    assert pruned(REBUILD, states, {A: 1}).touched[A].action is Action.REWRITE
    assert pruned(NO_REBUILD, states, {A: 1}).touched[A].action is Action.APPEND_AND_EXPIRE


def test_what_is_not_known_is_not_left_out_and_not_dropped() -> None:
    unknown = CellState(rows=5, files=1)
    assert actions(pruned(REBUILD, {A: unknown}, {})) == {"(0,0)": "rewrite"}
    assert actions(pruned(NO_REBUILD, {A: unknown}, {})) == {"(0,0)": "expire"}


def test_a_sweep_that_can_merge_files_is_worth_its_while() -> None:
    assert actions(pruned(SWEEP, {A: held(10, 12, files=2)}, {})) == {"(0,0)": "rewrite"}
    assert actions(pruned(SWEEP, {A: held(10, 12, files=1)}, {})) == {}
    assert actions(pruned(REBUILD, {A: held(10, 12, files=2)}, {})) == {}


def test_a_group_is_swept_while_the_log_may_hold_rows_of_it() -> None:
    plan = pruned(SWEEP_LOG, {A: held(11, 13), LOG: held(10, 12)}, {})
    assert actions(plan) == {"(0,0)": "rewrite", "log": "expire"}
    assert set(plan.moves) == {LOG}


def test_a_group_is_not_swept_if_log_and_base_have_nothing_for_it() -> None:
    """The new rows of other groups are appended to the log all the same."""
    plan = pruned(SWEEP_LOG, {A: held(11, 13)}, {LOG: 3})
    assert actions(plan) == {"log": "append"}
    assert not plan.moves


def test_a_log_of_expired_rows_is_dropped_and_feeds_nobody() -> None:
    plan = pruned(SWEEP_LOG, {A: held(9, 9), LOG: held(9, 9)}, {})
    assert actions(plan) == {"(0,0)": "drop", "log": "drop"}
    plan = pruned(SWEEP_LOG, {A: held(11, 13), LOG: held(9, 9)}, {A: 1})
    assert actions(plan) == {"(0,0)": "rewrite", "log": "drop"}
    assert not plan.moves


def test_a_base_cell_of_expired_rows_is_rewritten_if_the_log_feeds_it() -> None:
    plan = pruned(SWEEP_LOG, {A: held(9, 9), LOG: held(9, 12)}, {})
    assert actions(plan) == {"(0,0)": "rewrite", "log": "expire"}


def test_between_two_sweeps_rows_expire_in_the_log_only_if_some_do() -> None:
    scheme = Sweep(8, 2, 2, deletion_vectors=True)
    assert not scheme.plan(3).moves
    assert actions(pruned(scheme, {LOG: held(4, 6)}, {LOG: 1}, slot=3)) == {"log": "append"}
    assert actions(pruned(scheme, {LOG: held(3, 6)}, {}, slot=3)) == {"log": "expire"}


TIERS = Tiers(16, 2, 2)  # slot 7 is sweep 4 of group 0: levels 0 and 1 become a run of level 2
LEVELS = [Cell(level, 0) for level in range(3)]


def test_runs_without_a_live_row_are_dropped_and_not_merged() -> None:
    states = {LEVELS[0]: held(5, 7), LEVELS[1]: held(9, 12), LEVELS[2]: held(9, 20)}
    plan = pruned(TIERS, states, {}, slot=7)
    assert actions(plan) == {"(0,0)": "drop", "(1,0)": "move", "(2,0)": "append"}
    assert set(plan.moves) == {LEVELS[1]}
    assert plan.touched[LEVELS[2]].why == "rows of other cells come in"


def test_a_level_with_nothing_to_merge_takes_the_new_run_only() -> None:
    plan = pruned(TIERS, {LEVELS[2]: held(7, 20)}, {LEVELS[2]: 1}, slot=7)
    assert actions(plan) == {"(2,0)": "append+expire"}
    assert not plan.moves


def test_in_a_fold_an_emptied_level_may_take_new_rows() -> None:
    fold = TIERS.fold(6, 10)
    arrivals = {LEVELS[0]: 1}
    kept = fold.pruned({LEVELS[0]: held(11, 12)}, arrivals, merges=False)
    assert actions(kept) == {"(0,0)": "move", "(2,0)": "append"}
    fresh = fold.pruned({}, arrivals, merges=False)
    assert actions(fresh) == {"(0,0)": "append"}


def test_cells_are_listed_in_order_and_by_action() -> None:
    plan = NO_REBUILD.plan(10)
    assert list(plan.cells()) == [Cell(0, 1), Cell(1, 0), Cell(1, 1)]
    assert list(plan.cells(Action.EXPIRE, Action.APPEND)) == [Cell(0, 1), Cell(1, 0)]
    assert not plan.is_fold
    assert NO_REBUILD.fold(9, 10).is_fold


@pytest.mark.parametrize(
    ("touch", "takes", "why"),
    [
        (
            Touch(Action.REWRITE, Reason.TAKES | Reason.EXPIRES),
            True,
            "takes new rows and rows expire",
        ),
        (Touch(Action.APPEND, Reason.COMES_IN), True, "rows of other cells come in"),
        (Touch(Action.EXPIRE, Reason.LEAVES), False, "rows of swept groups leave"),
        (
            Touch(Action.APPEND_AND_EXPIRE, Reason.TAKES | Reason.LEAVES | Reason.EXPIRES),
            True,
            "takes new rows and rows of swept groups leave and rows expire",
        ),
        (
            Touch(Action.REWRITE, Reason.SWEPT | Reason.EXPIRES | Reason.FROM_LOG),
            False,
            "swept: rows expire and rows of the log come in",
        ),
        (
            Touch(Action.APPEND_AND_EXPIRE, Reason.TAKES_LOG),
            True,
            "takes the log and new rows, and rows expire",
        ),
        (Touch(Action.MOVE, Reason.MERGED_UP, 2), False, "merged into a run of level 2"),
        (Touch(Action.DROP, Reason.GONE), False, "every row in it has expired"),
    ],
)
def test_a_reason_is_data_and_a_sentence_for_people(touch: Touch, takes: bool, why: str) -> None:
    assert (touch.takes_new_rows, touch.why) == (takes, why)


def test_each_reason_has_words() -> None:
    for reason in Reason:
        assert Touch(Action.REWRITE, reason).why
