"""Loads slot 0 of indexes that have no table: `python -m rig.first_load PORT NAME...`.

While Airflow starts, so that there is something to see as soon as its page answers, and the Spark
that all updates share has done its first, slow work. It is what `tidetable update` does: the runs
of Airflow find the slot done, and if this fails they do it themselves.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from rig.services import listens
from tidetable.config import find_index, load_index, project_root
from tidetable.table.state import IndexTable


def load_first(port: int, names: Sequence[str]) -> None:
    """Slot 0 of each, one after the other, as soon as the Spark Connect server listens."""
    from tidetable.engine.session import spark_session
    from tidetable.engine.updater import Updater

    root = project_root()
    indexes = [load_index(find_index(name, root), root) for name in names]
    while not listens(port):
        time.sleep(0.2)
    spark = spark_session(root)
    for index in indexes:
        if IndexTable(index).state() is None:
            for report in Updater(spark, index).catch_up(0):
                print(f"{index.name}: slot {report.slot}", flush=True)


if __name__ == "__main__":
    load_first(int(sys.argv[1]), sys.argv[2:])
