"""What may lie in and around a table's folder, and what `purge` does about it. Without a JVM.

Every case is a line: what is there, and its outcome after a purge in which all is old enough.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tests.cli.handmade import make_table, make_update
from tests.workspace import Workspace, log_of, row
from tidetable.config import Index
from tidetable.core.errors import UserError
from tidetable.engine.updater import Updater
from tidetable.table import upkeep as maintenance
from tidetable.table.beside import (
    QUARANTINE,
    QUARANTINE_PROPERTIES,
    UPDATES,
    Kind,
    check_places,
    own_table,
)
from tidetable.table.forget import forget
from tidetable.table.history import Updates
from tidetable.table.place import PROPERTY_INDEX
from tidetable.table.state import IndexTable
from tidetable.table.steps import Step, watched
from tidetable.table.upkeep import maintain, purge, purgeable

LATER = timedelta(days=30)
UUID = "0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b"
RUN = UUID.replace("-", "")
LEFT, GONE = True, False


def later() -> datetime:
    return datetime.now(UTC) + LATER


@pytest.fixture
def index(workspace: Workspace) -> Index:
    """Loaded, and every file replaced by update 1."""
    index = make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 4)], keep_versions_for="3h")
    make_update(workspace, index, [row(3, 1, 5)], 1, overwrite=True)
    return index


# -- files ---------------------------------------------------------------------------------------

FILES = [
    ("README.md", LEFT),
    ("notes.parquet", LEFT),
    (f"part-00000-{UUID}.c000.snappy.parquet", LEFT),  # an index has no data file at the top
    (f"_g=0/part-00000-{UUID}.parquet", LEFT),
    (f"_g=0/_e=1/part-00000-{UUID}.c000.snappy.parquet", GONE),
    (f"_g=-1/_e=-1/part-00000-{UUID}.parquet", GONE),
    (f"_g=0/_e=1/.part-00000-{UUID}.parquet.crc", GONE),
    (f"_g=0/_e=1/deeper/part-00000-{UUID}.parquet", LEFT),
    ("_g=0/_e=1/mine.parquet", LEFT),
    ("_g=0/_e=1/README", LEFT),
    ("_g=0/_e=x/part-0.parquet", LEFT),
    (f"day=1/part-00000-{UUID}.parquet", LEFT),
    (f"backup/_g=0/_e=1/part-00000-{UUID}.parquet", LEFT),
    (f"deletion_vector_{UUID}.bin", GONE),
    (f".deletion_vector_{UUID}.bin.crc", GONE),
    ("deletion_vector_of_mine.bin", LEFT),
    (f"vectors/deletion_vector_{UUID}.bin", LEFT),
    (f"_incoming/0123/_temporary/0/part-00000-{UUID}.parquet", GONE),
    (f"_incoming/0123/_g=0/_e=1/part-00000-{UUID}.parquet", GONE),
    (f"_incoming/{RUN}/_delta_log/{0:020d}.json", GONE),  # a writer's private table
    ("_incoming/README", LEFT),
    ("_delta_log/README", LEFT),
    (f"_delta_log/.{9:020d}.json.{RUN}.tmp", GONE),  # a commit without its name yet
    (f"_delta_log/{9:020d}.json.tmp", LEFT),
    (f"_delta_log/deeper/.{9:020d}.json.{RUN}.tmp", LEFT),
    ("_change_data/x.parquet", LEFT),
    ("a name [with] {all} %20 sorts*?.txt", LEFT),
    ("_g=0/_e=1/part-ü and blanks.txt", LEFT),
]


@pytest.mark.parametrize(("name", "outcome"), FILES, ids=[name for name, _ in FILES])
def test_a_file_below_the_table(
    workspace: Workspace, index: Index, name: str, outcome: bool
) -> None:
    path = workspace.table / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"somebody's")
    shown = purgeable(index, later())
    gone = purge(index, later())
    assert path.exists() == outcome
    assert shown == gone
    assert (f"table/{name}" in gone.paths) != outcome
    assert workspace.ids() == [3]
    assert len(list(workspace.table.rglob("_g=*/_e=*/part-*c000.snappy.parquet"))) == 1


# -- links -----------------------------------------------------------------------------------------


def linked(workspace: Workspace, at: str, to: str) -> Path:
    """A folder elsewhere with a file of our kind, reached from the table by a link; that file."""
    elsewhere = workspace.folder / "elsewhere"
    file = elsewhere / to
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not the table's")
    link = workspace.table / at
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir():
        link.rmdir()
    link.symlink_to(elsewhere)
    return file


PART = f"part-00000-{UUID}.parquet"
LINKS = [
    ("stuff", PART),
    ("_g=7", f"_e=1/{PART}"),
    ("_g=0/_e=7", PART),
    ("_incoming", f"0123/{PART}"),
    ("_incoming/0123", PART),
    ("_incoming/0123/_temporary", f"0/{PART}"),
]


@pytest.mark.parametrize(("at", "to"), LINKS, ids=[at for at, _ in LINKS])
def test_a_link_to_a_folder_is_not_followed(
    workspace: Workspace, index: Index, at: str, to: str
) -> None:
    file = linked(workspace, at, to)
    purge(index, later())
    assert file.read_bytes() == b"not the table's"
    assert (workspace.table / at).is_symlink()


def test_a_link_to_a_file_is_left_with_its_file(workspace: Workspace, index: Index) -> None:
    file = workspace.folder / PART
    file.write_bytes(b"not the table's")
    link = workspace.table / "_g=0" / "_e=1" / PART
    link.symlink_to(file)
    purge(index, later())
    assert link.read_bytes() == b"not the table's"


def test_a_link_in_a_circle_ends(workspace: Workspace, index: Index) -> None:
    (workspace.table / "again").symlink_to(workspace.table)
    purge(index, later())
    assert workspace.ids() == [3]


def test_a_table_that_is_itself_behind_a_link_is_cleaned(workspace: Workspace) -> None:
    (workspace.folder / "disk").mkdir()
    workspace.table.symlink_to(workspace.folder / "disk")
    index = make_table(workspace, [row(1, -0.5, 2.5)], keep_versions_for="3h")
    make_update(workspace, index, [row(3, 1, 5)], 1, overwrite=True)
    assert purge(index, later()).files == 1
    assert workspace.ids() == [3]


def test_a_folder_that_becomes_a_link_after_the_listing(workspace: Workspace, index: Index) -> None:
    cell = workspace.table / "_g=9" / "_e=1"
    cell.mkdir(parents=True)
    (cell / PART).write_bytes(b"ours")
    file = workspace.folder / "elsewhere" / PART

    def exchange(step: Step) -> None:
        if step is Step.GARBAGE_FOUND and not cell.is_symlink():
            shutil.rmtree(cell)
            file.parent.mkdir()
            file.write_bytes(b"not the table's")
            cell.symlink_to(file.parent)

    with watched(exchange):
        purge(index, later())
    assert file.exists()


# -- tables in tables ------------------------------------------------------------------------------

PLACES = ["inner", "_g=0/_e=1/inner", "_g=0/_e=8", "_incoming/inner", "a/b/c"]


@pytest.mark.parametrize("place", PLACES)
def test_a_table_inside_is_left_alone_and_named(
    workspace: Workspace, index: Index, place: str
) -> None:
    inner = workspace.table / place
    write_deltalake(str(inner), pa.table({"_g": [0], "_e": [1], "x": [5]}),
                    partition_by=["_g", "_e"])  # fmt: skip
    write_deltalake(str(inner), pa.table({"_g": [0], "_e": [1], "x": [6]}), mode="overwrite")
    before = sorted(inner.rglob("*"))
    found = purge(index, later())
    assert sorted(inner.rglob("*")) == before
    assert found.skipped == [str(inner)]
    assert maintain(index, force=True, now=later())["skipped"] == [str(inner)]


def test_an_index_inside_another_table_is_refused(workspace: Workspace) -> None:
    """Before it is made, however its place is spelled."""
    outer = workspace.folder / "outer"
    write_deltalake(str(outer), pa.table({"x": [5]}))
    (workspace.folder / "link").symlink_to(outer)
    (workspace.folder / "deep").mkdir()
    for place in (outer / "a", outer / "a" / "b", workspace.folder / "deep" / ".." / "link" / "a"):
        index = workspace.index(table=str(place))
        with pytest.raises(UserError, match=r"lies inside .*/outer, which is a Delta table"):
            IndexTable(index).log()
        assert not place.exists()


def test_an_index_that_a_table_was_made_around_is_not_purged(
    workspace: Workspace, index: Index
) -> None:
    write_deltalake(str(workspace.folder), pa.table({"x": [5]}))
    before = sorted(workspace.table.rglob("*"))
    for act in (purgeable, purge):
        with pytest.raises(UserError, match=r"lies inside .* Choose a place outside of it"):
            act(index, later())
    assert sorted(workspace.table.rglob("*")) == before


# -- what lies where the tables beside the index belong --------------------------------------------

ROWS_OF_A_USER = pa.table({"version": list(range(1000)), "committed_at": ["2020"] * 1000})
OWN_COLUMNS = {
    Kind.UPDATES: UPDATES.empty_table(),
    Kind.QUARANTINE: pa.table([[1], ["x"], [None], ["{}"]], schema=QUARANTINE),
}


def foreign(index: Index, kind: Kind, what: str) -> None:
    """Puts something that is not this index's to the place of that table."""
    path = kind.path(index)
    if what == "a user's table":
        write_deltalake(path, ROWS_OF_A_USER)
    elif what == "a user's table with our columns":
        for _ in range(2):
            write_deltalake(path, OWN_COLUMNS[kind], mode="append")
    elif what == "the table of another index with our columns":
        written = CommitProperties(app_transactions=[Transaction(f"other{kind.fences(index)}", 1)])
        for _ in range(2):
            write_deltalake(path, OWN_COLUMNS[kind], mode="append", commit_properties=written)
    elif what == "the same table of another index":
        own_table(replace(index, name="other"), kind, {})
    elif what == "the other table of this index":
        (other,) = {*Kind} - {kind}
        own_table(index, other, {})
        shutil.move(other.path(index), path)
    elif what == "an index":
        DeltaTable.create(path, kind.schema, configuration={PROPERTY_INDEX: index.name},
                          raise_if_key_not_exists=False)  # fmt: skip
    elif what == "a folder with files":
        Path(path).mkdir()
        (Path(path) / f"part-00000-{UUID}-c000.snappy.parquet").write_bytes(b"rows")


FOREIGN = [
    "a user's table",
    "a user's table with our columns",
    "the table of another index with our columns",
    "the same table of another index",
    "the other table of this index",
    "an index",
    "a folder with files",
]


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("kind", list(Kind))
def test_nothing_is_done_to_what_is_not_ours(
    workspace: Workspace, index: Index, kind: Kind, what: str
) -> None:
    """Refused by whatever would write, here or to the index, and by `check`."""
    foreign(index, kind, what)
    before = everything(workspace)
    with pytest.raises(UserError, match=rf"{kind.words} of the index 'things' belongs there"):
        check_places(index)
    with pytest.raises(UserError, match=r"Move it away, or choose another place"):
        Updater(None, index).state()  # type: ignore[arg-type]  # it does not get as far as Spark
    with pytest.raises(UserError):
        own_table(index, kind, {})
    if what != "a folder with files":
        acts = [purgeable, purge, maintain, lambda index: maintain(index, force=True)]
        if kind is Kind.UPDATES:
            acts += [lambda index: Updates(index).record(), lambda index: Updates(index).tidy(),
                     lambda index: Updates(index).set_mark("maintained", 1),
                     lambda index: Updates(index).last(5)]  # fmt: skip
        for act in acts:
            with pytest.raises(UserError, match="Nothing was changed"):
                act(index)
    assert everything(workspace) == before


def everything(workspace: Workspace) -> dict[str, int]:
    return {
        str(path.relative_to(workspace.folder)): path.stat().st_size
        for path in workspace.folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("cleaned", [False, True], ids=["whole log", "from a checkpoint"])
def test_tables_of_the_version_before_are_taken_on(index: Index, kind: Kind, cleaned: bool) -> None:
    """They have no owner in their properties; their columns and transactions tell."""
    path = kind.path(index)
    written = CommitProperties(app_transactions=[Transaction(kind.fences(index) + "-1", 1)])
    write_deltalake(path, OWN_COLUMNS[kind], commit_properties=written)
    if cleaned:
        write_deltalake(path, OWN_COLUMNS[kind], mode="append")
        DeltaTable(path).create_checkpoint()
        (Path(path) / "_delta_log" / f"{0:020d}.json").unlink()
    rows = DeltaTable(path).count()
    check_places(index)
    log = own_table(index, kind, {})
    assert log.properties == {"tidetable.index": "things", "tidetable.kind": str(kind)}
    assert log.table.count() == rows
    assert own_table(index, kind, {}).version == log.version


def test_a_file_of_the_log_alone_is_a_table_being_made(index: Index) -> None:
    """Another writer makes the folder first and then the commit; or died between."""
    for kind in Kind:
        (Path(kind.path(index)) / "_delta_log").mkdir(parents=True)
    check_places(index)
    assert Updates(index).record() == 2


def test_an_index_is_not_made_where_another_keeps_its_updates(
    workspace: Workspace, index: Index
) -> None:
    Updates(index).record()
    for name in ("things", "other"):
        taken = workspace.index(name=name, table=f"{workspace.table}_updates")
        with pytest.raises(UserError, match="Choose another place"):
            IndexTable(taken).log()


# -- clocks ----------------------------------------------------------------------------------------

YEARS = 3 * 365 * 24 * 3600 * 1000


def with_clock(workspace: Workspace, version: int, off_ms: int) -> None:
    """The commit as a writer would have made it whose clock is wrong by so much."""
    path = workspace.table / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "remove" in action:
            action["remove"]["deletionTimestamp"] += off_ms
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] += off_ms
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def files_of(workspace: Workspace) -> int:
    return len(list(workspace.table.rglob("part-*.parquet")))


def hours(number: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=number)


CLOCKS = [
    # the writer's clock, a checkpoint made since, hours since, files left of two that were replaced
    ("right", 0, False, 2.9, 2),
    ("right", 0, False, 3.1, 0),
    ("years behind", -YEARS, False, 2.9, 2),
    ("years behind", -YEARS, False, 3.1, 0),
    ("years behind", -YEARS, True, 2.9, 2),
    ("years behind", -YEARS, True, 3.1, 0),
    ("an hour ahead", 3_600_000, False, 3.9, 2),
    ("an hour ahead", 3_600_000, False, 4.1, 0),
    ("an hour ahead", 3_600_000, True, 4.1, 0),
    ("before 1970", -(10**14), False, 2.9, 2),
    ("no clock at all", 10**18, False, 2.9, 2),
    ("no clock at all", 10**18, False, 3.1, 0),
]


@pytest.mark.parametrize(("clock", "off_ms", "checkpoint", "after_h", "left"), CLOCKS)
def test_what_was_replaced_stays_however_wrong_the_writers_clock_is(
    workspace: Workspace, clock: str, off_ms: int, checkpoint: bool, after_h: float, left: int
) -> None:
    index = make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 4)], keep_versions_for="3h")
    # Written days ago by a right clock, replaced now.
    for path in workspace.table.rglob("part-*.parquet"):
        os.utime(path, (path.stat().st_mtime - 5 * 86400,) * 2)
    replaced = files_of(workspace)
    make_update(workspace, index, [row(3, 1, 5)], 1, overwrite=True)
    with_clock(workspace, 1, off_ms)
    if checkpoint:
        # Delta leaves removals out of it that are older than it keeps them, by the writer's clock.
        log_of(index).table.create_checkpoint()
    purge(index, hours(after_h))
    assert files_of(workspace) == 1 + (replaced if left else 0)
    assert workspace.ids() == [3]


def test_a_log_that_was_cleaned_up_too_soon_deletes_nothing(workspace: Workspace) -> None:
    """A writer whose clock is days ahead has taken old commits, and the removals they told of."""
    index = make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 4)], keep_versions_for="3h")
    for path in workspace.table.rglob("part-*.parquet"):
        os.utime(path, (path.stat().st_mtime - 5 * 86400,) * 2)
    make_update(workspace, index, [row(3, 1, 5)], 1, overwrite=True)
    with_clock(workspace, 1, -YEARS)
    make_update(workspace, index, [row(4, 2, 6)], 2)
    log_of(index).table.create_checkpoint()
    for version in (0, 1):
        (workspace.table / "_delta_log" / f"{version:020d}.json").unlink()
    before = files_of(workspace)
    purge(index, hours(2.9))
    assert files_of(workspace) == before
    purge(index, hours(24.1))
    assert files_of(workspace) == len(log_of(index).files)


@pytest.mark.parametrize("days", [-30, 30])
def test_a_purge_by_a_machine_whose_clock_is_wrong(
    workspace: Workspace, index: Index, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """What time it is the storage says too; if the two differ, nothing is old by the earlier."""
    monkeypatch.setattr(maintenance, "_clock", lambda: hours(24 * days))
    before = everything(workspace)
    assert purge(index).files == 0
    assert everything(workspace) == before
    assert list((workspace.table / "_incoming").iterdir()) == []


# -- folders that are left over --------------------------------------------------------------------

FOLDERS = [
    # what is in the table's folder, hours since, outcome
    ("_g=9/_e=1", 23.9, LEFT),
    ("_g=9/_e=1", 24.1, GONE),
    ("_g=9", 24.1, GONE),
    ("_g=-1/_e=-1", 24.1, GONE),
    ("_g=9/_e=1/deeper", 24.1, LEFT),
    ("mine", 24.1, LEFT),
    ("_g=x", 24.1, LEFT),
    ("_incoming/0123", 23.9, LEFT),
    ("_incoming/0123", 24.1, GONE),
    ("_incoming/0123/_temporary/0/_temporary/attempt_1", 24.1, GONE),
    ("_incoming/0123/_temporary/0/", 24.1, GONE),
    ("_incoming", 24.1, LEFT),  # a writer may be about to make its folder in it
]


@pytest.mark.parametrize(("name", "after_h", "outcome"), FOLDERS)
def test_an_empty_folder(
    workspace: Workspace, index: Index, name: str, after_h: float, outcome: bool
) -> None:
    folder = workspace.table / name
    folder.mkdir(parents=True, exist_ok=True)
    purge(index, hours(after_h))
    assert folder.exists() == outcome
    if outcome is GONE:
        assert not (workspace.table / name.split("/_")[0]).exists()
    assert workspace.ids() == [3]


def test_what_a_writer_brings_in_stays_as_long_as_it_writes(
    workspace: Workspace, index: Index
) -> None:
    """Its first file is two days old and its newest an hour: all of it stays."""
    folder = workspace.table / "_incoming" / RUN / "_g=0" / "_e=1"
    folder.mkdir(parents=True)
    first, newest = folder / f"part-00000-{UUID}.parquet", folder / f"part-00001-{UUID}.parquet"
    now = datetime.now(UTC).timestamp()
    for path, age_h in ((first, 48), (newest, 1)):
        path.write_bytes(b"rows")
        os.utime(path, (now - age_h * 3600,) * 2)
    for path in (folder, folder.parent, folder.parents[1]):
        os.utime(path, (now - 48 * 3600,) * 2)
    purge(index, hours(22))
    assert first.exists()
    assert newest.exists()
    purge(index, hours(23.1))
    assert not (workspace.table / "_incoming" / RUN).exists()


def test_a_folder_into_which_a_file_comes_meanwhile_stays(
    workspace: Workspace, index: Index
) -> None:
    folder = workspace.table / "_g=9" / "_e=1"
    folder.mkdir(parents=True)
    file = folder / f"part-00000-{UUID}.parquet"

    def come(step: Step) -> None:
        if step is Step.FILES_DELETED:
            file.write_bytes(b"rows")

    with watched(come):
        purge(index, later())
    assert file.exists()


# -- rows that were kept in quarantine for long enough ---------------------------------------------


def quarantine_of(index: Index) -> list[tuple[int, str]]:
    rows = DeltaTable(Kind.QUARANTINE.path(index)).to_pyarrow_table().to_pylist()
    return sorted((one["slot"], one["row"]) for one in rows)


def put_aside(index: Index, *rows: tuple[int, bool]) -> None:
    """Rows in quarantine: of which slot, and whether they have an arrival time."""
    own_table(index, Kind.QUARANTINE, QUARANTINE_PROPERTIES)
    stored = [
        {"slot": slot, "reason": "bad", "row": f"row {slot}",
         "arrived_at": index.timeline.end_of(slot) if has_arrival else None}
        for slot, has_arrival in rows
    ]  # fmt: skip
    write_deltalake(
        Kind.QUARANTINE.path(index), pa.Table.from_pylist(stored, QUARANTINE), mode="append"
    )


KEPT = [
    # slots are 10 minutes long; the recount looks back 12 of them unless it is said otherwise
    ({}, 1014, [1, 2]),  # 60m and 7 days are 1014 slots
    ({}, 1015, [2]),
    ({}, 1016, []),
    ({"quarantine": {"keep_for": "3h"}}, 18, [1, 2]),
    ({"quarantine": {"keep_for": "3h"}}, 19, [2]),
    ({"quarantine": {"keep_for": "0s"}, "source": {"recount_every": 4}}, 4, [1, 2]),
    ({"quarantine": {"keep_for": "0s"}, "source": {"recount_every": 4}}, 5, [2]),
    ({"quarantine": {"keep_for": "0s"}, "source": {"recount_every": 0}}, 1, [2]),
]


@pytest.mark.parametrize(("changes", "slot", "left"), KEPT)
def test_quarantined_rows_stay_as_long_as_the_yaml_says(
    workspace: Workspace, changes: dict[str, Any], slot: int, left: list[int]
) -> None:
    index = workspace.index(**changes)
    put_aside(index, (1, True), (2, True))
    done = forget(index, slot)
    assert done == {"dropped_rows": 2 - len(left), "digested_rows": 0}
    assert [slot for slot, _ in quarantine_of(index)] == left


def test_of_a_row_without_an_arrival_the_digest_stays(workspace: Workspace) -> None:
    index = workspace.index(quarantine={"keep_for": "3h"})
    put_aside(index, (1, False), (1, True), (30, False))
    version = DeltaTable(Kind.QUARANTINE.path(index)).version()
    assert forget(index, 5) == {"dropped_rows": 0, "digested_rows": 0}
    assert DeltaTable(Kind.QUARANTINE.path(index)).version() == version
    assert forget(index, 30) == {"dropped_rows": 1, "digested_rows": 1}
    digest = hashlib.sha256(b"row 1").hexdigest()
    assert quarantine_of(index) == [(1, f"sha256:{digest}"), (30, "row 30")]
    assert forget(index, 30) == {"dropped_rows": 0, "digested_rows": 0}


def test_nothing_of_the_rows_is_left_after_the_next_clean_up(
    workspace: Workspace, index: Index
) -> None:
    """Neither in a file nor in the statistics of the log."""
    put_aside(index, (-5000, True), (-5000, False))
    found = maintain(index, force=True)
    assert (found["quarantine_dropped_rows"], found["quarantine_digested_rows"]) == (1, 1)
    purge(index, hours(4))
    folder = Path(Kind.QUARANTINE.path(index))
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(b"row -5000" in text for text in texts)
    assert len(quarantine_of(index)) == 1
