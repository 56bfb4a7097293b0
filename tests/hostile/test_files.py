"""Files as disks, exports and people leave them: half written, empty, hidden, oddly spelled."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.cli.handmade import make_table
from tests.cli.runner import tidetable
from tests.hostile.harness import STORED, Case, Refused, Taken, lines, meet, put
from tests.workspace import SCHEMA, Workspace, at, row
from tidetable.core.errors import TransientError
from tidetable.engine.source_files import source_files
from tidetable.engine.updater import Updater
from tidetable.table.steps import Step, watched

pytestmark = pytest.mark.spark

ONE = row(1, 0.5, 4)
T, E = at(0.5).isoformat(), at(4).isoformat()
HEADER = "id,key,arrived_at,inserted_at,expires_at"
LINE = f"1,k,{T},{T},{E}"
JSON = f'{{"id": 1, "key": "k", "arrived_at": "{T}", "inserted_at": "{T}", "expires_at": "{E}"}}'
CSV = {"source": {"format": "csv"}}
AS_JSON = {"source": {"format": "json"}}
BROKEN = Refused("The file .*bad.parquet of the source cannot be read", retry=True)
GOOD = Taken([0, 1])


def text(name: str, content: str | bytes) -> Callable[[Workspace], object]:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda workspace: (workspace.source / name).write_bytes(data)


def parquet(name: str = "m.parquet") -> Callable[[Workspace], object]:
    return lambda workspace: put(workspace, name, [ONE])


def both(*files: Callable[[Workspace], object]) -> Callable[[Workspace], object]:
    return lambda workspace: [write(workspace) for write in files]


def truncated(workspace: Workspace) -> None:
    path = put(workspace, "bad.parquet", [row(n, 0.5, 4) for n in range(100)])
    path.write_bytes(path.read_bytes()[:-100])


def milliseconds(workspace: Workspace) -> None:
    """A time that is one in milliseconds and none in microseconds."""
    kind = pa.timestamp("ms", "UTC")
    fields = [pa.field(f.name, kind if f.name == "inserted_at" else f.type) for f in SCHEMA]
    table = pa.Table.from_pylist([ONE], pa.schema(fields))
    far = pa.array([2**62], pa.int64()).view(kind)
    pq.write_table(table.set_column(3, "inserted_at", far), workspace.source / "bad.parquet")


CASES = [
    Case("an empty folder", lambda workspace: None, Taken([0])),
    Case("an empty folder, csv", lambda workspace: None, Taken([0]), CSV),
    Case("only hidden files", both(text("_SUCCESS", ""), text(".a.crc", "x")), Taken([0])),
    Case("an empty folder beside nothing", lambda workspace: None,
         Refused("no file in .* yet, so nobody knows the columns"), table=None),
    Case("a file of no bytes", both(parquet(), text("bad.parquet", "")), BROKEN),
    Case("a file cut short", truncated, BROKEN),
    Case("text instead of parquet", both(parquet(), text("bad.parquet", "PAR1 disk full")), BROKEN),
    Case("a time in milliseconds beyond all years", milliseconds,
         Refused("bad.parquet holds a time in milliseconds")),
    Case("a file without rows", both(parquet(), lambda w: put(w, "a.parquet", [])), GOOD),
    Case("csv of no bytes",
         both(text("a.csv", ""), text("b.csv", f"{HEADER}\n{LINE}\n")), GOOD, CSV),
    Case("csv with a header only", text("a.csv", f"{HEADER}\n"), Taken([0]), CSV),
    Case("csv with blanks in its header",
         text("a.csv", f" {HEADER.replace(',', ' , ')}\n{LINE}\n"), GOOD, CSV),
    Case("csv with blanks in one header of two",
         both(text("a.csv", f" {HEADER}\n{LINE}\n"),
              text("b.csv", f"{HEADER}\n2{LINE[1:]}\n")), Taken([0, 1, 2]), CSV),
    Case("csv with a byte order mark", text("a.csv", f"\ufeff{HEADER}\n{LINE}\n"), GOOD, CSV),
    Case("csv with line ends of Windows", text("a.csv", f"{HEADER}\r\n{LINE}\r\n"), GOOD, CSV),
    Case("csv with line ends of old Macs", text("a.csv", f"{HEADER}\r{LINE}\r"), GOOD, CSV),
    Case("csv without a last line end", text("a.csv", f"{HEADER}\n{LINE}"), GOOD, CSV),
    Case("csv with empty lines", text("a.csv", f"\n\n{HEADER}\n\n{LINE}\n\n"), GOOD, CSV),
    Case("csv in gzip", text("a.csv.gz", gzip.compress(f"{HEADER}\n{LINE}\n".encode())), GOOD, CSV),
    Case("csv with a column twice", text("a.csv", f"{HEADER},key\n{LINE},k\n"),
         Refused("has the columns 'key', 'key': names must differ"), CSV),
    Case("csv with a comma at each end", text("a.csv", f"{HEADER},\n{LINE},\n"), GOOD, CSV),
    Case("csv with a line too short",
         text("a.csv", f"{HEADER}\n{LINE}\n2,k,{T}\n"),
         Taken([0, 1], {2: "not readable as a record"}), CSV),
    Case("csv without a header", text("a.csv", f"{LINE}\n"),
         Refused("a.csv has no column 'id', which the table has; it has 1, k"), CSV),
    Case("json in one array", text("a.json", f"[{JSON}]"), GOOD, AS_JSON),
    Case("json with a byte order mark", text("a.json", f"\ufeff{JSON}\n"), GOOD, AS_JSON),
    Case("json of no bytes", both(text("a.json", ""), text("b.json", JSON)), GOOD, AS_JSON),
    Case("json cut short", text("a.json", f"{JSON}\n{JSON[:40]}"),
         Taken([0, 1], {None: "no readable arrival time"}), AS_JSON),
    Case("json that is a number", text("a.json", f"{JSON}\n5\n"),
         Taken([0, 1], {None: "no readable arrival time"}), AS_JSON),
]  # fmt: skip


@lines(CASES)
def test_files_as_they_are_found(spark: SparkSession, workspace: Workspace, case: Case) -> None:
    meet(spark, workspace, case)


ODD_NAMES = [
    "tick`tick", "dot.dot", "per%20cent", "back\\slash", "[bracket", "bracket]", "übergröße", "数",
    "quote'quote", 'double"double', "$variable", "#", "@", "-", "*", "a" * 255,
]  # fmt: skip


def test_columns_with_odd_names(spark: SparkSession, workspace: Workspace) -> None:
    """Text, a decimal, and nested values among them; the rows come out as they went in."""
    fields = [pa.field(name, pa.string()) for name in ODD_NAMES]
    nested = pa.struct([("a", pa.list_(pa.int32()))])
    fields += [pa.field("price", pa.decimal128(38, 18)), pa.field("nested", nested)]
    values = {name: name for name in ODD_NAMES}
    values |= {"price": Decimal("12345678901234567890.123456789012345678")}
    values |= {"nested": {"a": [1, None]}}
    schema = pa.schema([*SCHEMA, *fields])
    put(workspace, "a.parquet", [ONE | values, row(2, 1.5, 4) | values], schema)
    index = workspace.index()
    list(Updater(spark, index).catch_up(2))
    assert workspace.ids() == [1, 2]
    for stored in workspace.stored():
        assert {name: stored[name] for name in values} == values


# -- folders ---------------------------------------------------------------------------------------


def by_local_day(workspace: Workspace, number: int, moment: datetime) -> None:
    """Paris is an hour before UTC on that day; its times carry no zone."""
    local = moment + timedelta(hours=1)
    schema = pa.schema(
        [(f.name, pa.timestamp("us") if "_at" in f.name else f.type) for f in SCHEMA]
    )
    times = {"arrived_at": local, "inserted_at": local, "expires_at": local + timedelta(hours=5)}
    naive = {name: time.replace(tzinfo=None) for name, time in times.items()}
    put(workspace, f"{local:%Y-%m-%d}/{number}.parquet", [ONE | naive | {"id": number}], schema)


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_folders_by_local_day(spark: SparkSession, workspace: Workspace, zone: str | None) -> None:
    """Midnight in Paris is 23 hours in UTC: rows of that hour lie in the folder of the morrow."""
    night = datetime(2024, 3, 1, 22, 30, tzinfo=UTC)
    for hour in range(4):
        by_local_day(workspace, hour, night + timedelta(hours=hour))
    source = {"path": "source/{%Y-%m-%d}", "timezone": "Europe/Paris", "path_timezone": zone}
    source = {name: value for name, value in source.items() if value}
    times = {"start": "2024-03-01T22:00:00Z", "update_every": "1h", "longest_lifetime": "6h"}
    index = workspace.index(source=source, **times)
    list(Updater(spark, index).catch_up(1))
    list(Updater(spark, index).catch_up(4, fold=True))
    assert workspace.ids() == [0, 1, 2, 3]


def test_rows_in_a_folder_of_another_day_are_said(
    spark: SparkSession, workspace: Workspace
) -> None:
    """By `check` and at every recount. They are not taken: their own slot was done long ago."""
    source = {"path": "source/{%Y-%m-%d}", "recount_every": 1}
    index = make_table(workspace, [STORED], source=source)
    misplaced = [row(n, -200, -190) for n in (2, 3)]
    put(workspace, "2024-03-01/a.parquet", [ONE, *misplaced])
    assert Updater(spark, index).preview()["misplaced"] == 2
    found = tidetable("check", workspace.yaml)
    assert found.status == 0
    assert "2 rows lie in a folder that their arrival time does not belong to" in found.out
    reports = list(Updater(spark, index).catch_up(2))
    assert [report.misplaced for report in reports] == [0, 2]
    assert workspace.ids() == [0, 1]


def test_an_empty_folder_among_others(spark: SparkSession, workspace: Workspace) -> None:
    index = make_table(workspace, [STORED], source={"path": "source/{%Y-%m-%d-%H%M}"})
    (workspace.source / "2024-03-01-0001").mkdir()
    put(workspace, "2024-03-01-0005/a.parquet", [ONE])
    list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == [0, 1]


# -- a file that is replaced while it is read ------------------------------------------------------


OPTIONS: list[tuple[bool, dict[str, str]]] = [
    (False, {}),
    (True, {}),
    (False, {"pathGlobFilter": "*.parquet"}),
    (False, {"modifiedAfter": "2020-01-01T00:00:00", "modifiedBefore": "2200-01-01T00:00:00"}),
]


@pytest.mark.parametrize(("vectors", "options"), OPTIONS)
def test_a_file_that_is_replaced_after_it_was_counted(
    spark: SparkSession, workspace: Workspace, vectors: bool, options: dict[str, str]
) -> None:
    """By one with as many rows. Nothing is committed; the next attempt is right."""
    scheme = {"name": "sweep", "groups": 3, "deletion_vectors": vectors}
    index = workspace.index(scheme=scheme, source={"options": options})
    file = put(workspace, "a.parquet", [row(0, 0, 5), ONE])
    list(Updater(spark, index).catch_up(0))

    def replaces(step: Step) -> None:
        if step is Step.PLAN_MADE:
            other = put(workspace, "_new.parquet", [row(0, 0, 5), row(9, 0.5, 2)])
            other.rename(file)

    with (
        watched(replaces),
        pytest.raises(TransientError, match="the source was changed while it was read"),
    ):
        list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == [0]
    list(Updater(spark, index).catch_up(1))
    assert workspace.ids() == [0, 9]


CHOICES: list[dict[str, str]] = [
    {"pathGlobFilter": "*.csv"},
    {"pathglobfilter": "?.csv"},
    {"pathGlobFilter": "{a,bb}.*"},
    {"pathGlobFilter": "[a-c]*.csv"},
    {"pathGlobFilter": "[^a-b]*"},
    {"pathGlobFilter": "[!a]*"},
    {"pathGlobFilter": "a+(1).c?v"},
    {"pathGlobFilter": r"\*.csv"},
    {"pathGlobFilter": "a,b.csv"},
    {"pathGlobFilter": "nothing"},
    {"modifiedAfter": "2024-03-01T10:00:00"},
    {"modifiedBefore": "2024-03-01T10:00:00"},
    {"modifiedBefore": "2024-03-01T10:00:01", "modifiedAfter": "2024-03-01T09:59:59"},
    {"modifiedBefore": "2024-03-01T10:00:00", "pathGlobFilter": "*.csv"},
]


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_files_chosen_by_options_are_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    ten = datetime(2024, 3, 1, 10, tzinfo=UTC).timestamp()
    names = ("a.csv", "bb.csv", "c.json", "a+(1).csv", "*.csv", "a,b.csv", "day=1/d.csv")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    for name, seconds in {"bb.csv": -1, "c.json": 0, "*.csv": 1, "a+(1).csv": 0.0005}.items():
        os.utime(tmp_path / name, (ten + seconds, ten + seconds))
    reader = spark.read.format("csv").schema("x STRING").options(**options)
    wanted = sorted(unquote(file) for file in reader.load(str(tmp_path)).inputFiles())
    found = source_files([str(tmp_path)], options)
    assert found is not None
    assert sorted(f"file://{file.path}" for file in found) == wanted
