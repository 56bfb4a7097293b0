"""Logs that were lost or damaged: a sentence that names the file, and a way back by a command."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tests.cli.handmade import make_table, make_update
from tests.steady import expected, rows_of_every_slot
from tests.workspace import Workspace, log_of, row
from tidetable.cli import app
from tidetable.config import Index
from tidetable.core.errors import UserError
from tidetable.output.remedies import as_command
from tidetable.table.beside import Kind
from tidetable.table.damage import (
    DamagedLog,
    DamagedTable,
    LogFiles,
    check_owner,
    damaged_text,
    set_aside,
)
from tidetable.table.history import Updates
from tidetable.table.log import open_log
from tidetable.table.read import view
from tidetable.table.state import PROPERTY_INDEX, IndexTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEWEST = 4


def log_folder(workspace: Workspace) -> Path:
    return workspace.table / "_delta_log"


def commit(workspace: Workspace, version: int) -> Path:
    return log_folder(workspace) / f"{version:020d}.json"


def checkpoint(workspace: Workspace, version: int = NEWEST) -> Path:
    return log_folder(workspace) / f"{version:020d}.checkpoint.parquet"


@pytest.fixture
def index(workspace: Workspace) -> Index:
    """Loaded and updated up to version 4, with a checkpoint."""
    index = make_table(workspace, [row(1, -0.5, 4.5), row(2, -1, 4.5)])
    for slot in range(1, NEWEST + 1):
        make_update(workspace, index, [row(10 + slot, slot, slot + 5)], slot)
    return index


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def with_checkpoint(act: Callable[[Path], None]) -> Callable[[Workspace], None]:
    def damage(workspace: Workspace) -> None:
        log = open_log(str(workspace.table))
        assert log is not None
        log.table.create_checkpoint()
        act(checkpoint(workspace))

    return damage


DAMAGES: dict[str, tuple[Callable[[Workspace], object], str]] = {
    "half of the newest commit": (
        lambda it: halve(commit(it, NEWEST)),
        r"00004\.json is cut off or overwritten: line \d",
    ),
    "half of an older commit": (
        lambda it: halve(commit(it, 2)),
        r"00002\.json is cut off or overwritten: line \d",
    ),
    "an empty newest commit after a power cut": (
        lambda it: commit(it, NEWEST).write_text(""),
        r"00004\.json is empty, as after a power cut",
    ),
    "a newest commit of zeros after a power cut": (
        lambda it: commit(it, NEWEST).write_bytes(bytes(400)),
        r"00004\.json is cut off or overwritten: line 1",
    ),
    "an empty older commit": (
        lambda it: commit(it, 2).write_text(""),
        r"00002\.json is empty",
    ),
    "somebody's text": (
        lambda it: commit(it, NEWEST).write_text("see me\n"),
        r"00004\.json is cut off or overwritten: line 1",
    ),
    "a gap": (
        lambda it: commit(it, 2).unlink(),
        r"00002\.json is missing, though 0*3\.json is not",
    ),
    "no beginning": (
        lambda it: commit(it, 0).unlink(),
        r"00000\.json is missing, though 0*1\.json is not",
    ),
    "half a checkpoint": (
        with_checkpoint(halve),
        r"00004\.checkpoint\.parquet is no whole Parquet file",
    ),
    "an empty checkpoint": (
        with_checkpoint(lambda path: path.write_bytes(b"")),
        r"00004\.checkpoint\.parquet is empty",
    ),
    "a missing checkpoint": (
        with_checkpoint(lambda path: path.unlink()),
        r"00004\.checkpoint\.parquet is missing, though _last_checkpoint names it",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_the_sentence_names_the_file_and_the_way_back(
    workspace: Workspace, index: Index, name: str
) -> None:
    damage, says = DAMAGES[name]
    damage(workspace)
    before = sorted(workspace.table.rglob("*"))
    for look in (IndexTable(index).state, lambda: view(index)):
        with pytest.raises(DamagedTable) as told:
            look()
        text = str(told.value)
        assert re.search(says, text), text
        remedy = told.value.remedy
        assert remedy is not None
        assert "tidetable replay things --from J --from-source" in as_command(remedy)
        assert "\n" not in text
        assert "unknown" not in text
        assert not told.value.retry_can_help
    assert sorted(workspace.table.rglob("*")) == before


def test_a_log_that_is_whole_is_not_called_damaged(workspace: Workspace, index: Index) -> None:
    files = LogFiles(str(workspace.table))
    assert files.first_damage() is None
    with_checkpoint(lambda _: None)(workspace)
    assert LogFiles(str(workspace.table)).first_damage() is None
    for version in range(NEWEST + 1):  # cleaned up: the checkpoint says it all
        commit(workspace, version).unlink()
    assert LogFiles(str(workspace.table)).first_damage() is None


def test_a_hint_that_is_damaged_is_only_a_hint(workspace: Workspace, index: Index) -> None:
    with_checkpoint(lambda _: None)(workspace)
    (log_folder(workspace) / "_last_checkpoint").write_text("")
    state = IndexTable(index).state()
    assert state is not None
    assert state.slot == NEWEST
    assert LogFiles(str(workspace.table)).first_damage() is None


def test_an_old_version_that_is_cleaned_up_is_no_damage(workspace: Workspace, index: Index) -> None:
    with_checkpoint(lambda _: None)(workspace)
    commit(workspace, 0).unlink()
    with pytest.raises(Exception) as told:
        open_log(index.table, 1)
    assert not isinstance(told.value, DamagedTable)


@pytest.mark.parametrize("text", [b'{"add":{}}\n', b'{"add":{}}\n\n{"remove":{}}', b"{}"])
def test_what_is_no_damage_to_a_commit(text: bytes) -> None:
    assert damaged_text(text) is None


# -- whose it is ---------------------------------------------------------------------------------


def test_only_a_log_that_says_it_is_ours_is_set_aside(workspace: Workspace, index: Index) -> None:
    def check(name: str) -> None:
        check_owner(LogFiles(str(workspace.table)), name, PROPERTY_INDEX)

    check("things")
    with pytest.raises(UserError, match="belongs to the index 'things', not to 'others'"):
        check("others")
    commit(workspace, 0).unlink()  # with the properties
    check("things")
    with pytest.raises(UserError, match="belongs to the index 'things', not to 'others'"):
        check("others")
    for version in range(1, NEWEST + 1):
        commit(workspace, version).write_text('{"commitInfo":{"userMetadata":"{}"}}\n')
    with pytest.raises(UserError, match="belongs to nobody that it names, not to 'things'"):
        check("things")


def test_a_log_that_is_set_aside_keeps_all_its_files(workspace: Workspace, index: Index) -> None:
    def contents(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    for number in (1, 2):
        before = contents(log_folder(workspace))
        aside = LogFiles(str(workspace.table)).set_aside()
        assert aside == f"_delta_log.damaged-{number}"
        assert contents(workspace.table / aside) == before
        assert not log_folder(workspace).exists()
        shutil.copytree(workspace.table / aside, log_folder(workspace))


# -- the way back --------------------------------------------------------------------------------


def data_files(workspace: Workspace) -> set[Path]:
    return {path for path in workspace.table.rglob("*.parquet") if "_delta_log" not in str(path)}


def replay(workspace: Workspace, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["replay", str(workspace.yaml), *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        ({"name": "sweep", "groups": 3}, "an empty newest commit after a power cut"),
        ({"name": "no_rebuild", "insertion": 2, "expiration": 3}, "half a checkpoint"),
    ],
)
def test_an_index_is_loaded_from_its_source_into_a_fresh_log(
    spark: SparkSession, workspace: Workspace, scheme: dict[str, Any], name: str
) -> None:
    from tidetable.engine.updater import Updater

    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme=scheme)
    list(Updater(spark, index).catch_up(NEWEST - 1))
    assert log_of(index).version == NEWEST
    DAMAGES[name][0](workspace)
    before, log = (
        data_files(workspace),
        sorted(path.name for path in log_folder(workspace).iterdir()),
    )

    said = replay(workspace, "--from", "3", "--from-source", "--dry-run")
    assert "Would set the log" in said
    assert re.search(DAMAGES[name][1], said.replace("\n", " "))
    assert sorted(path.name for path in log_folder(workspace).iterdir()) == log

    replay(workspace, "--from", "3", "--from-source")
    assert workspace.ids() == expected(2)
    assert sorted(path.name for path in (workspace.table / "_delta_log.damaged-1").iterdir()) == log
    assert before <= data_files(workspace)
    list(Updater(spark, index).catch_up(4, fold=True))
    assert workspace.ids() == expected(4)

    # A sound log is gone on with; the state comes from the source all the same.
    replay(workspace, "--from", "3", "--from-source")
    assert workspace.ids() == expected(4)
    assert [note.kind for _, note in log_of(index).notes()] == ["update", "update", "load"]
    assert not (workspace.table / "_delta_log.damaged-2").exists()


def test_ways_back_from_what_was_begun_or_forgotten(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Killed while making the table, or between two logs; a note that a clean-up has taken."""
    from tidetable.engine.updater import Updater

    workspace.add(rows_of_every_slot())
    index = workspace.index()
    log_folder(workspace).mkdir(parents=True)
    list(Updater(spark, index).catch_up(2, fold=True))
    assert workspace.ids() == expected(2)

    for number in range(10):
        log_of(index).table.alter.set_table_description(f"harmless {number}")
    log = log_of(index)
    log.table.create_checkpoint()
    for version in range(log.version):
        commit(workspace, version).unlink()
    with pytest.raises(DamagedTable, match="no longer says at which slot"):
        IndexTable(index).state()
    replay(workspace, "--from", "2")
    assert workspace.ids() == expected(1)

    commit(workspace, log_of(index).version).write_text("")
    with pytest.raises(DamagedLog) as damage:
        IndexTable(index).state()
    assert set_aside(damage.value, index.name, PROPERTY_INDEX) == "_delta_log.damaged-1"
    with pytest.raises(DamagedTable, match=r"set aside as _delta_log\.damaged-1, and no fresh"):
        IndexTable(index).state()
    replay(workspace, "--from", "3", "--from-source")
    assert workspace.ids() == expected(2)


@pytest.mark.parametrize("kind", list(Kind))
def test_a_damaged_table_beside_the_index_is_moved_away_and_made_again(
    spark: SparkSession, workspace: Workspace, kind: Kind
) -> None:
    """The sentence names it. A row that is in every batch is quarantined once more, no further."""
    from tidetable.engine.updater import Updater

    workspace.add([*rows_of_every_slot(), row(900, 0, 3) | {"arrived_at": None}])
    index = workspace.index()
    list(Updater(spark, index).catch_up(2))
    beside = Path(kind.path(index))
    newest = sorted(beside.glob("_delta_log/*.json"))[-1]
    halve(newest)
    before = log_of(index).version
    with pytest.raises(DamagedLog) as damage:
        list(Updater(spark, index).catch_up(3))
    said = str(damage.value)
    assert f"The log of {beside} cannot be read: _delta_log/{newest.name} is cut off" in said
    assert "move the folder away: the next update makes a new one" in said
    assert log_of(index).version == before
    assert workspace.ids() == expected(2)

    beside.rename(workspace.folder / "away")
    list(Updater(spark, index).catch_up(3))
    list(Updater(spark, index).catch_up(5, fold=True))
    list(Updater(spark, index).catch_up(6))
    assert workspace.ids() == expected(6)
    again = {Kind.QUARANTINE: 3, Kind.UPDATES: 0}[kind]
    assert workspace.reasons(index) == [(again, "no readable arrival time")]
    recorded = [one.slot for one in Updates(index).last(10)]
    assert recorded == [0, 1, 2, 3, 5, 6]
