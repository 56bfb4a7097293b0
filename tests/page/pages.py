"""A project with an index of every kind, made without Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from tests.cli.handmade import make_table
from tests.workspace import SCHEMA, Row, Workspace, at, row
from tidetable.config import Index, load_index
from tidetable.table.beside import QUARANTINE, QUARANTINE_PROPERTIES, Kind, own_table
from tidetable.table.place import quarantine_path

NASTY_KEYS = (
    "o'brien",
    "' OR 1=1 --",
    '"; DROP TABLE t; --',
    "<script>alert(1)</script>",
    "naïve ☃ 日本",
    "back\\slash",
    "%",
    " ",
)
"""Texts that mean something to SQL, to HTML or to a path. All of them are keys of `things`."""

NUMBER_SCHEMA = SCHEMA.set(1, pa.field("key", pa.int64()))


class Project:
    """A folder with include/indexes in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.indexes = folder / "include" / "indexes"
        self.indexes.mkdir(parents=True)

    @property
    def reports(self) -> Path:
        return self.folder / ".tidetable" / "_reports"

    def describe(self, name: str, **changes: Any) -> Index:
        """An index without a table."""
        workspace = self.workspace(name)
        index = workspace.index(name=name, **changes)
        shutil.copy(workspace.yaml, self.indexes / f"{name}.yaml")
        return index

    def make(
        self, name: str, rows: Sequence[Row], schema: pa.Schema = SCHEMA, **changes: Any
    ) -> Index:
        """An index with these rows in its table."""
        workspace = self.workspace(name)
        index = make_table(workspace, rows, schema, name=name, **changes)
        shutil.copy(workspace.yaml, self.indexes / f"{name}.yaml")
        return index

    def read(self, name: str) -> Index:
        """One of them, as the page reads it."""
        return load_index(self.indexes / f"{name}.yaml", self.folder)

    def workspace(self, name: str) -> Workspace:
        """The folder with its source and its table."""
        folder = self.folder / "work" / name
        folder.mkdir(parents=True, exist_ok=True)
        return Workspace(folder)

    def report(self, name: str, file: str = "index.html", text: str = "<h1>Data Docs</h1>") -> Path:
        """A file of the quality reports of an index."""
        path = self.reports / name / "site" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def full_project(folder: Path) -> Project:
    """Good indexes, one without a table, a damaged one, and a file that is no index."""
    project = Project(folder)
    nasty = [row(number, -0.5, 3.5, key) for number, key in enumerate(NASTY_KEYS)]
    project.make("things", [*(row(100 + n, -1, 1 + n % 5) for n in range(40)), *nasty])
    project.make("secret", [row(1, 0, 5, "treasure")])
    grid = {"name": "rebuild", "insertion": 2, "expiration": 3}
    project.make("gridded", [row(n, -(n % 2), 2 + n % 4) for n in range(30)], scheme=grid)
    numbers = [{**row(n, 0, 5), "key": n} for n in (7, 8, 2**60)]
    project.make("numbers", numbers, NUMBER_SCHEMA)
    _quarantine(project.read("things"))
    foreign = pa.table({"slot": [1], "secret": ["not ours"]})
    write_deltalake(quarantine_path(project.read("numbers")), foreign)
    project.describe("planned")
    damaged = project.make("damaged", [row(n, 0, 4) for n in range(5)])
    write_deltalake(damaged.table, _foreign_rows(damaged), mode="append")
    (project.indexes / "broken.yaml").write_text("name: broken\nkey: <script>alert(1)</script>\n")
    for name in ("things", "secret"):
        project.report(name)
    (project.reports / "private.txt").write_text("not for the page")
    return project


BAD_ROWS = 60
"""How many rows of `things` are in quarantine, one in each slot."""


def _quarantine(index: Index) -> None:
    """Bad rows as updates leave them; the one before the last is very long."""
    rows = [
        {
            "slot": slot,
            "reason": "no key",
            "arrived_at": at(slot),
            "row": json.dumps({"id": slot, "key": "<script>alert(1)</script>"}),
        }
        for slot in range(1, BAD_ROWS + 1)
    ]
    rows[-2]["row"] = json.dumps({"id": BAD_ROWS - 1, "note": "x" * 500_000})
    own_table(index, Kind.QUARANTINE, QUARANTINE_PROPERTIES)
    for some in (rows[:30], rows[30:]):
        write_deltalake(
            quarantine_path(index), pa.Table.from_pylist(some, QUARANTINE), mode="append"
        )


def _foreign_rows(index: Index) -> pa.Table:
    more = [{**row(99, 0, 4), "_insertion_slot": 0, "_expiration_slot": 4, "_g": 0, "_e": 0}]
    slots_and_cell = [("_insertion_slot", pa.int64()), ("_expiration_slot", pa.int64()),
                      ("_g", pa.int32()), ("_e", pa.int32())]  # fmt: skip
    return pa.Table.from_pylist(more, pa.schema([*SCHEMA, *slots_and_cell]))


def quality_summary(project: Project, name: str, **found: Any) -> None:
    """The summary that a validation leaves behind."""
    folder = project.reports / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "latest.json").write_text(json.dumps(found))
