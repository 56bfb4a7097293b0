"""Two operations that meet: the pairs that were once wrong, and a sample of all the others."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.faults.pairs import Pair, Worlds, spread, tried

pytestmark = pytest.mark.spark

ONCE_WRONG = [
    # A replay between an update's plan and its commit: rows lost, expired ones back.
    "vectors/update/plan_made/replay",
    "vectors/update/files_written/replay",
    "plain/update/plan_made/replay",
    # What a stranger changed there was buried.
    "vectors/update/plan_made/change",
    "vectors/update/files_written/delete",
    "vectors/update/plan_made/append",
    # A replay that had looked undid an update that came between.
    "vectors/replay/plan_made/update",
    "plain/replay/plan_made/update",
    # What a purge takes a replay must not put back.
    "vectors/purge/garbage_found/replay",
    "vectors/purge/files_deleted/replay",
    # The quarantine was doubled when a single update lost to a fold.
    "plain/update/quarantine_written/fold",
    "vectors/fold/quarantine_written/update",
    # A CREATE killed between the folder and its first load.
    "plain/create_again/table_created/create",
    # delta-rs's and Spark's ADD COLUMN was taken for damage, or stopped the index.
    "vectors/update/plan_made/column",
]
SAMPLE = 10
SEED = 14


@pytest.fixture(scope="module")
def worlds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(spark, tmp_path_factory.mktemp("pairs"))


@pytest.mark.parametrize("text", ONCE_WRONG)
def test_a_pair_that_was_once_wrong(worlds: Worlds, text: str) -> None:
    tried(worlds, Pair.parsed(text))


def test_a_sample_of_all_pairs(worlds: Worlds) -> None:
    for pair in spread(worlds.all_pairs(), SEED)[:SAMPLE]:
        tried(worlds, pair)
