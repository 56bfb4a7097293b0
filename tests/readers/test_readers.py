"""Every reader of docs/readers.md returns the same rows, or says that it cannot as the page has it.

The lines that are run are those of the page.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.readers.stages import COLUMNS, SCHEMES, STAGES, expected, make
from tests.readers.values import IN_THE_PAGE, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(
    1800
)  # the first test makes ten tables: minutes, if others compute

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "readers.md"
READER_S = 300
"""On a busy machine; alone it takes seconds."""

MESSAGE_MAX = 200

Tables = Mapping[tuple[str, str], Path]
"""(kind, stage) -> the table as it was after it."""


@dataclass(frozen=True)
class Reader:
    """One heading of the page."""

    name: str
    packages: tuple[str, ...]
    text_is_bytes: bool = False

    @property
    def code(self) -> str:
        return snippets()[self.name]


READERS = (
    Reader("Spark", ("pyspark", "delta-spark")),
    Reader("Polars", ("polars", "deltalake")),
    Reader("DuckDB", ("duckdb", "duckdb-extension-delta")),
    Reader("deltalake, as SQL", ("deltalake",)),
    Reader("deltalake, as a pyarrow table", ("deltalake", "pyarrow")),
    Reader("deltalake, as a pyarrow dataset", ("deltalake", "pyarrow")),
    Reader("pandas", ("pandas", "deltalake")),
    Reader("DataFusion", ("datafusion", "deltalake")),
    Reader("DataFusion, with a condition", ("datafusion", "deltalake")),
    Reader("chdb", ("chdb",), text_is_bytes=True),
    Reader("Delta Sharing's kernel", ("delta-kernel-rust-sharing-wrapper",)),
)
SPARK, *OTHERS = READERS


def snippets() -> dict[str, str]:
    """The lines of each reader in the page."""
    found = re.findall(r"^### (.+?)\n.*?^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    return dict(found)


@dataclass(frozen=True)
class Answers:
    """What a reader returned for the tables of all kinds and stages, or said."""

    versions: str
    rows: Mapping[tuple[str, str], list[str] | str]

    @classmethod
    def of(cls, versions: list[str], tables: Tables, answers: list[dict[str, Any]]) -> Answers:
        rows = [one["rows"] if "rows" in one else str(one["says"]) for one in answers]
        return cls(", ".join(versions), dict(zip(tables, rows, strict=True)))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Made once, for all readers."""
    made = {kind: make(spark, tmp_path_factory.mktemp(kind.split()[0]), kind) for kind in SCHEMES}
    return {(kind, stage): path for kind, paths in made.items() for stage, path in paths.items()}


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, tables: Tables) -> Mapping[str, Answers]:
    """Spark's rows as a reader's, and once more with text as bytes."""
    names: dict[str, Any] = {}
    both: dict[str, list[dict[str, Any]]] = {"text": [], "bytes": []}
    for path in tables.values():
        exec(SPARK.code.replace(IN_THE_PAGE, str(path)), names)
        table = names["rows"].toArrow()
        both["text"].append({"rows": texts(table)})
        both["bytes"].append({"rows": texts(table, text_is_bytes=True)})
    versions = [f"{package} {version(package)}" for package in SPARK.packages]
    return {name: Answers.of(versions, tables, answers) for name, answers in both.items()}


@pytest.fixture(scope="module")
def matrix(tables: Tables, by_spark: Mapping[str, Answers]) -> Mapping[str, Answers]:
    """Every reader's answers."""
    made = subprocess.run([ROOT / "scripts" / "readers"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    python = made.stdout.strip()
    with ThreadPoolExecutor(2) as pool:
        told = pool.map(lambda reader: asked(python, reader, tables), OTHERS)
        others = dict(zip([reader.name for reader in OTHERS], told, strict=True))
    return {SPARK.name: by_spark["text"], **others}


def asked(python: str, reader: Reader, tables: Tables) -> Answers:
    question = {
        "code": reader.code,
        "tables": [str(path) for path in tables.values()],
        "packages": reader.packages,
        "text_is_bytes": reader.text_is_bytes,
    }
    program = Path(__file__).with_name("ask.py")
    done = subprocess.run(
        [python, str(program)],
        input=json.dumps(question), capture_output=True, text=True, timeout=READER_S,
    )  # fmt: skip
    assert done.returncode == 0, f"{reader.name}: {done.stderr[-2000:]}"
    told = json.loads(done.stdout.splitlines()[-1])
    return Answers.of(told["versions"], tables, told["answers"])


# -- what it comes to ----------------------------------------------------------------------------


def outcome(mine: list[str] | str, sparks: list[str] | str) -> str:
    """How a reader did with one table, in the words of the page."""
    if isinstance(mine, str):
        return f"no: `{gist(mine)}`"
    if mine == sparks:
        return "yes"
    seen, right = ({row["id"]: row for row in map(json.loads, rows)} for rows in (mine, sparks))
    if seen.keys() != right.keys() or len(mine) != len(sparks):
        return f"OTHER ROWS: {len(mine)} instead of {len(sparks)}"
    columns = {name for row in (*seen.values(), *right.values()) for name in row}
    differ = [
        (name, right[number].get(name, ...))
        for number in right
        for name in columns
        if seen[number].get(name, ...) != right[number].get(name, ...)
    ]
    names = ", ".join(f"`{name}`" for name in sorted({name for name, _ in differ}))
    if all(told is None for _, told in differ):
        return f"yes, without the nulls of {names}"
    return f"OTHER VALUES of {names}"


def gist(message: str) -> str:
    """The beginning of what a reader says, without line breaks."""
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_MAX else line[:MESSAGE_MAX].rsplit(" ", 1)[0] + " ..."


def cell(answers: Answers, sparks: Answers, kind: str) -> str:
    """The same for all stages of a kind."""
    found: dict[str, list[str]] = {}
    for stage in STAGES:
        told = outcome(answers.rows[kind, stage], sparks.rows[kind, stage])
        found.setdefault(told, []).append(stage)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"after {', '.join(stages)} {told}" for told, stages in found.items())


def table(matrix: Mapping[str, Answers], by_spark: Mapping[str, Answers]) -> str:
    """The first table of the page."""
    lines = [f"| reader | versions | {' | '.join(SCHEMES)} |", "|---|---|---|---|"]
    for reader in READERS:
        sparks = by_spark["bytes" if reader.text_is_bytes else "text"]
        answers = matrix[reader.name]
        cells = [cell(answers, sparks, kind) for kind in SCHEMES]
        lines.append(f"| {' | '.join([reader.name, answers.versions, *cells])} |")
    return "\n".join(lines)


def test_every_reader_has_its_lines_in_the_page_and_there_are_no_others() -> None:
    assert list(snippets()) == [reader.name for reader in READERS]


@pytest.mark.parametrize("kind", SCHEMES)
def test_spark_reads_the_rows_that_live(by_spark: Mapping[str, Answers], kind: str) -> None:
    """Every value of every column as the source has it."""
    for stage, slot in STAGES.items():
        rows = [json.loads(text) for text in by_spark["text"].rows[kind, stage]]
        mine = [{name: row[name] for name in COLUMNS.names} for row in rows]
        right = texts(pa.Table.from_pylist(expected(slot), schema=COLUMNS))
        assert sorted(json.dumps(row, sort_keys=True) for row in mine) == right, stage


def test_the_page_says_who_reads_what(
    matrix: Mapping[str, Answers], by_spark: Mapping[str, Answers]
) -> None:
    found = table(matrix, by_spark)
    told = PAGE.read_text()
    assert found in told, f"docs/readers.md has another table than the readers make:\n{found}"
