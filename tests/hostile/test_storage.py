"""What may lie in and around a table's folder, and what `purge` does about it. Without a JVM.

Every case is a line: what is there, and its outcome after a purge in which all is old enough.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tests.cli.handmade import make_table, make_update
from tests.workspace import Workspace, row
from tidetable.core.config import Index
from tidetable.core.errors import UserError
from tidetable.delta.beside import QUARANTINE, UPDATES, Kind, check_places, own_table
from tidetable.delta.maintain import maintain, purge, purgeable
from tidetable.delta.place import PROPERTY_INDEX
from tidetable.delta.steps import Step, watched
from tidetable.delta.table import IndexTable
from tidetable.delta.update import Updater
from tidetable.delta.updates import Updates

LATER = timedelta(days=30)
UUID = "0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b"
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
    ("_incoming/README", LEFT),
    ("_delta_log/README", LEFT),
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
        Updater(None, index)  # type: ignore[arg-type]  # it does not get as far as Spark
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
