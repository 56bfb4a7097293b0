"""What a scheme's plans touch, and where rows go under them."""

from __future__ import annotations

import pytest

from tests.core.datafusion import evaluated
from tidetable.core.cell import LOG, MERGED_LOG, Cell
from tidetable.core.errors import UserError
from tidetable.core.placement import Placement
from tidetable.core.plan import Action, Plan, Route
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers

CHR = Placement.CHRONOLOGICAL

SCHEMES: list[Scheme] = [
    Rebuild(8, 2, 2),
    Rebuild(8, 3, 2, CHR),
    Rebuild.by_insertion(8, 4),
    Rebuild.by_expiration(8, 3),
    NoRebuild(8, 3, 4),
    NoRebuild(7, 2, 3, CHR),
    Sweep(8, 1),
    Sweep(8, 4),
    Sweep(7, 7),
    Sweep(8, 1, 1, deletion_vectors=True),
    Sweep(8, 1, 3, deletion_vectors=True),
    Sweep(8, 3, 1, deletion_vectors=True),
    Sweep(8, 3, 2, deletion_vectors=True),
    Sweep(8, 3, 2, deletion_vectors=True, merge_log=4),
    Sweep(8, 2, 2, deletion_vectors=True, merge_log=2),
    Tiers(8, 1, 2),
    Tiers(8, 3, 2),
    Tiers(12, 2, 3),
]
each_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.label)


@pytest.mark.parametrize(
    ("scheme", "label", "short"),
    [
        (Rebuild(8, 4, 4), "Rebuild 4x4 round-robin", "Rebuild 4x4"),
        (NoRebuild(8, 4, 2, CHR), "NoRebuild 4x2 chronological", "NoRebuild 4x2 chron."),
        (Sweep(8, 8), "Sweep(8,1) without deletion vectors", "Sweep(8,1)"),
        (Sweep(9, 9, 2, deletion_vectors=True), "Sweep(9,2)", "Sweep(9,2)+log"),
        (
            Sweep(9, 9, 2, deletion_vectors=True, merge_log=4),
            "Sweep(9,2), log merged every 4",
            "Sweep(9,2)+log/4",
        ),
        (Rebuild.by_insertion(12, 12), "R-ins 12", "R-ins 12"),
        (Tiers(12, 2, 3), "Tiers(2,3)", "Tiers(2,3)"),
    ],
)
def test_a_scheme_has_a_label_and_a_shorter_one(scheme: Scheme, label: str, short: str) -> None:
    assert (scheme.label, scheme.short_label) == (label, short)


def actions(plan: Plan) -> dict[str, str]:
    return {str(cell): plan.touched[cell].action.value for cell in plan.cells()}


@each_scheme
def test_a_plan_is_a_fold_of_one_slot(scheme: Scheme) -> None:
    for slot in range(-20, 40):
        assert scheme.plan(slot) == scheme.fold(slot, slot)


@each_scheme
def test_plans_touch_cells_of_the_layout_only(scheme: Scheme) -> None:
    for first in range(-20, 20):
        for last in range(first, first + 20):
            assert set(scheme.fold(first, last).touched) <= set(scheme.cells())


@each_scheme
def test_a_fold_touches_what_its_slots_touch_one_by_one(scheme: Scheme) -> None:
    """However long it is: planning looks at one cycle of slots, and no more are needed."""
    for first in range(-5, 5):
        for last in range(first, first + 30):
            plans = [scheme.plan(slot) for slot in range(first, last + 1)]
            fold = scheme.fold(first, last)
            assert set(fold.touched) == {cell for plan in plans for cell in plan.touched}
            assert set(fold.moves) == {cell for plan in plans for cell in plan.moves}


@each_scheme
def test_sql_for_the_cell_is_the_same_function(scheme: Scheme) -> None:
    """For new rows of any plan, and for the initial load; negative slots included."""
    slots = [(i, i + lifetime) for i in range(-9, 21) for lifetime in range(1, 9)]
    for first, last in [(1, 1), (2, 2), (3, 3), (4, 4), (-3, -3), (1, 4), (5, 20)]:
        plan = scheme.fold(first, last)
        expected = [tuple(scheme.cell_of(*pair, plan)) for pair in slots]
        assert evaluated(scheme.cell_sql(plan, "ins", "exp"), slots) == expected
    expected = [tuple(scheme.initial_cell(*pair)) for pair in slots]
    assert evaluated(scheme.cell_sql(None, "ins", "exp"), slots) == expected


@each_scheme
def test_only_a_log_has_groups(scheme: Scheme) -> None:
    """The group of a row in the log is the base cell that it would go to."""
    sql = scheme.group_sql("exp")
    if LOG not in scheme.cells():
        assert sql is None
    else:
        assert sql is not None
        slots = [(0, expiration) for expiration in range(-9, 21)]
        assert evaluated([sql], slots) == [(scheme.initial_cell(*pair).e,) for pair in slots]


def test_rebuild_says_why_it_rewrites_a_cell() -> None:
    touched = Rebuild(8, 2, 2).plan(9).touched
    assert {touch.action for touch in touched.values()} == {Action.REWRITE}
    assert {str(cell): touch.why for cell, touch in touched.items()} == {
        "(0,0)": "takes new rows and rows expire",
        "(0,1)": "takes new rows",
        "(1,0)": "rows expire",
    }


def test_no_rebuild_appends_in_one_line_and_expires_in_the_other() -> None:
    assert actions(NoRebuild(8, 2, 2).plan(9)) == {
        "(0,0)": "append+expire",
        "(0,1)": "append",
        "(1,0)": "expire",
    }


def test_sweep_without_deletion_vectors_rewrites_one_group_and_appends_to_the_others() -> None:
    assert actions(Sweep(8, 3).plan(2)) == {
        "(0,0)": "append",
        "(0,1)": "rewrite",
        "(0,2)": "append",
    }


def test_sweep_with_a_log_touches_one_base_cell_and_the_log() -> None:
    plan = Sweep(8, 3, deletion_vectors=True).plan(5)
    assert actions(plan) == {"(0,1)": "rewrite", "log": "append+expire"}
    assert plan.moves == {LOG: Route({1: Cell(0, 1)})}


def test_sweep_between_two_sweeps_expires_in_place() -> None:
    """Sweep(4, 2): ((j-1) div E + k) mod m is 1 for j = 2, so group 1 must wait."""
    plan = Sweep(8, 4, 2, deletion_vectors=True).plan(2)
    assert actions(plan) == {"(0,1)": "expire", "log": "append+expire"}
    assert not plan.moves


def test_sweep_takes_each_group_every_mth_time_and_spreads_the_groups() -> None:
    sweep = Sweep(36, 4, 3, deletion_vectors=True)
    swept = [slot for slot in range(1, 25) if sweep.plan(slot).moves]
    assert swept == [1, 4, 7, 10, 13, 16, 19, 22]


def test_sweep_of_one_group_each_time_never_has_a_log() -> None:
    """Sweep(1, 1) rewrites everything at each update."""
    assert actions(Sweep(8, 1, deletion_vectors=True).plan(5)) == {"(0,0)": "rewrite"}


def test_sweep_of_one_group_now_and_then_is_append_delete_optimize() -> None:
    sweep = Sweep(8, 1, 3, deletion_vectors=True)
    assert actions(sweep.plan(4)) == {"(0,0)": "rewrite", "log": "expire"}
    assert actions(sweep.plan(5)) == {"(0,0)": "expire", "log": "append+expire"}


def test_in_a_fold_rows_that_arrived_after_their_groups_sweep_stay_in_the_log() -> None:
    sweep = Sweep(8, 4, deletion_vectors=True)
    plan = sweep.fold(5, 7)
    assert plan.moves == {LOG: Route({k: Cell(0, k) for k in range(3)})}
    assert sweep.cell_of(6, 10, plan) == Cell(0, 1)
    assert sweep.cell_of(7, 10, plan) == LOG
    assert sweep.cell_of(5, 12, plan) == LOG


def test_sweep_merges_its_log_at_the_first_of_c_updates_that_sweeps_no_group() -> None:
    """Sweep(3, 2) sweeps at 1, 3, 5, ...: of 1 to 4, of 5 to 8 and so on the second is free."""
    sweep = Sweep(8, 3, 2, deletion_vectors=True, merge_log=4)
    assert [slot for slot in range(1, 13) if sweep.sweeps(slot)] == [1, 3, 5, 7, 9, 11]
    assert [slot for slot in range(1, 13) if sweep.merged_by(slot) == slot] == [2, 6, 10]
    plan = sweep.plan(6)
    assert actions(plan) == {"(0,2)": "expire", "log": "move", "merged log": "append+expire"}
    assert plan.moves == {LOG: Route(rest=MERGED_LOG)}
    assert sweep.cell_of(6, 12, plan) == MERGED_LOG


def test_sweep_takes_rows_from_both_logs() -> None:
    plan = Sweep(8, 3, 2, deletion_vectors=True, merge_log=4).plan(7)
    assert actions(plan) == {"(0,0)": "rewrite", "log": "append+expire", "merged log": "expire"}
    assert plan.moves == dict.fromkeys((LOG, MERGED_LOG), Route({0: Cell(0, 0)}))


def test_in_a_fold_what_a_sweep_took_is_not_merged_and_new_rows_may_stay_in_the_log() -> None:
    sweep = Sweep(8, 3, 2, deletion_vectors=True, merge_log=4)
    plan = sweep.fold(6, 7)
    assert plan.moves[LOG] == Route({0: Cell(0, 0)}, MERGED_LOG)
    assert plan.moves[MERGED_LOG] == Route({0: Cell(0, 0)})
    assert sweep.cell_of(6, 11, plan) == MERGED_LOG
    assert sweep.cell_of(7, 11, plan) == LOG
    assert sweep.cell_of(7, 13, plan) == Cell(0, 0)


@pytest.mark.parametrize(("groups", "every", "merge_log"), [(3, 1, 2), (3, 2, 6), (3, 2, 1)])
def test_a_log_is_merged_only_where_that_helps(groups: int, every: int, merge_log: int) -> None:
    with pytest.raises(UserError, match="no merge_log"):
        Sweep(8, groups, every, deletion_vectors=True, merge_log=merge_log)


def test_tiers_writes_a_run_of_the_level_that_its_counter_says() -> None:
    """Group 0 of Tiers(2, 3) is swept at 1, 3, 5, ...: sweep 3 makes level 1, sweep 9 level 2."""
    tiers = Tiers(40, 2, 3)
    levels = [
        next(cell.g for cell in plan.cells(Action.APPEND_AND_EXPIRE) if not cell.is_log)
        for plan in (tiers.plan(slot) for slot in range(1, 19, 2))
    ]
    assert levels == [0, 0, 1, 0, 0, 1, 0, 0, 2]


def test_tiers_merges_all_lower_levels_in_one_step() -> None:
    plan = Tiers(40, 2, 3).plan(17)
    assert actions(plan) == {
        "(0,0)": "move",
        "(1,0)": "move",
        "(2,0)": "append+expire",
        "(3,0)": "expire",
        "log": "append+expire",
    }
    top = Cell(2, 0)
    assert plan.moves == {
        Cell(0, 0): Route(rest=top),
        Cell(1, 0): Route(rest=top),
        LOG: Route({0: top}),
    }


@pytest.mark.parametrize(
    ("scheme", "top"), [(Tiers(36, 4, 4), 1), (Tiers(12, 4, 4), 0), (Tiers(13, 4, 4), 1)]
)
def test_of_the_top_level_of_tiers_t_runs_are_never_alive_at_once(scheme: Tiers, top: int) -> None:
    """So they need not be merged. A load goes there too."""
    assert scheme.top == top
    assert scheme.initial_cell(0, 5) == Cell(top, 0)


def test_rows_of_tiers_go_up_level_by_level() -> None:
    tiers = Tiers(40, 2, 3)
    seen = [str(tiers.cell_of(2, 21, tiers.plan(slot))) for slot in (2, 3, 4, 5, 6, 16, 17, 52, 53)]
    assert seen == ["log", "(0,0)", "(0,0)", "(1,0)", "(1,0)", "(1,0)", "(2,0)", "(2,0)", "(3,0)"]


def test_tiers_merges_two_runs_at_least() -> None:
    with pytest.raises(UserError, match="2 or more"):
        Tiers(8, 2, 1)


@pytest.mark.parametrize(
    ("scheme", "name", "label", "deletion_vectors"),
    [
        (Rebuild(36, 4, 4), "rebuild", "Rebuild 4x4 round-robin", False),
        (Rebuild(36, 4, 3, CHR), "rebuild", "Rebuild 4x3 chronological", False),
        (Rebuild.by_insertion(36, 12), "rebuild", "R-ins 12", False),
        (Rebuild.by_expiration(36, 12), "rebuild", "R-exp 12", False),
        (NoRebuild(36, 3, 3), "no_rebuild", "NoRebuild 3x3 round-robin", True),
        (NoRebuild.by_insertion(36, 4), "no_rebuild", "D-ins 4", True),
        (NoRebuild.by_expiration(36, 4), "no_rebuild", "D-exp 4", True),
        (Sweep(36, 8, deletion_vectors=True), "sweep", "Sweep(8,1)", True),
        (Sweep(36, 8), "sweep", "Sweep(8,1) without deletion vectors", False),
        (
            Sweep(36, 8, 2, deletion_vectors=True, merge_log=4),
            "sweep",
            "Sweep(8,2), log merged every 4",
            True,
        ),
        (Tiers(36, 4, 3), "tiers", "Tiers(4,3)", True),
    ],
)
def test_schemes_have_the_papers_names(
    scheme: Scheme, name: str, label: str, deletion_vectors: bool
) -> None:
    assert scheme.name == name
    assert scheme.label == label
    assert scheme.uses_deletion_vectors is deletion_vectors


def test_no_dimension_may_have_more_parts_than_the_window_has_slots() -> None:
    for make in (
        lambda: Rebuild(8, 9, 2),
        lambda: Rebuild(8, 2, 0),
        lambda: NoRebuild(8, 2, 9),
        lambda: Sweep(8, 9),
        lambda: Sweep(8, 0),
        lambda: Tiers(8, 9, 2),
    ):
        with pytest.raises(UserError, match="from 1 to 8"):
            make()


def test_sweeping_less_often_needs_deletion_vectors() -> None:
    with pytest.raises(UserError, match="deletion_vectors: true"):
        Sweep(8, 4, 2)
    with pytest.raises(UserError, match="1 or more"):
        Sweep(8, 4, 0, deletion_vectors=True)


@each_scheme
def test_a_fold_must_not_run_backwards(scheme: Scheme) -> None:
    with pytest.raises(UserError, match="slots 5 to 4"):
        scheme.fold(5, 4)
