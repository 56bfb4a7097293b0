"""The actions that make up one version of a table, whole, read from the log without a JVM.

delta-rs tells paths and statistics, but not which deletion vector belongs to a file. Whoever
commits, or puts an old version back, has to name a file exactly as the log does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidetable.core.cell import Cell
from tidetable.core.columns import CELL_E, CELL_G
from tidetable.table.garbage import newest_checkpoint

if TYPE_CHECKING:
    from tidetable.table.log import Log

Action = Mapping[str, Any]

_KINDS = ("add", "protocol", "metaData", "domainMetadata")
_PARSED = frozenset({"stats_parsed", "partitionValues_parsed"})
"""What a checkpoint says a second time, in columns."""

_MAPS = frozenset({"partitionValues", "tags", "configuration", "options"})


@dataclass
class Contents:
    """What one version consists of. Files are named as the log names them."""

    protocol: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Path -> add action."""

    def apply(self, actions: Iterable[Action], cells: Collection[Cell] | None) -> None:
        """What one version did. A new deletion vector takes a file out and puts it back."""
        actions = list(actions)
        for action in actions:
            if removed := action.get("remove"):
                self.files.pop(removed["path"], None)
        for action in actions:
            if (added := action.get("add")) and (cells is None or cell_of(added) in cells):
                self.files[added["path"]] = dict(added)
            elif stated := action.get("protocol"):
                self.protocol = dict(stated)
            elif stated := action.get("metaData"):
                self.metadata = dict(stated)
            elif stated := action.get("domainMetadata"):
                self.domains[stated["domain"]] = dict(stated)

    @property
    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.metadata["schemaString"])
        return found


def contents(log: Log, cells: Collection[Cell] | None = None) -> Contents:
    """The version that `log` shows; only the files of these cells, if cells are given."""
    found = Contents()
    for actions in _versions(log, cells):
        found.apply(actions, cells)
    return found


def hidden_rows(log: Log) -> dict[str, int]:
    """Rows hidden by deletion vectors, by file name."""
    import pyarrow.compute as pc

    found: dict[str, int] = {}
    start = 0
    checkpoint = newest_checkpoint(log)
    if checkpoint is not None:
        start = checkpoint[0] + 1
        for table in _parts(log, checkpoint[1], ["add"]):
            added = table.column("add").combine_chunks()
            if "deletionVector" not in [one.name for one in added.type]:
                continue
            vectors = pc.struct_field(added, "deletionVector")
            has_one = pc.is_valid(pc.struct_field(vectors, "storageType"))
            paths = pc.struct_field(added.filter(has_one), "path").to_pylist()
            counts = pc.struct_field(vectors.filter(has_one), "cardinality").to_pylist()
            found.update(zip(map(_name, paths), counts, strict=True))
    for version in range(start, log.version + 1):
        actions = log.actions(version)
        for action in actions:
            if "remove" in action:
                found.pop(_name(action["remove"]["path"]), None)
        for action in actions:
            if "add" in action and (vector := action["add"].get("deletionVector")):
                found[_name(action["add"]["path"])] = vector["cardinality"]
    return found


def cell_of(action: Action) -> Cell:
    """The cell of a file that an action names."""
    values = action.get("partitionValues") or {}
    return Cell(int(values.get(CELL_G) or 0), int(values.get(CELL_E) or 0))


def live_rows(added: Action) -> int:
    """How many rows a reader finds in a file, by its add action."""
    stored = json.loads(added.get("stats") or "{}").get("numRecords", 0)
    vector = added.get("deletionVector")
    return int(stored) - (0 if vector is None else int(vector["cardinality"]))


def removal_of(added: Action, at_ms: int) -> dict[str, Any]:
    """The action that takes the file out again."""
    kept = {name: added[name] for name in ("deletionVector", "baseRowId",
            "defaultRowCommitVersion", "tags") if added.get(name) is not None}  # fmt: skip
    return {
        "remove": {
            "path": added["path"],
            "deletionTimestamp": at_ms,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": added.get("partitionValues") or {},
            "size": added["size"],
            **kept,
        }
    }


def changes_rows(actions: Iterable[Action]) -> bool:
    """Whether a version holds other rows than the one before, by what it says of its files."""
    return any(
        one.get("dataChange", True)
        for action in actions
        for one in (action.get("add"), action.get("remove"))
        if one
    )


# -- parts -----------------------------------------------------------------------------------------


def _versions(log: Log, cells: Collection[Cell] | None) -> Iterator[list[Action]]:
    """The newest checkpoint as one list of actions, then what each later version did."""
    start = 0
    checkpoint = newest_checkpoint(log)
    if checkpoint is not None:
        start = checkpoint[0] + 1
        for table in _parts(log, checkpoint[1], _KINDS):
            wanted = table if cells is None else _of_cells(table, cells)
            for batch in wanted.to_batches(max_chunksize=10_000):
                yield [_plain(line) for line in batch.to_pylist()]
    for version in range(start, log.version + 1):
        yield list(log.actions(version))


def _parts(log: Log, names: Iterable[str], kinds: Collection[str]) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    for name in names:
        with log.storage.open_input_file(f"_delta_log/{name}") as file:
            parquet = pq.ParquetFile(file)
            there = [kind for kind in kinds if kind in parquet.schema_arrow.names]
            yield parquet.read(columns=there)


def _of_cells(table: pa.Table, cells: Collection[Cell]) -> pa.Table:
    """Without the files of other cells: a large table's checkpoint has very many."""
    import pyarrow.compute as pc

    values = pc.struct_field(table.column("add").combine_chunks(), "partitionValues")
    g, e = (pc.map_lookup(values, name, "first") for name in (CELL_G, CELL_E))
    place = pc.binary_join_element_wise(g, e, "/")
    wanted = pa.array([f"{cell.g}/{cell.e}" for cell in cells], pa.string())
    is_file = pc.is_valid(pc.struct_field(table.column("add").combine_chunks(), "path"))
    keep = pc.or_(pc.invert(is_file), pc.is_in(place, wanted))
    return table.filter(keep)


def _plain(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of a checkpoint as a commit would have it: maps as objects, nothing that is null."""
    return {kind: _said(stated) for kind, stated in line.items() if _is_said(stated)}


def _is_said(stated: Any) -> bool:
    return isinstance(stated, dict) and any(value is not None for value in stated.values())


def _said(stated: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, value in stated.items():
        if value is None or name in _PARSED:
            continue
        if name in _MAPS:
            said[name] = dict(value)
        elif isinstance(value, dict):
            if _is_said(value):
                said[name] = _said(value)
        else:
            said[name] = value
    return said


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
