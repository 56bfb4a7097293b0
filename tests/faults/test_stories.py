"""Three windows of every scheme family, with replays, rebuilds, maintenance and crashes in between.

`make faults` tells others; a failure says by which line it is told again.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.faults.story import SCHEMES, SLOTS, tell

pytestmark = pytest.mark.spark

SEEDS = dict.fromkeys(SCHEMES, 1)
"""The same stories in every run."""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_after_every_step_of_a_long_story_the_table_holds_exactly_the_live_rows(
    spark: SparkSession, scheme: str
) -> None:
    story = tell(spark, scheme, SEEDS[scheme])
    assert story.slot >= SLOTS
    assert story.crashes > 0
