"""What a scheme's plans touch, and where rows go under them."""

from __future__ import annotations

import pytest

from tests.core.datafusion import evaluated
from tidetable.core.cell import LOG, Cell
from tidetable.core.errors import UserError
from tidetable.core.placement import Placement
from tidetable.core.plan import Action, Plan
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep

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
]
each_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.label)


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
            assert fold.swept == {k: j for plan in plans for k, j in plan.swept.items()}


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
    assert plan.swept == {1: 5}
    assert plan.takes_from_log


def test_sweep_between_two_sweeps_expires_in_place() -> None:
    """Sweep(4, 2): ((j-1) div E + k) mod m is 1 for j = 2, so group 1 must wait."""
    plan = Sweep(8, 4, 2, deletion_vectors=True).plan(2)
    assert actions(plan) == {"(0,1)": "expire", "log": "append+expire"}
    assert not plan.swept
    assert not plan.takes_from_log


def test_sweep_takes_each_group_every_mth_time_and_spreads_the_groups() -> None:
    sweep = Sweep(36, 4, 3, deletion_vectors=True)
    swept = [slot for slot in range(1, 25) if sweep.plan(slot).swept]
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
    assert plan.swept == {0: 5, 1: 6, 2: 7}
    assert sweep.cell_of(6, 10, plan) == Cell(0, 1)
    assert sweep.cell_of(7, 10, plan) == LOG
    assert sweep.cell_of(5, 12, plan) == LOG


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
