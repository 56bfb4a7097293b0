"""Real tables for the checks, and ways to make a copy of one wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from tests.cli.handmade import as_ours
from tests.workspace import Row, Workspace, at, read_table, row
from tidetable.config import Index, load_index
from tidetable.engine.updater import Updater
from tidetable.table.log import open_log
from tidetable.table.note import Note
from tidetable.table.state import IndexTable, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOT = 7
"""At which the tables stand. p is 6."""

SCHEMES: dict[str, dict[str, Any]] = {
    "rebuild": {"name": "rebuild", "insertion": 2, "expiration": 3},
    "no_rebuild": {"name": "no_rebuild", "insertion": 2, "expiration": 3},
    "sweep": {"name": "sweep", "groups": 3},
    "sweep_with_log": {"name": "sweep", "groups": 3, "deletion_vectors": True},
    "tiers": {"name": "tiers", "groups": 2, "fan_in": 2},
}

Stored = dict[str, Any]
Change = Callable[[list[Stored]], list[Stored]]


def even_stream(copies: int = 6) -> Iterator[Row]:
    """Theorem 1's: in every slot as many rows of each lifetime; and one bad row in slot 7.

    Half of the rows expire right after the edge of a slot: statistics of times, which are cut to
    milliseconds, show these on the edge.
    """
    number = 0
    for slot in range(-5, SLOT + 1):
        for lifetime in range(1, 7):
            for _ in range(copies):
                number += 1
                edge = at(slot - 1 + lifetime) + timedelta(microseconds=300)
                later = {"expires_at": edge} if number % 2 else {}
                yield {**row(number, slot - 0.5, slot - 0.5 + lifetime), **later}
    yield row(number + 1, SLOT - 0.5, SLOT + 2, key="")


class Tables:
    """Tables that are right, each made once; and copies of them for a test."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def copy(self, name: str, to: Path, **changes: Any) -> Wrong:
        """The index over a copy of the table, with these changes to its YAML."""
        made = self.folder / name
        if not made.exists():
            made.mkdir()
            self._make(Workspace(made), SCHEMES[name])
        to.mkdir(exist_ok=True)
        for part in ("source", "table", "table_updates", "table_quarantine"):
            if (made / part).exists():
                shutil.copytree(made / part, to / part)
        Workspace(to).describe(scheme=SCHEMES[name], **changes)
        return Wrong(load_index(to / "things.yaml", to))

    def _make(self, workspace: Workspace, scheme: dict[str, Any]) -> None:
        workspace.add(even_stream())
        quality = {"bad_rows_max": "100%", "check_rows_every": 7}
        index = workspace.index(scheme=scheme, quality=quality)
        list(Updater(self.spark, index).catch_up(SLOT - 1, fold=True))
        list(Updater(self.spark, index).catch_up(SLOT))


@dataclass(frozen=True)
class Wrong:
    """A table of our own to make wrong."""

    index: Index

    @property
    def state(self) -> State:
        state = IndexTable(self.index).state(trusting=True)
        assert state is not None
        return state

    def rows(self) -> list[Stored]:
        return sorted(read_table(self.index.table), key=lambda one: one["id"])

    def one(self, **wanted: Any) -> Stored:
        """A row with these values."""
        return next(
            dict(found)
            for found in self.rows()
            if all(found[name] == value for name, value in wanted.items())
        )

    def new_row(self, insertion: int, expiration: int, **changes: Any) -> Stored:
        """A row that is where it belongs, with these slots and the times of these slots."""
        cell = self.index.build_scheme().initial_cell(insertion, expiration)
        return {
            "id": 9999,
            "key": "k9",
            "arrived_at": at(insertion - 0.5),
            "inserted_at": at(insertion - 0.5),
            "expires_at": at(expiration - 0.5),
            "_insertion_slot": insertion,
            "_expiration_slot": expiration,
            "_g": cell.g,
            "_e": cell.e,
            **changes,
        }

    def note(self, **changes: Any) -> Note:
        """A note such as a rebuild of ours leaves: nobody would suspect its commit."""
        return replace(self.state.note.as_rebuilt("wrong"), **changes)

    def rewrite(self, change: Change, note: Note | None) -> None:
        """All rows written again in one commit, changed; with no note it is somebody else's."""
        self._write(change(self.rows()), "overwrite", note)

    def append(self, rows: list[Stored], note: Note | None) -> None:
        self._write(rows, "append", note)

    def change_one(self, chosen: Stored, note: Note | None = None, **changes: Any) -> None:
        """One row changed, by a commit that looks like ours."""
        self.rewrite(
            lambda rows: [one | changes if one["id"] == chosen["id"] else one for one in rows],
            note or self.note(),
        )

    def without_statistics(self, note: Note) -> None:
        """The newest commit again, but its files say nothing about their rows."""
        self.rewrite(lambda rows: rows, note)
        log = open_log(self.index.table)
        assert log is not None
        path = Path(self.index.table, "_delta_log", f"{log.version:020d}.json")
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))

    def _write(self, rows: list[Stored], mode: Any, note: Note | None) -> None:
        log = open_log(self.index.table)
        assert log is not None
        schema = pa.schema(log.table.schema().to_arrow())
        write_deltalake(
            log.table,
            pa.Table.from_pylist(rows, schema),
            mode=mode,
            commit_properties=None if note is None else as_ours(note),
        )
