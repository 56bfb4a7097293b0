"""What a task writes of a cell: the right rows, in order, in files of the right size."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidetable.core.columns import CELL_E, CELL_G, EXPIRATION_SLOT, INSERTION_SLOT, REASON
from tidetable.table import parts
from tidetable.table.bounds import TEXT_MAX
from tidetable.table.parts import Part, Recipe, Told, write_parts

START = datetime(2024, 3, 1, tzinfo=UTC)
MB = 1024 * 1024
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("key", pa.string()),
        ("expires_at", pa.timestamp("us", "UTC")),
        (INSERTION_SLOT, pa.int64()),
        (EXPIRATION_SLOT, pa.int64()),
    ]
)
KINDS = {"key": "string", "expires_at": "timestamp", EXPIRATION_SLOT: "long"}

Row = dict[str, Any]


def row(number: int, key: Any, expires: int, **more: Any) -> Row:
    return {
        "id": number,
        "key": key,
        "expires_at": START + timedelta(hours=expires),
        INSERTION_SLOT: 5,
        EXPIRATION_SLOT: expires,
        CELL_G: 0,
        CELL_E: 0,
        REASON: None,
        **more,
    }


def recipe(folder: Path, *parts: Sequence[Part], schema: pa.Schema = SCHEMA, **more: Any) -> Recipe:
    """What tasks with these parts need to know, at slot 5."""
    return Recipe(
        root=str(folder),
        incoming="_incoming/run",
        schema=schema,
        key="key",
        expires_at="expires_at",
        last=5,
        parts=tuple(map(tuple, parts)),
        **{"bounded": KINDS, "file_bytes": 64 * MB, "codec": "snappy", **more},
    )


def batches(rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> list[pa.RecordBatch]:
    """The rows as they come from Spark, some at a time, an empty batch among them."""
    whole = pa.schema([*schema, (CELL_G, pa.int32()), (CELL_E, pa.int32()), (REASON, pa.string())])
    table = pa.Table.from_pylist(list(rows), schema=whole)
    return [*table.to_batches(max_chunksize=3), *table.slice(0, 0).to_batches()]


def stored(folder: Path, rows: Sequence[Row], name: str, **options: Any) -> str:
    """A file of the table with these rows."""
    known = [{column: one[column] for column in SCHEMA.names} for one in rows]
    pq.write_table(pa.Table.from_pylist(known, schema=SCHEMA), folder / name, **options)
    return name


def written(folder: Path, told: Told) -> list[list[Row]]:
    """The rows of each file."""
    return [pq.read_table(folder / one["path"]).to_pylist() for one in told.files]


def ids(files: Sequence[Sequence[Row]]) -> list[int]:
    return sorted(one["id"] for file in files for one in file)


# -- rows ------------------------------------------------------------------------------------------


def test_new_and_stored_rows_of_a_cell_are_sorted_together(tmp_path: Path) -> None:
    old = [row(1, "b", 9), row(2, "d", 5), row(3, "d", 7)]  # the second one has expired
    new = [row(4, "d", 6), row(5, "a", 8)]
    part = Part(0, 0, stored=(stored(tmp_path, old, "old.parquet"),))
    told = write_parts(recipe(tmp_path, [part]), 0, batches(new))
    (rows,) = written(tmp_path, told)
    assert [one["id"] for one in rows] == [5, 1, 4, 3]
    assert told.seen == {"old.parquet": 3}
    (file,) = told.files
    assert (file["g"], file["e"], file["rows"]) == (0, 0, 4)
    assert file["path"].startswith("_incoming/run/_g=0/_e=0/part-")


def test_rows_go_to_their_cells_and_bad_and_dead_ones_are_only_counted(tmp_path: Path) -> None:
    rows = [
        row(1, "a", 9),
        row(2, "b", 9, **{CELL_E: 1}),
        row(3, "", 9, **{REASON: "no key"}),
        row(4, "c", 5),  # dead on arrival
        row(5, "c", 4, **{INSERTION_SLOT: 3}),  # came and went inside a fold
        row(6, None, 9, **{REASON: "no arrival", INSERTION_SLOT: None, CELL_G: None, CELL_E: None}),
    ]
    told = write_parts(recipe(tmp_path, [Part(0, 0), Part(0, 1)]), 0, batches(rows))
    cells = {file["e"]: ids([part]) for file, part in
             zip(told.files, written(tmp_path, told), strict=True)}  # fmt: skip
    assert cells == {0: [1], 1: [2]}
    assert told.arrived == {
        (5, 9, None): 2, (5, 5, None): 1, (3, 4, None): 1,
        (5, None, "no key"): 1, (None, None, "no arrival"): 1,
    }  # fmt: skip


def test_a_row_of_another_task_s_cell_is_no_silent_loss(tmp_path: Path) -> None:
    """It is counted, so it is seen that the source has changed since the plan was made."""
    come = batches([row(1, "a", 9, **{CELL_E: 7}), row(2, "b", 9)])
    told = write_parts(recipe(tmp_path, [Part(0, 0)]), 0, come)
    assert sum(told.arrived.values()) == 2
    assert [file["rows"] for file in told.files] == [1]


def test_without_rows_there_is_no_file(tmp_path: Path) -> None:
    dead = stored(tmp_path, [row(1, "a", 5)], "dead.parquet")
    told = write_parts(recipe(tmp_path, [Part(0, 0, stored=(dead,)), Part(0, 1)]), 0, [])
    assert told.files == []
    assert told.seen == {"dead.parquet": 1}
    assert not (tmp_path / "_incoming").exists()


def test_columns_that_a_file_lacks_are_null_and_narrow_ones_are_widened(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("added", pa.string()))
    narrow = SCHEMA.set(0, pa.field("id", pa.int32()))
    old = {name: value for name, value in row(1, "a", 9).items() if name in narrow.names}
    pq.write_table(pa.Table.from_pylist([old], schema=narrow), tmp_path / "old.parquet")
    part = Part(0, 0, stored=("old.parquet",))
    told = write_parts(
        recipe(tmp_path, [part], schema=schema), 0, batches([row(2, "b", 9, added="x")], schema)
    )
    (rows,) = written(tmp_path, told)
    assert [(one["id"], one["added"]) for one in rows] == [(1, None), (2, "x")]
    assert pq.read_schema(tmp_path / told.files[0]["path"]).field("id").type == pa.int64()


# -- key ranges ------------------------------------------------------------------------------------

NAN = float("nan")
KEYS = st.one_of(
    st.lists(st.text(max_size=3), min_size=1),
    st.lists(st.integers(-5, 5), min_size=1),
    st.lists(st.sampled_from([NAN, -0.0, 0.0, 1.5, -1.5, math.inf, -math.inf]), min_size=1),
    st.lists(st.binary(max_size=2), min_size=1),
    st.lists(st.dates(date(2024, 1, 1), date(2024, 1, 9)), min_size=1),
    st.lists(st.sampled_from([Decimal("-1.5"), Decimal("0.0"), Decimal("2.5")]), min_size=1),
    st.lists(st.booleans(), min_size=1),
)


@given(KEYS, st.data())
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_each_stored_row_lies_in_one_part(tmp_path: Path, keys: list[Any], data: Any) -> None:
    """Whatever its key is, and wherever its cell is cut; row groups are passed over by bounds."""
    points = sorted(data.draw(st.sets(st.sampled_from([k for k in keys if k == k] or [0]))))
    kind = pa.decimal128(5, 1) if isinstance(keys[0], Decimal) else pa.array(keys).type
    if not points or not any(k == k for k in keys):
        points = []
    schema = SCHEMA.set(1, pa.field("key", kind))
    table = pa.Table.from_pylist([{**row(n, key, 9)} for n, key in enumerate(keys)], schema=schema)
    pq.write_table(table, tmp_path / "old.parquet", row_group_size=2)
    ends = [None, *points, None]
    tasks = [[Part(0, 0, ends[n], ends[n + 1], ("old.parquet",))] for n in range(len(points) + 1)]
    made = recipe(tmp_path, *tasks, schema=schema, bounded={})
    told = [write_parts(made, task, []) for task in range(len(tasks))]
    assert sum((one.seen for one in told), Counter()) == {"old.parquet": len(keys)}
    assert sorted(n for one in told for n in ids(written(tmp_path, one))) == list(range(len(keys)))


def test_row_groups_outside_of_the_part_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = stored(tmp_path, [row(n, f"k{n:03d}", 9) for n in range(100)], "old", row_group_size=10)
    groups = []
    read = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_group",
        lambda file, group, **more: groups.append(group) or read(file, group, **more),
    )
    told = write_parts(recipe(tmp_path, [Part(0, 0, "k019", "k040", (name,))]), 0, [])
    assert ids(written(tmp_path, told)) == list(range(20, 41))
    assert groups == [2, 3, 4]


# -- files -----------------------------------------------------------------------------------------


def wide(number: int, random: Random) -> list[Row]:
    return [row(n, random.randbytes(500).hex(), 9) for n in range(number)]


def test_more_rows_than_expected_become_several_files(tmp_path: Path) -> None:
    rows = wide(8000, Random(1))
    told = write_parts(recipe(tmp_path, [Part(0, 0)], file_bytes=MB), 0, batches(rows))
    files = written(tmp_path, told)
    assert len(files) > 3
    assert ids(files) == list(range(8000))
    assert all(MB / 4 < one["bytes"] < 1.6 * MB for one in told.files)
    ranges = [(file[0]["key"], file[-1]["key"]) for file in files]
    assert ranges == sorted(ranges)
    assert all(file == sorted(file, key=lambda one: one["key"]) for file in files)


def test_memory_is_bounded_whatever_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are written as they come once there are too many; none is lost or doubled."""
    monkeypatch.setattr(parts, "FLUSH_BYTES", 100_000)
    old = stored(tmp_path, [row(5000, "x", 9)], "old.parquet")
    rows = wide(1000, Random(2))
    made = recipe(tmp_path, [Part(0, 0, stored=(old,))])
    told = write_parts(made, 0, batches(rows))
    files = written(tmp_path, told)
    assert len(files) > 5
    assert ids(files) == [*range(1000), 5000]
    assert told.seen == {"old.parquet": 1}
    assert told.arrived == {(5, 9, None): 1000}


def test_pages_are_small_and_only_what_repeats_has_a_dictionary(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("text", pa.string()))
    random = Random(3)
    rows = [row(n, f"k{n % 50:02d}", 9, text=random.randbytes(450).hex()) for n in range(4000)]
    told = write_parts(recipe(tmp_path, [Part(0, 0)], schema=schema), 0, batches(rows, schema))
    footer = pq.read_metadata(tmp_path / told.files[0]["path"])
    columns = {footer.row_group(0).column(i).path_in_schema: footer.row_group(0).column(i)
               for i in range(footer.num_columns)}  # fmt: skip
    assert columns["key"].has_dictionary_page
    assert not columns["text"].has_dictionary_page
    assert not columns["id"].has_dictionary_page
    assert columns["text"].has_offset_index
    assert columns["text"].has_column_index
    assert footer.metadata is None or b"ARROW:schema" not in footer.metadata


# -- statistics ------------------------------------------------------------------------------------


def stats_of(folder: Path, kind: pa.DataType, name: str, values: Sequence[Any]) -> dict[str, Any]:
    """The statistics of a file whose column `x` has these values, as the task tells them."""
    schema = SCHEMA.append(pa.field("x", kind))
    made = recipe(folder, [Part(0, 0)], schema=schema, bounded={"x": name})
    rows = [row(n, "k", 9, x=value) for n, value in enumerate(values)]
    (file,) = write_parts(made, 0, batches(rows, schema)).files
    told: dict[str, Any] = json.loads(file["stats"], parse_float=Decimal)
    return told


@pytest.mark.parametrize(
    ("kind", "name", "values", "bounds"),
    [
        (pa.int64(), "long", [3, None, -(2**63), 2**63 - 1], (-(2**63), 2**63 - 1)),
        (pa.string(), "string", ["b", "ä", "日本", "", None], ("", "日本")),
        (pa.string(), "string", ["b" * 5000], ("b" * TEXT_MAX, "b" * TEXT_MAX + "\U0010ffff")),
        (pa.decimal128(20, 2), "decimal(20,2)", [Decimal("1234567890123456.78"), Decimal("-0.01")],
         (Decimal("-0.01"), Decimal("1234567890123456.78"))),
        (pa.date32(), "date", [date(2024, 2, 29), date(1, 1, 1)], ("0001-01-01", "2024-02-29")),
        (pa.timestamp("us", "UTC"), "timestamp",
         [datetime(2024, 3, 1, 12, 0, 0, 1, UTC), datetime(987, 1, 1, tzinfo=UTC)],
         ("0987-01-01T00:00:00.000000Z", "2024-03-01T12:00:00.000001Z")),
        (pa.float64(), "double", [1.5, -2.25], (Decimal("-2.25"), Decimal("1.5"))),
        (pa.float64(), "double", [0.0], (Decimal("-0.0"), Decimal("0.0"))),
        (pa.float64(), "double", [-0.0], (Decimal("-0.0"), Decimal("0.0"))),
    ],
    ids=["long", "string", "long text", "decimal", "date", "timestamp", "double", "zero", "-zero"],
)  # fmt: skip
def test_bounds(
    tmp_path: Path, kind: pa.DataType, name: str, values: list[Any], bounds: tuple[Any, Any]
) -> None:
    found = stats_of(tmp_path, kind, name, values)
    assert (found["minValues"]["x"], found["maxValues"]["x"]) == bounds
    assert str(found["minValues"]["x"]) == str(bounds[0])  # -0.0 == 0.0
    assert found["numRecords"] == len(values)
    assert found["nullCount"] == {"x": values.count(None)}


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        (pa.string(), "string", [None, None]),
        (pa.float64(), "double", [1.0, NAN]),
        (pa.float32(), "float", [1.0, math.inf]),
        (pa.timestamp("us", "UTC"), "timestamp", [10**18]),  # in the year 33658
        (pa.date32(), "date", [10**8]),
        (pa.string(), "string", ["a" * TEXT_MAX + "\U0010ffff"]),
    ],
    ids=["only nulls", "NaN", "infinite", "far away", "a day far away", "no greater prefix"],
)
def test_what_cannot_be_told_is_left_out(
    tmp_path: Path, kind: pa.DataType, name: str, values: list[Any]
) -> None:
    found = stats_of(tmp_path, kind, name, values)
    assert found["minValues"] == found["maxValues"] == {}
    assert found["nullCount"] == {"x": values.count(None)}


def test_bounds_of_a_file_span_its_row_groups(tmp_path: Path) -> None:
    rows = wide(3000, Random(4))
    made = replace(recipe(tmp_path, [Part(0, 0)]), file_bytes=64 * 1024)
    told = write_parts(made, 0, batches(rows))
    for file, stored_rows in zip(told.files, written(tmp_path, told), strict=True):
        keys = [one["key"] for one in stored_rows]
        found = json.loads(file["stats"])
        assert found["minValues"]["key"] == min(keys)[:TEXT_MAX]
        assert found["maxValues"]["key"] > max(keys)[:TEXT_MAX]


@given(st.lists(st.text(max_size=3 * TEXT_MAX), min_size=1, max_size=6))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_text_lies_between_its_bounds(tmp_path: Path, values: list[str]) -> None:
    found = stats_of(tmp_path, pa.string(), "string", values)
    if found["minValues"]:
        low, high = (found[name]["x"].encode() for name in ("minValues", "maxValues"))
        assert all(low <= value.encode() <= high for value in values)
