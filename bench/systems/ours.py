"""Tidetable itself: an index as its user would write it, with one of its schemes."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bench.data import Rows
from bench.systems.delta import DeltaSystem
from bench.workload import START, end_of
from tidetable.config import load_index
from tidetable.engine.updater import Updater

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Tidetable(DeltaSystem):
    """An index over the rows. Its source grows slot by slot, as it does where data arrives."""

    def __init__(
        self, spark: SparkSession, rows: Rows, folder: Path, scheme: dict[str, Any]
    ) -> None:
        super().__init__(spark, rows, folder)
        self.scheme = scheme

    @property
    def _source(self) -> Path:
        return self.folder / "source"

    @cached_property
    def _updater(self) -> Updater:
        description = self.folder / "index.yaml"
        description.write_text(yaml.safe_dump(self._described()))
        return Updater(self.spark, load_index(description, self.folder))

    def _described(self) -> dict[str, Any]:
        return {
            "name": "bench",
            # Nothing is turned off: late rows are looked for, and all rows checked, as often as for
            # a user who writes nothing about it.
            "source": {
                "path": f"{self._source}/{{%Y-%m-%dT%H}}",
                "arrived_at": "arrived_at",
            },
            "key": "key",
            "inserted_at": "inserted_at",
            "expires_at": "expires_at",
            "update_every": "1h",
            "longest_lifetime": f"{self.workload.period}h",
            "start": START.isoformat(),
            "table": str(self.path),
            "scheme": self.scheme,
        }

    def _reveal(self, slot: int) -> None:
        rows = self.rows.slot_folder(slot)
        if rows.is_dir():
            (self._source / f"{end_of(slot - 1):%Y-%m-%dT%H}").symlink_to(rows)

    def load(self) -> None:
        self._source.mkdir(parents=True)
        for slot in self.workload.slots:
            if slot <= 0:
                self._reveal(slot)
        self._catch_up(0)

    def wait(self, slot: int) -> None:
        self._reveal(slot)

    def update(self, slot: int) -> None:
        self._catch_up(slot)

    def _catch_up(self, slot: int) -> None:
        for _ in self._updater.catch_up(slot):
            pass
