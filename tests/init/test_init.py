"""What `tidetable init` proposes: an index without mistake, read from the file that it writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.cli.runner import tidetable
from tidetable.config import Index, load_index
from tidetable.core.errors import UserError
from tidetable.init import look, propose

NEWEST = datetime(2024, 3, 2, 6, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def flights(number: int = 400) -> list[dict[str, Any]]:
    """Every 3 minutes one, up to NEWEST, of 20 to 339 minutes; the last one of 5 h 39 min."""
    rows = []
    for place in range(number):
        departed = NEWEST - (number - 1 - place) * 3 * MINUTE
        rows.append(
            {
                "carrier": ("AA", "UA")[place % 2],
                "tail_number": f"N{place % 97}",
                "seats": 50 + place % 200,
                "landed_at": departed + (20 + place * 7 % 320) * MINUTE,
                "departed_at": departed,
                "reported_at": departed + 30 * timedelta(seconds=1),
            }
        )
    return rows


def as_parquet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    source = folder / "source"
    source.mkdir()
    half = len(rows) // 2
    for name, part in (("a", rows[:half]), ("b", rows[half:])):
        pq.write_table(pa.Table.from_pylist(part), source / f"{name}.parquet")
    return source


def as_csv(folder: Path, rows: list[dict[str, Any]]) -> Path:
    source = folder / "source"
    source.mkdir()
    lines = [",".join(rows[0])]
    lines += [",".join(_text(value) for value in row.values()) for row in rows]
    (source / "rows.csv").write_text("\n".join(lines) + "\n")
    return source


def as_json(folder: Path, rows: list[dict[str, Any]]) -> Path:
    source = folder / "source"
    source.mkdir()
    texts = [json.dumps({name: _plain(value) for name, value in row.items()}) for row in rows]
    (source / "rows.jsonl").write_text("\n".join(texts) + "\n")
    return source


def as_delta(folder: Path, rows: list[dict[str, Any]]) -> Path:
    write_deltalake(str(folder / "source"), pa.Table.from_pylist(rows))
    return folder / "source"


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _text(value: Any) -> str:
    return "" if value is None else str(_plain(value))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "include" / "indexes").mkdir(parents=True)
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def proposed(project: Path, source: Path) -> Index:
    """The index that init has written for this source."""
    done = tidetable("init", "planes", "--source", source)
    assert done.status == 0, done.err
    assert tidetable("check", "planes", "--yaml-only").status == 0
    return load_index(project / "include" / "indexes" / "planes.yaml", project)


@pytest.mark.parametrize("write", [as_parquet, as_csv, as_json, as_delta])
def test_the_same_is_proposed_whatever_the_format(project: Path, write: Any) -> None:
    index = proposed(project, write(project, flights()))
    assert index.source.format == write.__name__.removeprefix("as_")
    assert index.key == "tail_number"
    assert index.source.arrived_at == "reported_at"
    assert index.inserted_at == "departed_at"
    assert index.expires_at == "landed_at"
    assert index.update_every == 10 * MINUTE
    assert index.longest_lifetime == 340 * MINUTE  # 338.5 is the longest that was seen
    assert index.end == NEWEST + 10 * MINUTE
    assert index.start == NEWEST - 110 * MINUTE
    assert not index.is_auto
    assert index.table == str(project / ".tidetable" / "planes")


def test_folders_of_a_day_become_placeholders(project: Path) -> None:
    rows = flights(900)
    source = project / "source"
    for day in sorted({row["reported_at"].date() for row in rows}):
        (source / f"day={day}").mkdir(parents=True)
        part = [row for row in rows if row["reported_at"].date() == day]
        pq.write_table(pa.Table.from_pylist(part), source / f"day={day}" / "a.parquet")
    index = proposed(project, source)
    assert index.source.path == str(source / "day={%Y-%m-%d}")


def test_folders_by_another_clock_do_not(project: Path) -> None:
    source = project / "source" / "day=2024-03-05"
    source.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(flights()), source / "a.parquet")
    assert not proposed(project, source.parent).source.has_placeholders


def test_other_candidates_are_in_comments(project: Path) -> None:
    proposed(project, as_parquet(project, flights()))
    text = (project / "include" / "indexes" / "planes.yaml").read_text()
    assert "# key: carrier" in text
    assert "# valid_from: reported_at" in text


def test_lifetimes_are_shown_as_bars(project: Path) -> None:
    done = tidetable("init", "planes", "--source", as_parquet(project, flights()))
    bars = [line for line in done.out.splitlines() if "█" in line]
    assert len(bars) == 12
    told = tidetable("init", "more", "--source", "source", "--dry-run", "--json").objects[0]
    assert sum(rows for _, rows in told["lifetimes"]) == 400


def test_nothing_is_overwritten_and_a_dry_run_writes_nothing(project: Path) -> None:
    source = as_parquet(project, flights())
    assert tidetable("init", "planes", "--source", source, "--dry-run").out.count("name: planes")
    file = project / "include" / "indexes" / "planes.yaml"
    assert not file.exists()
    file.write_text("mine")
    refused = tidetable("init", "planes", "--source", source)
    assert refused.status == 2
    assert "not overwritten" in refused.sentence
    assert file.read_text() == "mine"


def test_a_source_that_goes_on_has_no_end(tmp_path: Path) -> None:
    seen = look(str(as_parquet(tmp_path, flights())))
    found = propose(seen, now=NEWEST + timedelta(hours=1))
    assert found.end is None
    assert found.start == NEWEST


def test_times_without_a_zone_are_told_and_not_guessed(project: Path) -> None:
    rows = [
        {n: v.replace(tzinfo=None) if isinstance(v, datetime) else v for n, v in row.items()}
        for row in flights()
    ]
    source = as_parquet(project, rows)
    done = tidetable("init", "planes", "--source", source)
    assert "carry no zone" in done.sentence
    index = load_index(project / "include" / "indexes" / "planes.yaml", project)
    assert index.source.timezone is None
    assert "  # timezone: UTC\n" in (project / "include" / "indexes" / "planes.yaml").read_text()


def test_a_source_without_an_end_of_life_says_so(project: Path) -> None:
    rows = [{"id": place, "seen_at": row["departed_at"]} for place, row in enumerate(flights())]
    done = tidetable("init", "planes", "--source", as_parquet(project, rows))
    assert "No column says when a row dies" in done.sentence
    index = load_index(project / "include" / "indexes" / "planes.yaml", project)
    assert index.lifetime == "INTERVAL 7 DAYS"
    assert index.is_auto


def test_a_column_may_say_how_long_a_row_lives(project: Path) -> None:
    rows = [
        {"user_id": f"u{place % 50}", "ttl_seconds": 60 * (1 + place % 90), "created_at": at}
        for place, at in enumerate(row["departed_at"] for row in flights())
    ]
    index = proposed(project, as_parquet(project, rows))
    assert index.lifetime == "make_dt_interval(0, 0, 0, ttl_seconds)"
    assert index.longest_lifetime == 90 * MINUTE


def test_a_few_rows_that_live_for_ages_do_not_set_the_longest_lifetime(project: Path) -> None:
    rows = flights(4000)
    rows[17]["landed_at"] += timedelta(days=4000)
    index = proposed(project, as_parquet(project, rows))
    assert index.longest_lifetime < timedelta(hours=6)
    text = (project / "include" / "indexes" / "planes.yaml").read_text()
    assert "go to quarantine" in text


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"a": 1, "b": "x"}], "No column of"),
        ([{"at": NEWEST, "x": 1.5}], "can be looked up"),
        ([], "nothing at"),
    ],
)
def test_what_cannot_be_an_index_is_refused(
    tmp_path: Path, rows: list[dict[str, Any]], told: str
) -> None:
    source = as_parquet(tmp_path, rows) if rows else tmp_path / "nowhere"
    with pytest.raises(UserError, match=told):
        propose(look(str(source)))


def test_odd_names_of_columns_stay_what_they_are(project: Path) -> None:
    rows = [
        {"no: 1": row["tail_number"], "when?": row["departed_at"], "the end": row["landed_at"]}
        for row in flights()
    ]
    index = proposed(project, as_csv(project, rows))
    assert (index.key, index.source.arrived_at, index.expires_at) == ("no: 1", "when?", "the end")


def test_a_project_has_its_dags_and_an_example_without_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tidetable("init", "--project", tmp_path / "mine")
    assert made.status == 0, made.err
    for dag in (tmp_path / "mine" / "dags").glob("*.py"):
        text = dag.read_text().lower()
        assert "dag" in text
        assert "airflow" in text
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path / "mine"))
    assert tidetable("check", "example", "--yaml-only").status == 0
    again = tidetable("init", "--project", tmp_path / "mine")
    assert again.status == 2
    assert "already" in again.sentence
