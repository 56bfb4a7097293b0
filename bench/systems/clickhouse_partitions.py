"""ClickHouse with a partition for each expiration slot: an update drops the one that has expired.

So ClickHouse's documentation advises for data that goes by time: dropping a partition looks at no
row, at once, and no expired row is left to be seen. No clock has to pass for it.
"""

from __future__ import annotations

import time

from bench.systems.merge_tree import TABLE, MergeTree

IDLE_S_MAX = 30
"""Updates come an hour apart: merges in the background have ended before the next one, or it is
not waited for them any longer."""

_LOOK_EVERY_S = 0.1


class ClickHouseByPartition(MergeTree):
    """A MergeTree PARTITION BY expiration slot ORDER BY key."""

    def _engine(self) -> str:
        return "ENGINE = MergeTree PARTITION BY exp_slot ORDER BY key"

    def _insert_settings(self) -> dict[str, int]:
        # A batch has rows for each slot of the window; the guard against that is 100.
        return {**super()._insert_settings(), "max_partitions_per_insert_block": 0}

    def wait(self, slot: int) -> None:
        until = time.monotonic() + IDLE_S_MAX
        merging = "SELECT count() FROM system.merges WHERE database = 'bench'"
        while self._row(merging)[0] and time.monotonic() < until:
            time.sleep(_LOOK_EVERY_S)

    def update(self, slot: int) -> None:
        self._insert([slot])
        self._run(f"ALTER TABLE {TABLE} DROP PARTITION {slot}")
        self._slot = slot
