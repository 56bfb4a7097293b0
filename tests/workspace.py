"""A folder for one test with a source and an index over it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tidetable.config import Index, load_index
from tidetable.core.cell import Cell
from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, INSERTION_SLOT
from tidetable.table.log import Log, arrow, open_log
from tidetable.table.place import quarantine_path
from tidetable.table.read import rows as python_rows

START = datetime(2024, 3, 1, tzinfo=UTC)
EVERY = timedelta(minutes=10)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("key", pa.string()),
        ("arrived_at", pa.timestamp("us", "UTC")),
        ("inserted_at", pa.timestamp("us", "UTC")),
        ("expires_at", pa.timestamp("us", "UTC")),
    ]
)

Row = Mapping[str, Any]


def at(slots: float) -> datetime:
    """The time `slots` update intervals after the start: at(2) is the end of slot 2."""
    return START + slots * EVERY


def row(number: int, arrived: float, expires: float, key: str | None = None, **more: Any) -> Row:
    """A good row that arrives and expires at these times, counted in slots."""
    return {
        "id": number,
        "key": f"k{number % 7}" if key is None else key,
        "arrived_at": at(arrived),
        "inserted_at": at(arrived),
        "expires_at": at(expires),
        **more,
    }


class Workspace:
    """A source folder, an index description and the table they make."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "source"
        self.source.mkdir(exist_ok=True)
        self._files = 0

    @property
    def table(self) -> Path:
        return self.folder / "table"

    @property
    def yaml(self) -> Path:
        return self.folder / "things.yaml"

    # -- the source ------------------------------------------------------------------------------

    def add(self, rows: Iterable[Row], *, schema: pa.Schema = SCHEMA) -> Path:
        """More rows as another Parquet file of the source."""
        path = self._next("parquet")
        pq.write_table(pa.Table.from_pylist([dict(one) for one in rows], schema=schema), path)
        return path

    def add_json(self, rows: Iterable[Row]) -> Path:
        path = self._next("json")
        path.write_text("".join(json.dumps(dict(one), default=_text) + "\n" for one in rows))
        return path

    def add_csv(self, rows: Iterable[Row], columns: Sequence[str] = tuple(SCHEMA.names)) -> Path:
        path = self._next("csv")
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            for one in rows:
                writer.writerow({name: _text(one.get(name)) for name in columns})
        return path

    def add_text(self, text: str, suffix: str) -> Path:
        path = self._next(suffix)
        path.write_text(text)
        return path

    def _next(self, suffix: str) -> Path:
        self._files += 1
        return self.source / f"part-{self._files:04d}.{suffix}"

    # -- the index -------------------------------------------------------------------------------

    def describe(self, **changes: Any) -> Path:
        """Writes the YAML: 10 minute slots, p = 6, Sweep with 3 groups, unless changed."""
        source = {
            "path": str(self.source),
            "format": "parquet",
            "arrived_at": "arrived_at",
            **changes.pop("source", {}),
        }
        data: dict[str, Any] = {
            "name": "things",
            "source": source,
            "key": "key",
            "inserted_at": "inserted_at",
            "expires_at": "expires_at",
            "update_every": "10m",
            "longest_lifetime": "60m",
            "start": START.isoformat(),
            "table": str(self.table),
            "scheme": {"name": "sweep", "groups": 3},
            "quality": {"bad_rows_max": "100%"},
            **changes,
        }
        data = {name: value for name, value in data.items() if value is not None}
        self.yaml.write_text(yaml.safe_dump(data, sort_keys=False))
        return self.yaml

    def index(self, **changes: Any) -> Index:
        """The described index, loaded."""
        return load_index(self.describe(**changes), self.folder)

    # -- what is there ---------------------------------------------------------------------------

    def stored(self) -> list[dict[str, Any]]:
        """Every row of the table with all columns, the cell's too, as delta-rs reads it."""
        return read_table(str(self.table))

    def ids(self) -> list[int]:
        return sorted(one["id"] for one in self.stored())

    def slots(self) -> dict[int, tuple[int, int]]:
        """id -> insertion and expiration slot."""
        return {one["id"]: (one[INSERTION_SLOT], one[EXPIRATION_SLOT]) for one in self.stored()}

    def quarantined(self, index: Index) -> list[dict[str, Any]]:
        """The rows of the quarantine, in the order of slot and reason."""
        path = quarantine_path(index)
        found = [] if open_log(path) is None else read_table(path)
        return sorted(found, key=lambda one: (one["slot"], one["reason"], one["row"]))

    def reasons(self, index: Index) -> list[tuple[int, str]]:
        """(slot, reason) of every row in quarantine."""
        return [(one["slot"], one["reason"]) for one in self.quarantined(index)]


def log_of(index: Index) -> Log:
    """The log of the index's table, which is there."""
    log = open_log(index.table)
    assert log is not None
    return log


def read_table(path: str) -> list[dict[str, Any]]:
    """All rows of a Delta table as Python values, without a JVM."""
    log = open_log(path)
    assert log is not None
    return [one for batch in arrow(log.table.scan()) for one in python_rows(batch)]


def cell_of(stored: Mapping[str, Any]) -> Cell:
    return Cell(stored[CELL_G], stored[CELL_E])


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value
