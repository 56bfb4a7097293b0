"""What the scheduler loads before it forks the workers."""

from __future__ import annotations

import subprocess
import sys

SAYS_WHAT_IS_LOADED = """
import sys
from tidetable.pipeline import executor
executor.load()
for name in (*executor.MODULES, "great_expectations", "pyspark", "scipy", "altair"):
    print(name, name in sys.modules)
"""


def test_all_that_tasks_need_and_no_more() -> None:
    """PySpark and SciPy come with Great Expectations unless they are kept out: seconds, and memory
    in each worker."""
    said = subprocess.run(
        [sys.executable, "-c", SAYS_WHAT_IS_LOADED], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    loaded = {line.split()[0] for line in said if line.endswith(" True")}
    missing = {line.split()[0] for line in said if line.endswith(" False")}
    assert "great_expectations" in loaded
    assert "tidetable.quality.site" in loaded
    assert missing == {"pyspark", "scipy", "altair"}
