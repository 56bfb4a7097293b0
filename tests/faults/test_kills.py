"""Twenty kills -9 of a whole process group, at every named step and at random times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.killed import Kill, Killing, nursery
from tests.faults.victim import Nursery
from tidetable.delta.steps import Step

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AT_STEPS = [
    Kill("update", Step.TABLE_CREATED),
    Kill("update", Step.QUARANTINE_WRITTEN),
    Kill("update", Step.PLAN_MADE),
    Kill("update", Step.COMMITTED),
    Kill("rebuild", Step.COMMITTED),
    Kill("replay", Step.RECORDED),
    Kill("update", Step.FILES_WRITTEN),
    Kill("update", None),
]
ALONE = [
    Kill("update", None, alone=True),
    Kill("update", None, alone=True),
]


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[str, Nursery]]:
    with nursery() as both:
        yield both


@pytest.mark.parametrize("scheme", ["sweep", "no_rebuild"])
def test_a_killed_writer_leaves_a_right_table_from_which_the_next_one_goes_on(
    clients: tuple[str, Nursery], tmp_path: Path, scheme: str
) -> None:
    killing = Killing(*clients, tmp_path, scheme, seed=1)
    kills = [*AT_STEPS, *ALONE]
    killing.play(kills)
    assert killing.kills >= 8, killing.steps
