"""Sources as they come in real life, one line each: what lies there, and what must come of it.

A line is a `Case`. Either its rows are `Taken`: the table then holds exactly the rows named, and
the quarantine the others, each with its reason; or the update is `Refused` with a sentence, and
nothing has changed. There is no third outcome.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import orc
from pyspark.sql import SparkSession

from tests.cli.handmade import make_table
from tests.workspace import SCHEMA, Row, Workspace, row
from tidetable.config import Index
from tidetable.core.columns import CELL_E, CELL_G, RAW, REASON
from tidetable.core.errors import TidetableError, TransientError, UserError
from tidetable.engine.source import Source
from tidetable.engine.staging import staged
from tidetable.engine.swap import schema_of
from tidetable.engine.updater import Updater
from tidetable.table.log import open_log

STORED = row(0, 0, 5)
"""The row that is in the table before the source turns hostile."""


@dataclass(frozen=True)
class Taken:
    """The ids in the table afterwards, and the reason for each id in quarantine."""

    ids: Sequence[int]
    reasons: Mapping[int | None, str] = field(default_factory=dict)
    """None stands for a row whose id cannot be read any more."""


@dataclass(frozen=True)
class Refused:
    """The update fails with this sentence, and the table is as it was."""

    sentence: str
    retry: bool = False
    """Whether running it again may help."""

    @property
    def error(self) -> type[TidetableError]:
        return TransientError if self.retry else UserError


@dataclass(frozen=True)
class Case:
    """One line: files of the source, the YAML that differs, and the outcome of update 1."""

    name: str
    files: Callable[[Workspace], object]
    outcome: Taken | Refused
    yaml: Mapping[str, Any] = field(default_factory=dict)
    table: pa.Schema | None = SCHEMA
    """The columns of the table, which holds STORED; None: there is no table yet."""

    commits: bool = False
    """Whether the update is made to its end."""


def put(workspace: Workspace, name: str, rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> Path:
    """A file, or a Delta table, of this name in the source, in the format that its suffix says."""
    path = workspace.source / name
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.suffix.removeprefix(".")
    given = [{name: one.get(name) for name in schema.names} for one in rows]
    if kind == "csv":
        workspace.add_csv(given, schema.names).rename(path)
    elif kind == "json":
        workspace.add_json(given).rename(path)
    elif kind == "xml":
        path.write_text(f"<rows>{''.join(map(_as_xml, given))}</rows>")
    else:
        table = pa.Table.from_pylist(given, schema)
        writers = {"parquet": pq.write_table, "orc": orc.write_table}
        if kind in writers:
            writers[kind](table, path)
        else:
            write_deltalake(str(path), table)
    return path


def _as_xml(one: Mapping[str, Any]) -> str:
    """A field that is null is left out."""
    said = {name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in one.items() if value is not None}  # fmt: skip
    return f"<row>{''.join(f'<{name}>{value}</{name}>' for name, value in said.items())}</row>"


def lines(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """Every case as a test of its own, under its own name."""
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), "two lines have the same name"
    return pytest.mark.parametrize("case", cases, ids=names)


def meet(spark: SparkSession, workspace: Workspace, case: Case) -> Index:
    """Lets update 1 meet the files of the case, and compares the outcome.

    What differs from case to case is what is read, and how it is judged; so most stop there, at the
    rows that would be committed, which have the table's own columns. `commits` goes on to the end.
    """
    if case.table is None:
        index = workspace.index(**case.yaml)
    else:
        stored = {name: STORED.get(name) for name in case.table.names}
        index = make_table(workspace, [stored], case.table, **case.yaml)
    case.files(workspace)
    if isinstance(case.outcome, Refused):
        _is_refused(spark, index, case.outcome)
    elif case.commits:
        list(Updater(spark, index).catch_up(1))
        assert workspace.ids() == sorted(case.outcome.ids)
        assert reasons_by_id(workspace, index) == dict(case.outcome.reasons)
    else:
        _is_taken(spark, index, case.outcome)
    return index


def _is_taken(spark: SparkSession, index: Index, outcome: Taken) -> None:
    known = None if (log := open_log(index.table)) is None else schema_of(log)
    timeline = index.timeline
    source = Source(spark, index).rows(timeline.begin_of(1), timeline.end_of(1), known)
    batch = staged(index, source, 1, 1)
    if known is not None:
        columns = {field.name: field.dataType for field in batch.schema}
        cells = (CELL_G, CELL_E, *columns.keys() - set(known.names))
        assert columns.keys() - set(known.names) == {REASON, RAW}
        assert all(columns[f.name] == f.dataType for f in known if f.name not in cells)
    ids = [] if known is None else [STORED["id"]]
    reasons = {}
    for one in batch.collect():
        if one[REASON] is None:
            ids.append(int(one["id"]))
        else:
            number = json.loads(one[RAW]).get("id")
            reasons[None if number is None else int(number)] = one[REASON]
    assert sorted(ids) == sorted(outcome.ids)
    assert reasons == dict(outcome.reasons)


def _is_refused(spark: SparkSession, index: Index, outcome: Refused) -> None:
    """By `check` and by `update`, with the same sentence and without a trace of Java."""
    before = _versions(index)
    for attempt in (_check, _update):
        with pytest.raises(outcome.error) as raised:
            attempt(spark, index)
        said = str(raised.value)
        assert re.search(outcome.sentence, said), said
        assert "org.apache" not in said
        assert "SQLSTATE" not in said
    assert _versions(index) == before


def _check(spark: SparkSession, index: Index) -> None:
    Updater(spark, index).preview()


def _update(spark: SparkSession, index: Index) -> None:
    list(Updater(spark, index).catch_up(1))


def _versions(index: Index) -> list[int | None]:
    logs = [open_log(index.table), open_log(f"{index.table}_quarantine")]
    return [None if log is None else log.version for log in logs]


def reasons_by_id(workspace: Workspace, index: Index) -> dict[int | None, str]:
    """id -> reason of all rows in quarantine; a row that is there twice fails."""
    found: dict[int | None, str] = {}
    for one in workspace.quarantined(index):
        number = json.loads(one["row"]).get("id")
        number = None if number is None else int(number)
        assert number not in found, f"row {number} is in quarantine twice"
        found[number] = one["reason"]
    return found
