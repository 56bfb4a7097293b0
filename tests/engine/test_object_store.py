"""A table on S3, by a server that answers as S3 does: what needs no JVM, over the network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.handmade import make_table, make_update
from tests.s3_server import s3_server
from tests.workspace import Workspace, row
from tidetable.config import Index
from tidetable.config.source import NewColumns
from tidetable.core.errors import UserError
from tidetable.engine.column_drift import agreed
from tidetable.engine.commit import publish
from tidetable.engine.footer_schema import columns_of
from tidetable.engine.source_files import changed_since, source_files
from tidetable.table import read
from tidetable.table.actions import removal_of
from tidetable.table.append import NotTheNewest, append_version
from tidetable.table.damage import DamagedLog
from tidetable.table.log import Log, open_log
from tidetable.table.restriction import Restriction
from tidetable.table.state import IndexTable
from tidetable.table.upkeep import purge, purgeable

UUID = "0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b"
BUCKET = "lake"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> obstore.store.S3Store:
    """An empty bucket, and the environment by which all find the server."""
    import boto3

    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "something",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    made = boto3.resource("s3", endpoint_url=server, region_name="us-east-1").Bucket(BUCKET)
    made.create()
    made.objects.all().delete()
    return obstore.store.from_url(f"s3://{BUCKET}")


@pytest.fixture
def index(workspace: Workspace, bucket: obstore.store.S3Store) -> Index:
    """Loaded, and every file replaced by update 1; then taken to the bucket."""
    local = make_table(workspace, [row(1, -0.5, 2.5), row(2, -1, 4)], keep_versions_for="3h")
    make_update(workspace, local, [row(3, 1, 5), row(4, 1, 5)], 1, overwrite=True)
    for file in workspace.table.rglob("*"):
        if file.is_file():
            path = file.relative_to(workspace.folder).as_posix()
            obstore.put(bucket, path, file.read_bytes())
    return workspace.index(keep_versions_for="3h", table=f"s3a://{BUCKET}/table")


def opened(index: Index) -> Log:
    log = open_log(index.table)
    assert log is not None
    return log


def names(bucket: obstore.store.S3Store, prefix: str = "table/") -> list[str]:
    return sorted(item["path"] for batch in obstore.list(bucket, prefix) for item in batch)


def test_one_of_many_wins_and_nothing_else_is_left(bucket: obstore.store.S3Store) -> None:
    def has_won(turn: int, number: int) -> bool:
        try:
            append_version(f"s3a://{BUCKET}/{turn}", 7, [{"commitInfo": {"by": number}}])
        except NotTheNewest:
            return False
        return True

    for turn in range(10):
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(has_won, [turn] * 8, range(8)))
        (winner,) = [number for number, is_winner in enumerate(won) if is_winner]
        (commit,) = names(bucket, f"{turn}/")
        assert commit == f"{turn}/_delta_log/00000000000000000007.json"
        said = json.loads(bytes(obstore.get(bucket, commit).bytes()))
        assert said == {"commitInfo": {"by": winner}}


def test_a_table_is_read_and_probed(index: Index) -> None:
    seen = read.view(index)
    assert read.count(seen, Restriction()) == 2
    (found,) = read.sorted_rows(seen, Restriction(keys=("k3",)))
    assert found["id"] == 3
    assert IndexTable(index).state().slot == 1


def test_of_two_commits_on_one_version_one_is_made(index: Index) -> None:
    first, second = opened(index), opened(index)
    ((_, note),) = list(first.notes())[:1]
    gone = next(iter(first.files))
    cell = {"_g": str(gone.cell.g), "_e": str(gone.cell.e)}
    action = removal_of({"path": gone.path, "size": gone.bytes, "partitionValues": cell}, 0)
    publish(first, [action], replace(note, slot=2, previous=1, run="first", live=0), "things@1")
    with pytest.raises(NotTheNewest):
        publish(second, [], replace(note, slot=2, previous=1, run="second"), "things@1")
    latest = opened(index)
    assert latest.version == first.version + 1
    assert next(note.run for _, note in latest.notes()) == "first"
    assert latest.rows == 0


def test_purge_deletes_what_is_ours_and_in_no_kept_version(
    index: Index, bucket: obstore.store.S3Store
) -> None:
    left = ["README.md", "_delta_log/README", f"day=1/part-00000-{UUID}.parquet"]
    left += [f"inside/_delta_log/{0:020d}.json", f"inside/_g=0/_e=1/part-00000-{UUID}.parquet"]
    gone = [f"_g=0/_e=1/part-00000-{UUID}.parquet", f"deletion_vector_{UUID}.bin"]
    gone += [f"_incoming/0123/_g=0/_e=1/part-00000-{UUID}.parquet"]
    for name in [*left, *gone]:
        obstore.put(bucket, f"table/{name}", b"somebody's")
    later = datetime.now(UTC) + timedelta(days=30)
    shown = purgeable(index, later)
    assert purge(index, later) == shown
    after = set(names(bucket))
    assert {f"table/{name}" for name in left} <= after
    assert not {f"table/{name}" for name in gone} & after
    data = [name for name in after if name.startswith("table/_g=")]
    assert sorted(data) == sorted(f"table/{file.path}" for file in opened(index).files)
    assert read.count(read.view(index), Restriction()) == 2


def test_a_place_inside_another_table_is_refused(
    index: Index, workspace: Workspace, bucket: obstore.store.S3Store
) -> None:
    """At any depth, and for a purge too: the other table may have come later."""
    inside = workspace.index(table=f"s3a://{BUCKET}/table/deep/below/mine")
    before = names(bucket, "")
    with pytest.raises(UserError, match=f"lies inside s3a://{BUCKET}/table, which is a Delta"):
        IndexTable(inside).state()
    assert names(bucket, "") == before
    beside = workspace.index(table=f"s3a://{BUCKET}/table2/deep/mine")
    assert IndexTable(beside).state() is None

    obstore.put(bucket, f"_delta_log/{0:020d}.json", b"{}")
    with pytest.raises(UserError, match=f"lies inside s3a://{BUCKET}, which is a Delta"):
        purge(index)


def test_every_file_of_a_source_is_asked_for_its_columns(
    index: Index, bucket: obstore.store.S3Store, tmp_path: Path
) -> None:
    """As on a disk: listed without what is hidden, and none of them fills in NULL."""
    rows = pa.table({"id": [1], "value": [1]})
    names_of = {"a.parquet": rows, "day=1/b.parquet": rows.drop(["value"]), "_c.parquet": rows,
                "sub/d.parquet": rows}  # fmt: skip
    for name, table in names_of.items():
        pq.write_table(table, tmp_path / "file")
        obstore.put(bucket, f"source/{name}", (tmp_path / "file").read_bytes())
    obstore.put(bucket, "text/a.csv", b"id,value\n1,1\n")
    root = f"s3a://{BUCKET}/source"
    files = source_files([root], {}, beside=index.table)
    assert files is not None
    assert [file.path for file in files] == [f"{root}/a.parquet", f"{root}/day=1/b.parquet"]
    assert [file.partitions for file in files] == [(), ("day",)]
    columns = columns_of(files, "parquet", {})
    assert columns is not None
    with pytest.raises(UserError, match=r"day=1/b.parquet has no column 'value', which the file"):
        agreed(columns, None, frozenset(), NewColumns.IGNORE)
    assert changed_since(files) == []

    (only,) = source_files([f"{root}/a.parquet"], {}, beside=index.table) or []
    assert only.path == f"{root}/a.parquet"
    (text,) = source_files([f"s3a://{BUCKET}/text"], {}, beside=index.table) or []
    (found,) = columns_of([text], "csv", {}) or []
    assert found.header == ("id", "value")
    assert source_files([f"{root}/day=*"], {}, beside=index.table) is None
    assert source_files([root], {}, beside=str(tmp_path)) is None
    assert source_files([root], {}, beside="gs://lake/table") is None


def test_a_damaged_log_is_named(index: Index, bucket: obstore.store.S3Store) -> None:
    newest = f"table/_delta_log/{opened(index).version:020d}.json"
    whole = bytes(obstore.get(bucket, newest).bytes())
    obstore.put(bucket, newest, whole[: len(whole) // 2])
    with pytest.raises(DamagedLog, match=newest.rpartition("/")[2]):
        IndexTable(index).state()
