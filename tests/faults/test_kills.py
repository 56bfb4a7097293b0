"""Twenty kills -9 of a whole process group, at every named step and at random times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.killed import Kill, Killing, nursery
from tests.faults.victim import Nursery
from tidetable.table.steps import Step

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AT_STEPS = {
    "sweep": [
        Kill("update", Step.TABLE_CREATED),
        Kill("update", Step.QUARANTINE_WRITTEN),
        Kill("update", Step.FILES_WRITTEN),
        Kill("update", Step.COMMITTED),
        Kill("rebuild", Step.COMMITTED),
        Kill("replay", Step.COMMITTED),
        Kill("maintain", Step.CHECKPOINTED),
        Kill("purge", Step.FILES_DELETED),
    ],
    "no_rebuild": [
        Kill("update", Step.QUARANTINE_WRITTEN),
        Kill("update", Step.PLAN_MADE),
        Kill("update", Step.FILES_WRITTEN),
        Kill("update", Step.COMMITTED),
        Kill("rebuild", Step.FILES_WRITTEN),
        Kill("replay", Step.PLAN_MADE, times=2),
        Kill("maintain", Step.GARBAGE_FOUND),
        Kill("update", Step.RECORDED),
    ],
}
AT_RANDOM_TIMES = [Kill("update", None), Kill("update", None, alone=True)]


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[str, Nursery]]:
    with nursery() as both:
        yield both


@pytest.mark.parametrize("scheme", AT_STEPS)
def test_a_killed_writer_leaves_a_right_table_from_which_the_next_one_goes_on(
    clients: tuple[str, Nursery], tmp_path: Path, scheme: str
) -> None:
    killing = Killing(*clients, tmp_path, scheme, seed=1)
    at_steps = AT_STEPS[scheme]
    killing.play([*at_steps, *AT_RANDOM_TIMES])
    let_through = [step for step in killing.steps if "was done before" in step]
    assert len(let_through) <= len(AT_RANDOM_TIMES), let_through
    assert not any("at '" in step for step in let_through), let_through
