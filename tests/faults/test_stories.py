"""Three windows of every scheme family, with replays, rebuilds, maintenance and crashes in between.

`make faults` tells others; a failure says by which line it is told again.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.faults.story import SLOTS, tell

pytestmark = pytest.mark.spark

SEEDS = {"rebuild": 1, "no_rebuild": 1, "sweep": 1, "sweep_with_log": 1, "tiers": 1}
"""The same story of each family in every run."""


@pytest.mark.parametrize("scheme", SEEDS)
def test_after_every_step_of_a_long_story_the_table_holds_exactly_the_live_rows(
    spark: SparkSession, scheme: str
) -> None:
    story = tell(spark, scheme, SEEDS[scheme])
    assert story.slot >= SLOTS
    assert story.crashes > 0
