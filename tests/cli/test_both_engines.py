"""Probes by any key, through delta-rs and through Spark: the same rows, whatever was typed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.cli.handmade import make_table
from tests.cli.runner import tidetable
from tests.workspace import SCHEMA, Row, Workspace, row

pytestmark = pytest.mark.spark

TEXTS = [
    "plain", "O'Hare", "''", "back\\slash", "trailing\\", "100%", "under_score", "München", "東京",
    "🛫", "a b", '"quoted"', "`tick`", "new\nline", "--", ";", "$x", "{y}", "\\'", "NULL", "K", "k",
]  # fmt: skip
ATTACKS = [
    "x' OR '1'='1", "x\\' OR 1=1 --", "'; DROP TABLE t; --", "x') OR ('1'='1", "%", "_", "pl%",
    "\\", "'", "' OR ''='", "x' UNION SELECT * FROM t --", "${key}", "*", "plain ", "",
]  # fmt: skip
KINDS: dict[str, tuple[pa.DataType, list[Any], list[str]]] = {
    "integer": (pa.int64(), [-5, 7, 8, 2**40], ["7", "-5", "1099511627776"]),
    "float": (pa.float32(), [0.1, 1.1, 2.5], ["1.1"]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.23"), Decimal("7.00")], ["7", "1.230", "1.234"]),
    "date": (pa.date32(), [date(2024, 3, n) for n in (1, 2, 3)], ["2024-03-02"]),
    "binary": (pa.binary(), [b"\x00\xff", b"'"], ["00ff", "27"]),
}

AT = {"integer": 1, "float": 1, "decimal": 1, "date": 1, "binary": 0}
"""Which of the values the first text means."""


def keyed(kind: pa.DataType) -> pa.Schema:
    return SCHEMA.set(SCHEMA.get_field_index("key"), pa.field("key", kind))


def rows(keys: Iterable[Any]) -> list[Row]:
    """Two rows for each key, of which the first expires later."""
    return [row(2 * n + i, 0, 3 - i, key=key) for n, key in enumerate(keys) for i in (0, 1)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("texts"))
    make_table(workspace, rows(TEXTS))
    return workspace


def found_by(workspace: Workspace, *arguments: object) -> list[dict[str, Any]]:
    """What both engines find, which must be the same."""
    by_engine = []
    for engine in ("delta-rs", "spark"):
        found = tidetable("probe", workspace.yaml, "--json", "--engine", engine, *arguments)
        assert (found.status, found.err) == (0, ""), (engine, arguments)
        by_engine.append(found.objects)
    from_delta_rs, from_spark = by_engine
    assert from_delta_rs == from_spark
    return from_delta_rs


def test_one_key(spark: SparkSession, texts: Workspace) -> None:
    found = found_by(texts, "plain")
    assert [(one["key"], one["_expiration_slot"]) for one in found] == [("plain", 2), ("plain", 3)]
    assert found[0]["expires_at"] == "2024-03-01T00:20:00Z"


def test_several_keys_of_any_characters(spark: SparkSession, texts: Workspace) -> None:
    found = found_by(texts, "--", *TEXTS)
    assert [(one["key"], one["_expiration_slot"]) for one in found] == sorted(
        (text, slot) for text in TEXTS for slot in (2, 3)
    )


def test_each_key_alone_without_a_jvm(texts: Workspace) -> None:
    for text in TEXTS:
        found = tidetable("probe", texts.yaml, "--json", "--", text).objects
        assert [one["key"] for one in found] == [text, text], text


def test_what_is_no_key_is_not_found_and_breaks_nothing(
    spark: SparkSession, texts: Workspace
) -> None:
    assert found_by(texts, "--", *ATTACKS) == []
    for text in ATTACKS:
        found = tidetable("probe", texts.yaml, "--json", "--", text)
        assert (found.status, found.out) == (0, ""), text
    assert len(tidetable("scan", texts.yaml, "--json").objects) == 2 * len(TEXTS)


def test_a_range_includes_both_ends(spark: SparkSession, texts: Workspace) -> None:
    found = {one["key"] for one in found_by(texts, "--from", "O'Hare", "--to", "k")}
    assert found == {text for text in TEXTS if "O'Hare" <= text <= "k"}
    assert {"O'Hare", "k"} <= found
    assert found_by(texts, "--from", "x' OR '1'='1", "--to", "y' OR '1'='1") == []


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_are_no_text(spark: SparkSession, workspace: Workspace, kind: str) -> None:
    data_type, values, typed = KINDS[kind]
    make_table(workspace, rows(values), keyed(data_type))
    found = found_by(workspace, "--", *typed)
    there = [text for text in typed if text != "1.234"]
    assert [one["_expiration_slot"] for one in found] == [2, 3] * len(there)
    from_there_on = found_by(workspace, "--from", there[0])
    assert from_there_on[0] in found
    assert len({str(one["key"]) for one in from_there_on}) == sum(
        value >= values[AT[kind]] for value in values
    )


def test_odd_columns_and_values_come_out_the_same(
    spark: SparkSession, workspace: Workspace
) -> None:
    """A column with a space and a quote, NaN, times with and without a zone, nested values."""
    extra = {
        "it's a `na\"me": pa.string(),
        "ratio": pa.float64(),
        "amount": pa.decimal128(9, 2),
        "day": pa.date32(),
        "raw": pa.binary(),
        "tags": pa.list_(pa.string()),
        "where": pa.struct([("seen", pa.timestamp("us", "UTC")), ("deep", pa.list_(pa.int64()))]),
        "counts": pa.map_(pa.string(), pa.int64()),
        "nothing": pa.string(),
    }
    schema = pa.schema([*SCHEMA, *extra.items()])
    values = {
        "it's a `na\"me": "x",
        "ratio": float("nan"),
        "amount": Decimal("1.50"),
        "day": date(2024, 3, 1),
        "raw": b"\x00\x01",
        "tags": ["a", None],
        "where": {"seen": row(0, 0.5, 1)["arrived_at"], "deep": [1, 2]},
        "counts": [("a", 1)],
        "nothing": None,
    }
    make_table(workspace, [row(1, 0, 2, key="k", **values)], schema)
    (found,) = found_by(workspace, "k")
    assert {name: found[name] for name in values} == {
        **values,
        "ratio": "NaN",
        "amount": "1.50",
        "day": "2024-03-01",
        "raw": "0001",
        "where": {"seen": "2024-03-01T00:05:00Z", "deep": [1, 2]},
        "counts": {"a": 1},
    }
