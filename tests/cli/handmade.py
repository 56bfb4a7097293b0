"""A table as slot 0 of an index leaves it, made without Spark: for what must work without a JVM."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, Transaction, write_deltalake

from tests.workspace import SCHEMA, Row, Workspace
from tidetable.config import Index
from tidetable.table.log import open_log
from tidetable.table.note import Note
from tidetable.table.place import PROPERTY_INDEX, PROPERTY_LAYOUT


def make_table(
    workspace: Workspace, rows: Sequence[Row], schema: pa.Schema = SCHEMA, **changes: Any
) -> Index:
    """The index of the workspace with a table that holds these rows, all alive after slot 0."""
    index = workspace.index(**changes)
    timeline, scheme = index.timeline, index.build_scheme()
    stored, expiring = [], Counter[int]()
    for row in rows:
        came, goes = timeline.slot_of(row["arrived_at"]), timeline.slot_of(row["expires_at"])
        cell = scheme.initial_cell(came, goes)
        slots = {"_insertion_slot": came, "_expiration_slot": goes}
        stored.append({**row, **slots, "_g": cell.g, "_e": cell.e})
        expiring[goes] += 1
    note = Note(
        index.name, slot=0, previous=None, run="handmade", kind="load", read=len(rows),
        inserted=len(rows), live=len(rows), live_by_expiration=dict(expiring),
    )  # fmt: skip
    slots_and_cell = [("_insertion_slot", pa.int64()), ("_expiration_slot", pa.int64()),
                      ("_g", pa.int32()), ("_e", pa.int32())]  # fmt: skip
    write_deltalake(
        index.table,
        pa.Table.from_pylist(stored, pa.schema([*schema, *slots_and_cell])),
        partition_by=["_g", "_e"],
        commit_properties=as_ours(note),
    )
    _set_properties(workspace, index)
    return index


def as_ours(note: Note) -> CommitProperties:
    """What delta-rs is to put into a commit so that it looks like one of ours."""
    return CommitProperties(
        custom_metadata={"userMetadata": note.dumps()},
        app_transactions=[Transaction(f"{note.index}@handmade#{note.run}", 1)],
    )


def _set_properties(workspace: Workspace, index: Index) -> None:
    """delta-rs reads properties of others, but does not write any that it does not know."""
    first = workspace.table / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] |= {
                PROPERTY_INDEX: index.name,
                PROPERTY_LAYOUT: json.dumps(index.layout_fingerprint, sort_keys=True),
            }
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))


def version(workspace: Workspace) -> int:
    """The newest version of the table, by the files of its log."""
    return max(int(path.stem) for path in (workspace.table / "_delta_log").glob("*.json"))


def make_update(
    workspace: Workspace, index: Index, rows: Sequence[Row], slot: int, *, overwrite: bool = False
) -> int:
    """A commit as an update makes it, which takes these rows (and, told so, drops all others)."""
    log = open_log(index.table)
    assert log is not None
    before = next(note for _, note in log.notes())
    timeline, scheme = index.timeline, index.build_scheme()
    stored, expiring = [], Counter[int]()
    if not overwrite:
        expiring.update(before.live_by_expiration)
    for row in rows:
        goes = timeline.slot_of(row["expires_at"])
        cell = scheme.initial_cell(slot, goes)
        slots = {"_insertion_slot": slot, "_expiration_slot": goes}
        stored.append({**row, **slots, "_g": cell.g, "_e": cell.e})
        expiring[goes] += 1
    live = sum(expiring.values())
    note = Note(
        index.name, slot=slot, previous=before.slot, run=f"handmade {slot}", read=len(rows),
        inserted=len(rows), expired=before.live + len(rows) - live, live=live,
        live_by_expiration=dict(expiring),
    )  # fmt: skip
    write_deltalake(
        log.table,
        pa.Table.from_pylist(stored, pa.schema(log.table.schema().to_arrow())),
        mode="overwrite" if overwrite else "append",
        commit_properties=as_ours(note),
    )
    return version(workspace)
