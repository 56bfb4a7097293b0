"""Maintenance: what may be deleted and what not, and when it is due. All without a JVM."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from tests.cli.handmade import make_table, make_update
from tests.steady import expected, rows_of_every_slot
from tests.workspace import Workspace, log_of, row
from tidetable.config import Index
from tidetable.core.errors import UserError
from tidetable.table import upkeep as module
from tidetable.table.garbage import garbage, last_checkpoint, missing_files, named_files
from tidetable.table.history import Updates
from tidetable.table.log import open_log
from tidetable.table.place import quarantine_path, updates_path
from tidetable.table.state import DamagedTable, IndexTable
from tidetable.table.steps import Step, watched
from tidetable.table.stored import stored, stored_files
from tidetable.table.upkeep import due, maintain, purge, purgeable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = timedelta(hours=1)


def after(**time: float) -> datetime:
    return datetime.now(UTC) + timedelta(**time)


def data_files(workspace: Workspace) -> set[str]:
    return {
        str(path.relative_to(workspace.table))
        for path in workspace.table.rglob("*")
        if path.is_file() and "_delta_log" not in path.parts
    }


@pytest.fixture
def index(workspace: Workspace) -> Index:
    """Loaded, and every file replaced by update 1."""
    index = make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 4)], keep_versions_for="3h")
    make_update(workspace, index, [row(3, 1, 5)], 1, overwrite=True)
    Updates(index).record()
    return index


# -- what may go ---------------------------------------------------------------------------------


def test_replaced_files_stay_as_long_as_the_yaml_says(workspace: Workspace, index: Index) -> None:
    live = {file.path for file in log_of(index).files}
    replaced = data_files(workspace) - live
    assert replaced
    assert purgeable(index, after(hours=2.9)).files == 0
    found = purgeable(index, after(hours=3.1))
    assert {path.removeprefix("table/") for path in found.paths} == replaced
    assert found.files == len(replaced)
    assert found.bytes == sum((workspace.table / path).stat().st_size for path in replaced)
    assert data_files(workspace) == live | replaced

    assert purge(index, after(hours=3.1)) == found
    assert data_files(workspace) == live
    assert workspace.ids() == [3]
    assert purgeable(index, after(hours=3.1)).files == 0


def test_by_the_clock_nothing_may_go_yet(workspace: Workspace, index: Index) -> None:
    before = data_files(workspace)
    assert (purgeable(index).files, purge(index).files) == (0, 0)
    assert data_files(workspace) == before


def test_a_reader_has_an_hour_whatever_the_yaml_says(workspace: Workspace) -> None:
    index = make_table(workspace, [row(1, -0.5, 2.5)], keep_versions_for="1m")
    make_update(workspace, index, [row(3, 1, 5)], 1, overwrite=True)
    assert purgeable(index, after(minutes=59)).files == 0
    assert purgeable(index, after(minutes=61)).files == 1
    assert "stay for 1h after" in purgeable(index).retention


def test_a_writer_has_a_day_to_commit(workspace: Workspace, index: Index) -> None:
    """Files that no version names: of an attempt that died, or of one that is still at work."""
    stray = workspace.table / "_g=0" / "_e=1" / "part-00000-of-an-attempt.snappy.parquet"
    vector = workspace.table / "deletion_vector_0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b.bin"
    for path in (stray, vector):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"rows")
    purge(index, after(hours=23.9))
    assert stray.exists()
    assert vector.exists()
    purge(index, after(hours=24.1))
    assert not stray.exists()
    assert not vector.exists()
    assert workspace.ids() == [3]


def test_versions_that_are_kept_can_be_read(workspace: Workspace, index: Index) -> None:
    """Update 1 replaced the load's files just now; whoever wants slot 0 still gets it."""
    purge(index, after(hours=2.9))
    version = log_of(index).version_of(0)
    old = DeltaTable(str(workspace.table), version=version)
    assert sorted(old.to_pyarrow_table().column("id").to_pylist()) == [1, 2]


def test_what_a_restore_has_put_back_stays(workspace: Workspace, index: Index) -> None:
    """The files were removed long ago, and added again."""
    note = next(iter(log_of(index).notes()))[1]
    text = note.as_restored("again").dumps()
    DeltaTable(str(workspace.table)).restore(
        0, commit_properties=CommitProperties(custom_metadata={"userMetadata": text})
    )
    named = named_files(log_of(index))
    assert {file.path for file in log_of(index).files} == set(named.live)
    assert not {*named.live} & {file.path for file in garbage_of(index)}


def test_a_restore_while_it_looks_is_seen(workspace: Workspace, index: Index) -> None:
    def restore(step: Step) -> None:
        if step is not Step.GARBAGE_FOUND or log_of(index).version > 1:
            return
        note = next(note for _, note in log_of(index).notes() if note.slot == 0)
        text = note.as_restored("meanwhile").dumps()
        DeltaTable(str(workspace.table)).restore(
            0, commit_properties=CommitProperties(custom_metadata={"userMetadata": text})
        )

    with watched(restore):
        purge(index, after(hours=4))
    assert workspace.ids() == [1, 2]


def garbage_of(index: Index) -> list[Any]:
    log = log_of(index)
    return list(garbage(log, stored(log), after(days=9), after(days=9)))


def test_what_is_not_the_tables_is_left_alone(workspace: Workspace, index: Index) -> None:
    others = ["_delta_log/_sidecars/x.parquet", "_change_data/x.parquet", ".tmp/x", "_other/x"]
    for name in others:
        (workspace.table / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace.table / name).write_text("theirs")
    log_files = set((workspace.table / "_delta_log").iterdir())
    purge(index, after(days=30))
    assert all((workspace.table / name).exists() for name in others)
    assert log_files <= set((workspace.table / "_delta_log").iterdir())


def test_checksums_go_with_their_files(workspace: Workspace, index: Index) -> None:
    """Hadoop keeps one beside each local file."""
    for name in data_files(workspace):
        path = workspace.table / name
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    orphan = workspace.table / "_g=0" / "_e=1" / ".part-gone.parquet.crc"
    orphan.write_bytes(b"crc")
    purge(index, after(hours=25))
    left = data_files(workspace)
    live = {file.path for file in log_of(index).files}
    assert {name for name in left if not name.endswith(".crc")} == live
    assert len(left) == 2 * len(live)
    assert not orphan.exists()


def test_the_tables_beside_the_index_are_cleaned_too(workspace: Workspace, index: Index) -> None:
    for version in (2, 3):
        make_update(workspace, index, [row(version, version, 5)], version)
        Updates(index).record()
    Updates(index).tidy(merge_above=0)
    found = purge(index, after(hours=4))
    assert any(path.startswith("table_updates/") for path in found.paths)
    log = open_log(updates_path(index))
    assert log is not None
    assert {file.path for file in stored_files(log)} == set(named_files(log).live)
    assert [one.slot for one in Updates(index).last(9)] == [0, 1, 2, 3]


def test_a_checkpoint_tells_the_same_as_the_log(workspace: Workspace, index: Index) -> None:
    before = named_files(log_of(index))
    log_of(index).table.create_checkpoint()
    assert last_checkpoint(log_of(index)) == log_of(index).version
    for old in (workspace.table / "_delta_log").glob("*.json"):
        if int(old.stem) < log_of(index).version:
            old.unlink()
    assert named_files(log_of(index)) == before
    assert before.removed


def test_checkpoints_of_the_new_kind_are_refused(workspace: Workspace, index: Index) -> None:
    name = f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    log = log_of(index)
    (workspace.table / "_delta_log" / name).write_text("{}")
    with pytest.raises(UserError, match="VACUUM"):
        named_files(log)


def test_a_clone_is_refused(workspace: Workspace, index: Index) -> None:
    path = workspace.table / "_delta_log" / f"{1:020d}.json"
    text = path.read_text()
    file = next(iter(log_of(index).files)).path
    path.write_text(text.replace(file, f"{workspace.folder}/elsewhere/{file}"))
    with pytest.raises(UserError, match="clone"):
        named_files(log_of(index))


def test_a_table_that_somebody_changed_keeps_its_past(workspace: Workspace, index: Index) -> None:
    """A replay that mends it needs the old files."""
    write_deltalake(str(workspace.table), DeltaTable(str(workspace.table)).to_pyarrow_table(),
                    mode="append")  # fmt: skip
    before = data_files(workspace)
    for act in (purgeable, purge, maintain):
        with pytest.raises(DamagedTable, match="was not made by Tidetable"):
            act(index)  # type: ignore[operator]
    assert data_files(workspace) == before


# -- whether a version can be put back -------------------------------------------------------------


def test_a_version_is_whole_until_its_files_are_purged(workspace: Workspace, index: Index) -> None:
    then = open_log(index.table, 0)
    assert then is not None
    assert missing_files(then) == []
    purge(index, after(hours=4))
    assert missing_files(then) == sorted(file.path for file in then.files)
    assert missing_files(log_of(index)) == []


def test_a_version_lacks_a_deletion_vector(workspace: Workspace, index: Index) -> None:
    """The data file is there; without its vector, rows that were deleted would be back."""
    path = workspace.table / "_delta_log" / f"{1:020d}.json"
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1,
              "sizeInBytes": 36, "cardinality": 1}  # fmt: skip
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["deletionVector"] = vector
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    name = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert missing_files(log_of(index)) == [name]
    (workspace.table / "ab").mkdir()
    (workspace.table / name).write_bytes(b"vector")
    assert missing_files(log_of(index)) == []
    (workspace.table / next(iter(log_of(index).table.file_uris()))).unlink()
    assert len(missing_files(log_of(index))) == 1


# -- when it is due ------------------------------------------------------------------------------


def test_it_is_due_once_in_the_time_that_versions_are_kept(workspace: Workspace) -> None:
    """Versions stay for 24 hours, an update comes every 10 minutes: every 144 updates."""
    index = make_table(workspace, [row(1, -0.5, 2.5)])
    assert due(index, 143) == []
    assert due(index, 144) == ["144 updates since the last maintenance; it is due after 144"]
    Updates(index).set_mark("maintained", 144)
    assert due(index, 144) == []
    assert due(index, 287) == []
    assert len(due(index, 288)) == 1


def test_not_due_it_does_nothing(workspace: Workspace, index: Index) -> None:
    found = maintain(index, now=after(hours=4))
    assert found == {"index": "things", "slot": 1, "due": [], "done": False}
    assert Updates(index).mark("maintained") is None


def test_done_it_is_not_due_any_more(workspace: Workspace) -> None:
    index = make_table(workspace, [row(1, -0.5, 2.5)], keep_versions_for="20m")
    for slot in range(1, 7):  # an hour
        make_update(workspace, index, [row(9 + slot, slot, slot + 5)], slot, overwrite=True)
        Updates(index).record()
    assert len(due(index, 6)) == 1
    found = maintain(index, now=after(hours=2))
    assert (found["done"], found["slot"], len(found["due"])) == (True, 6, 1)
    assert found["deleted_files"] > 0
    assert found["updates_merged_files"] == 6
    assert json.loads(json.dumps(found)) == found
    assert due(index, 6) == []
    assert workspace.ids() == [15]
    assert maintain(index)["done"] is False


def test_forced_it_does_all_of_it(workspace: Workspace, index: Index) -> None:
    found = maintain(index, force=True, now=after(hours=4))
    assert found["done"] is True
    assert found["checkpoints"] == ["table", "table_updates"]
    assert last_checkpoint(log_of(index)) == 1
    assert IndexTable(index).required_state().slot == 1
    make_update(workspace, index, [row(4, 2, 5)], 2)
    assert workspace.ids() == [3, 4]


def test_a_log_without_a_checkpoint_makes_it_due(workspace: Workspace, index: Index) -> None:
    for slot in range(2, module.COMMITS_MAX + 1):
        make_update(workspace, index, [row(9 + slot, slot, 99)], slot, overwrite=True)
    reasons = due(index, 1)
    assert reasons == ["31 commits of table since its last checkpoint"]
    assert maintain(index)["checkpoints"] == ["table"]
    assert due(index, 30) == []


def test_many_files_of_updates_make_it_due(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILES_MAX", 0)
    assert due(index, 1) == ["1 files in the table of updates"]


def test_vacuum_by_others_is_no_change_of_rows(workspace: Workspace, index: Index) -> None:
    """Whoever uses delta-rs or Spark to clean up does the table no harm, nor the notes."""
    DeltaTable(str(workspace.table)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    operations = [commit.operation for commit in log_of(index).commits()]
    assert operations[:2] == ["VACUUM END", "VACUUM START"]
    assert IndexTable(index).required_state().slot == 1


# -- with Spark ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scheme",
    [
        {"name": "no_rebuild", "insertion": 2, "expiration": 3},
        {"name": "sweep", "groups": 3},
    ],
    ids=["no_rebuild", "sweep"],
)
def test_tables_of_spark_go_on_after_a_purge_and_a_checkpoint(
    spark: SparkSession, workspace: Workspace, scheme: dict[str, Any]
) -> None:
    """With deletion vectors in use, replaced ones, and a checkpoint that Spark did not make."""
    from tidetable.engine.updater import Updater

    bad = row(500, 1.5, 0.5)
    workspace.add([*rows_of_every_slot(), bad])
    index = workspace.index(scheme=scheme)
    list(Updater(spark, index).catch_up(4))
    state = IndexTable(index).required_state()
    in_use = named_files(state.log).in_use
    uses_vectors = any(name.endswith(".bin") for name in in_use)
    assert uses_vectors == bool(index.build_scheme().uses_deletion_vectors)

    found = maintain(index, force=True, now=after(days=2))
    assert found["checkpoints"] == ["table", "table_quarantine", "table_updates"]
    assert found["deleted_files"] > 0
    assert {name for name in data_files(workspace) if not name.endswith(".crc")} == in_use
    assert workspace.ids() == expected(4)
    again = spark.read.format("delta").load(index.table)
    assert sorted(one["id"] for one in again.select("id").collect()) == expected(4)

    list(Updater(spark, index).catch_up(6))
    assert workspace.ids() == expected(6)
    assert workspace.reasons(index) == [(2, "expires before it was inserted")]
    assert Path(quarantine_path(index)).exists()


def test_the_files_of_an_update_that_was_refused_go(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that lost the race has written its rows, and no version names them."""
    from tests.faults.test_races import before_the_first_commit
    from tidetable.engine.updater import Updater

    workspace.add(rows_of_every_slot())
    index = workspace.index()
    quick = Updater(spark, index)
    list(quick.catch_up(0))
    before_the_first_commit(monkeypatch, lambda: list(quick.catch_up(1)))
    list(Updater(spark, index).catch_up(2))
    purge(index, after(days=2))
    left = {name for name in data_files(workspace) if not name.endswith(".crc")}
    assert left == {file.path for file in log_of(index).files}
    assert workspace.ids() == expected(2)
