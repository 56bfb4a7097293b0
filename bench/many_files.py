"""What an update's two looks at the log cost the driver when the table has very many files.

    .venv/bin/python -m bench.many_files [FILES]

Makes a log that names so many files (there are none: nobody opens them), and measures in a process
of its own what the driver does around an update: reads the state, prepares a commit that replaces
the files of one cell of 24, makes it, and sees what the table then is. CPU seconds and peak memory.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema

from tests.workspace import SCHEMA, Workspace
from tidetable.config import Index
from tidetable.core.cell import Cell
from tidetable.table.actions import removal_of
from tidetable.table.append import append_version, commit_info, transaction
from tidetable.table.commits import commit
from tidetable.table.note import Note, NoteKind
from tidetable.table.place import PROPERTY_INDEX, PROPERTY_LAYOUT
from tidetable.table.state import IndexTable, State
from tidetable.table.tally import disagreement, files_after, with_digests

FILES = 100_000
PERIOD = 144
GROUPS = 24
ROWS = 1_000_000
REPLACED_CELLS = 1
_BYTES = 1 << 30


def make(folder: Path, files: int) -> Index:
    """The index, with a table of so many files after slot 0."""
    folder.mkdir(parents=True)
    workspace = Workspace(folder)
    index = workspace.index(
        longest_lifetime=f"{PERIOD * 10}m", scheme={"name": "sweep", "groups": GROUPS}
    )
    slots = [("_insertion_slot", pa.int64()), ("_expiration_slot", pa.int64())]
    cell = [("_g", pa.int32()), ("_e", pa.int32())]
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(pa.schema([*SCHEMA, *slots, *cell])).to_json(),
        "partitionColumns": ["_g", "_e"],
        "configuration": {
            PROPERTY_INDEX: index.name,
            PROPERTY_LAYOUT: json.dumps(index.layout_fingerprint, sort_keys=True),
        },
        "createdTime": 0,
    }
    added = list(_files(index, files))
    expiring = Counter[int]()
    for one in added:
        expiring[json.loads(one["add"]["stats"])["minValues"]["_expiration_slot"]] += ROWS
    live = files * ROWS
    note = Note(index.name, 0, None, "made", NoteKind.LOAD, read=live, inserted=live, live=live,
                live_by_expiration=dict(sorted(expiring.items())))  # fmt: skip
    info = commit_info("WRITE", -1, metadata=metadata, user_metadata=note.dumps())
    rules = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    append_version(index.table, 0, [info, transaction(f"{index.name}@new"), *rules, *added])
    DeltaTable(index.table).create_checkpoint()
    # As updates leave it: the newest commit is small.
    state = IndexTable(index).required_state()
    said = note.as_rebuilt("again").dumps()
    commit(state.log, "WRITE", [transaction(state.fence)], user_metadata=said)
    return index


def _files(index: Index, files: int) -> Iterator[dict[str, Any]]:
    cells: dict[Cell, tuple[int, int]] = {}
    scheme = index.build_scheme()
    for insertion in range(1 - PERIOD, 1):
        for expiration in range(1, insertion + PERIOD + 1):
            cells.setdefault(scheme.initial_cell(insertion, expiration), (insertion, expiration))
    for number in range(files):
        cell = list(cells)[number % len(cells)]
        yield _added(cell, cells[cell], number)


def _added(cell: Cell, slots: tuple[int, int], number: int) -> dict[str, Any]:
    low = {"key": f"key-{number:08d}-0", "arrived_at": "2024-02-29T00:00:00.000Z",
           "inserted_at": "2024-02-29T00:00:00.000Z", "expires_at": "2024-03-01T00:00:00.000Z",
           "_insertion_slot": slots[0], "_expiration_slot": slots[1]}  # fmt: skip
    stats = {"numRecords": ROWS, "minValues": low, "maxValues": {**low, "key": f"{low['key']}9"},
             "nullCount": dict.fromkeys(low, 0)}  # fmt: skip
    return {
        "add": {
            "path": f"_g={cell.g}/_e={cell.e}/part-{uuid.uuid4()}.snappy.parquet",
            "partitionValues": {"_g": str(cell.g), "_e": str(cell.e)},
            "size": _BYTES,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps(stats, separators=(",", ":")),
        }
    }


def measure(index: Index) -> None:
    """What the driver does around an update by which as many files come as go."""
    table = IndexTable(index)
    state = _timed("the state is read", lambda: table.required_state())
    actions = _timed("the files that go are looked up", lambda: _replaced(state))
    note = state.note.as_rebuilt(uuid.uuid4().hex)

    def made() -> None:
        after = files_after(state.log, actions)
        assert disagreement(after, note, are_its_own=False) is None
        said = with_digests(note, files_after(state.log, actions)).dumps()
        commit(state.log, "WRITE", [transaction(state.fence), *actions], user_metadata=said)

    _timed("the commit is checked and made", made)

    def seen() -> None:
        then = table.state(before=state.log)
        assert then is not None
        assert disagreement(then.log.files, then.note) is None
        assert len(then.log.cells) == len(state.log.cells)

    _timed("the table is looked at after it", seen)


def _replaced(state: State) -> list[dict[str, Any]]:
    cells = set(list(state.log.cells)[:REPLACED_CELLS])
    gone = [file for file in state.log.files if file.cell in cells]
    actions: list[dict[str, Any]] = []
    for number, file in enumerate(gone):
        assert file.insertion is not None
        assert file.expiration is not None
        slots = file.insertion[0], file.expiration[0]
        values = {"_g": str(file.cell.g), "_e": str(file.cell.e)}
        old = {"path": file.path, "size": file.bytes, "partitionValues": values}
        actions += [_added(file.cell, slots, number), removal_of(old, int(time.time() * 1000))]
    return actions


def _timed(what: str, run: Callable[[], Any]) -> Any:
    wall, cpu = time.monotonic(), time.process_time()
    found = run()
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    print(f"{what:36} {wall:6.2f} s  {cpu:6.2f} s of CPU, peak {_peak_mb():5.0f} MB")
    return found


def _peak_mb() -> float:
    # Not getrusage: that begins with the peak of the process that started this one.
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def main() -> int:
    import subprocess

    from bench.__main__ import CACHE

    if sys.argv[1:2] == ["--measure"]:
        from tidetable.config import load_index

        index = load_index(Path(sys.argv[2]), Path(sys.argv[2]).parent)
        print(f"{'nothing yet':56} peak {_peak_mb():5.0f} MB")
        measure(index)
        return 0
    folder = CACHE / "tables" / "many_files"
    shutil.rmtree(folder, ignore_errors=True)
    make(folder, int(sys.argv[1]) if len(sys.argv) > 1 else FILES)
    try:
        command = [sys.executable, "-m", "bench.many_files", "--measure", f"{folder}/things.yaml"]
        return subprocess.run(command, check=False).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
