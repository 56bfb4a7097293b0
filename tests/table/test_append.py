"""Of many who make the next version of a log one does, and nobody replaces another's."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidetable.core.errors import UserError
from tidetable.table.append import NotTheNewest, append_version


def made_by(table: Path, number: int) -> bool:
    try:
        append_version(str(table), 7, [{"commitInfo": {"by": number}}])
    except NotTheNewest:
        return False
    return True


def test_one_of_many_wins_and_nothing_else_is_left(tmp_path: Path) -> None:
    for turn in range(20):
        table = tmp_path / str(turn)
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda number: made_by(table, number), range(8)))  # noqa: B023
        (winner,) = [number for number, has_won in enumerate(won) if has_won]
        (commit,) = (table / "_delta_log").iterdir()
        assert commit.name == "00000000000000000007.json"
        assert json.loads(commit.read_text()) == {"commitInfo": {"by": winner}}


def test_a_store_that_cannot_refuse_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be committed to"):
        append_version("hdfs://name/table", 0, [])
