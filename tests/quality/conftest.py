"""Tables that are right, made once for all tests of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.quality.tables import Tables


@pytest.fixture(scope="session")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    from tests.quality.tables import Tables

    return Tables(spark, tmp_path_factory.mktemp("tables"))
