"""The figures of long windows: Tiers as its definition has them, and Sweep with a merged log."""

from __future__ import annotations

from itertools import islice
from statistics import mean

import pytest

from tests.papers.tiers_in_steps import in_steps
from tidetable.core.schemes import Sweep, Tiers
from tidetable.core.simulate import Simulation, simulate

# scheme, written avg, written max, files avg, files max, dead
TABLE: list[tuple[Tiers, float, float, float, int, float]] = [
    (Tiers(36, 4, 4), 2.42, 4.67, 18.0, 23, 0.46),
    (Tiers(144, 4, 4), 3.44, 17.81, 24.0, 35, 0.48),
    (Tiers(144, 1, 8), 2.76, 58.81, 9.2, 16, 0.49),
    (Tiers(720, 4, 4), 4.49, 73.50, 32.3, 47, 0.49),
    (Tiers(720, 1, 4), 4.73, 292.69, 8.8, 14, 0.49),
]
each_row = pytest.mark.parametrize(
    ("scheme", "written_avg", "written_max", "files_avg", "files_max", "dead"),
    TABLE,
    ids=[f"p={row[0].period} {row[0].label}" for row in TABLE],
)


@each_row
def test_a_row_of_the_table(
    scheme: Tiers,
    written_avg: float,
    written_max: float,
    files_avg: float,
    files_max: int,
    dead: float,
) -> None:
    """Files and dead rows are those of the table.

    Its "written" counts every run on the way to the level at which an update leaves the rows. Ours
    writes the last of these runs only, so it writes less.
    """
    found = simulate(scheme)
    assert found.files_avg == pytest.approx(files_avg, rel=0.02)
    assert found.files_max == files_max
    assert found.dead_avg == pytest.approx(dead, rel=0.02)
    assert found.written_avg < written_avg
    assert found.written_max < written_max

    updates = scheme.period + 2 * scheme.cycle
    steps = list(islice(in_steps(scheme.period, scheme.groups, scheme.fan_in, updates),
                        updates - scheme.cycle, None))  # fmt: skip
    written = [update.written / scheme.period for update in steps]
    assert mean(written) == pytest.approx(written_avg, rel=0.02)
    assert max(written) == pytest.approx(written_max, rel=0.02)
    # Step by step or at once, the same is left after each update.
    assert [(u.files, u.live, u.stored) for u in found.updates] == [step[1:] for step in steps]


def figures(found: Simulation) -> tuple[float, ...]:
    return (
        round(found.written_avg, 2),
        round(found.written_max, 2),
        round(found.files_avg, 1),
        found.files_max,
        round(found.dead_avg, 2),
    )


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        (Sweep(720, 24, 1, deletion_vectors=True), (15.5, 15.5, 47, 47, 0.03)),
        (Sweep(720, 27, 4, deletion_vectors=True), (4.21, 13.84, 132.4, 134, 0.2)),
        (Tiers(720, 4, 4), (3.77, 53.28, 32.2, 47, 0.49)),
        (Tiers(720, 1, 8), (3.23, 330.31, 11.9, 22, 0.48)),
    ],
    ids=lambda one: getattr(one, "label", ""),
)
def test_what_else_there_is_for_720_slots(
    scheme: Sweep | Tiers, expected: tuple[float, ...]
) -> None:
    assert figures(simulate(scheme)) == expected


def test_sweep_with_a_merged_log_is_even_and_sparing_at_720_slots() -> None:
    """At most 6 rows written per row inserted, 15 by the largest update, 50 files, 0.25 dead."""
    found = simulate(Sweep(720, 27, 4, deletion_vectors=True, merge_log=8))
    assert figures(found) == (5.04, 13.84, 43.8, 48, 0.2)
    assert found.written_avg <= 6
    assert found.written_max <= 15
    assert found.files_max <= 50
    assert found.dead_avg <= 0.25


def test_no_update_sweeps_a_group_and_merges_the_log() -> None:
    for groups in range(1, 9):
        for every in range(2, 6):
            for merge_log in range(2, groups * every):
                scheme = Sweep(40, groups, every, deletion_vectors=True, merge_log=merge_log)
                merges = [slot for slot in range(1, 200) if scheme.merged_by(slot) == slot]
                assert not any(scheme.sweeps(slot) for slot in merges)
                # One in every `merge_log` updates, unless all of these sweep a group.
                windows = [(slot - 1) // merge_log for slot in merges]
                assert len(set(windows)) == len(windows)
                missing = set(range(windows[-1])) - set(windows)
                assert not missing or merge_log == 2
