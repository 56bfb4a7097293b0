"""`make run` moves the sample to today, in a project of its own; what is shipped stays as it is."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import yaml
from deltalake import CommitProperties, write_deltalake

from rig.live import FOLDER, PAST_SLOTS, SAMPLE_START, SPEED, Clock, Live, changed, live
from tidetable.config import Index, load_index
from tidetable.pipeline.catalog import read_catalog
from tidetable.table.append import transaction
from tidetable.table.note import Note
from tidetable.table.state import PROPERTY_INDEX, PROPERTY_LAYOUT

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2031, 5, 7, 23, 58, 40, tzinfo=UTC)
SHIPPED = ["flights_no_rebuild", "flights_rebuild", "flights_sweep"]
MINUTES_5 = timedelta(minutes=5)

MINE = """\
name: mine
source:
  path: "data/{%Y-%m-%d}"  # below the project
  format: csv
  schema: k string, t timestamp, u timestamp
  options: {sep: "|", quote: "'"}
  arrived_at: t
key: k
inserted_at: t
expires_at: u
update_every: 1h
longest_lifetime: 1d
start: 2031-01-01T00:00:00Z
table: tables/mine
scheme: {name: sweep, groups: 2}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the repository as far as it matters here."""
    for folder in ("indexes", "sample"):
        shutil.copytree(ROOT / "include" / folder, tmp_path / "include" / folder)
    return tmp_path


def started(root: Path, now: datetime = NOW) -> Live:
    found = live(root, now)
    assert found is not None
    return found


def index(made: Live, name: str) -> Index:
    return read_catalog(made.project).entries[name].index


def test_the_shipped_indexes_move_to_today(root: Path) -> None:
    made = started(root)
    assert made.fresh
    catalog = read_catalog(made.project)
    assert (list(catalog.entries), catalog.mistakes) == (SHIPPED, [])
    for name in SHIPPED:
        shipped = load_index(root / "include" / "indexes" / f"{name}.yaml", root)
        moved = index(made, name)
        assert moved.timeline.end_of(PAST_SLOTS) == datetime(2031, 5, 7, 23, 55, tzinfo=UTC)
        assert moved.end is None
        assert moved.update_every == MINUTES_5
        assert moved.period == shipped.period
        assert moved.scheme == shipped.scheme
        assert moved.engine == shipped.engine
        assert Path(moved.table).is_relative_to(root / FOLDER)
        assert str(moved.source.path).startswith(str(root / FOLDER))


def test_nothing_that_is_shipped_changes(root: Path) -> None:
    def files() -> dict[Path, bytes]:
        return {
            path: path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and FOLDER not in path.relative_to(root).parents
        }

    before = files()
    made = started(root)
    made.feed(NOW)
    assert {
        path: data for path, data in files().items() if "__pycache__" not in str(path)
    } == before


def test_each_slot_has_the_flights_of_a_half_hour_of_2013(root: Path) -> None:
    made = started(root)
    assert made.feed(NOW) == 2  # today and tomorrow
    assert made.feed(NOW) == 0
    assert made.feed(NOW + timedelta(days=1)) == 1
    flights = ds.dataset(made.project / "include" / "data" / "flights").to_table().to_pandas()
    sample = made.moved_indexes()[0]
    moved = index(made, sample.name)

    from include.sample.flights import read_flights

    original = read_flights()
    for slot in (1, 2, PAST_SLOTS, PAST_SLOTS + 20):
        taken = []
        for timeline, rows in ((sample.timeline, original), (moved.timeline, flights)):
            after, until = timeline.begin_of(slot), timeline.end_of(slot)
            inside = rows[(rows.reported_at > after) & (rows.reported_at <= until)]
            lives = (inside.landed_at - inside.departed_at).dt.total_seconds()
            taken.append((sorted(inside.flight), lives.dropna().sum()))
        (real, seconds), (today, fast) = taken
        assert len(real) > 0
        assert today == real
        assert fast == pytest.approx(seconds / SPEED)


def test_a_day_without_flights_has_a_file_all_the_same(root: Path) -> None:
    """So it is not a source that is late. Here: the day before the sample begins."""
    made = started(root, datetime(2031, 5, 7, 0, 40, tzinfo=UTC))
    made.feed(datetime(2031, 5, 7, 0, 40, tzinfo=UTC))
    folder = made.project / "include" / "data" / "flights"
    assert sorted(one.name for one in folder.iterdir()) == [
        "day=2031-05-06", "day=2031-05-07", "day=2031-05-08"
    ]  # fmt: skip


def test_started_again_it_keeps_its_clock_while_rows_live(root: Path) -> None:
    first = started(root)
    stand(first, slot=PAST_SLOTS)
    again = started(root, NOW + timedelta(hours=1))
    assert not again.fresh
    assert again.clock == first.clock
    assert "23:55" in again.told
    assert index(again, SHIPPED[0]).start == index(first, SHIPPED[0]).start


def test_started_again_the_next_day_it_starts_afresh(root: Path) -> None:
    first = started(root)
    first.feed(NOW)
    stand(first, slot=PAST_SLOTS)
    again = started(root, NOW + timedelta(hours=3))
    assert again.fresh
    assert "afresh" in again.told
    assert again.clock.began == first.clock.began + timedelta(hours=3)
    assert not Path(index(again, "flights_sweep").table).exists()
    assert not (again.project / "include" / "data").exists()


def test_without_a_table_there_is_nothing_to_go_on_with(root: Path) -> None:
    """Stopped before the first update."""
    started(root)
    assert started(root, NOW + MINUTES_5).fresh


def test_an_index_of_your_own_is_taken_along_as_it_is(root: Path) -> None:
    file = root / "include" / "indexes" / "mine.yaml"
    file.write_text(MINE)
    made = started(root)
    mine, there = load_index(file, root), index(made, "mine")
    assert there == mine
    # What is changed meanwhile is there at the next look, and what is gone is gone.
    file.write_text(MINE.replace("1d", "2d"))
    made.refresh()
    assert index(made, "mine").longest_lifetime == timedelta(days=2)
    file.unlink()
    made.refresh()
    assert list(read_catalog(made.project).entries) == SHIPPED


def test_an_index_with_a_mistake_keeps_its_lines(root: Path) -> None:
    (root / "include" / "indexes" / "mine.yaml").write_text(MINE.replace("key: k", "kye: k"))
    made = started(root)
    (mistake,) = read_catalog(made.project).mistakes
    assert "include/indexes/mine.yaml" in str(mistake)
    assert "mine.yaml:8: " in str(mistake)


def test_an_index_over_another_time_of_the_sample_stays_there(root: Path) -> None:
    text = (root / "include" / "indexes" / "flights_sweep.yaml").read_text()
    spring = text.replace("flights_sweep", "spring").replace("2013-01-02", "2013-04-02")
    (root / "include" / "indexes" / "spring.yaml").write_text(spring)
    made = started(root)
    assert index(made, "spring").start == SAMPLE_START.replace(month=4)
    assert index(made, "spring").table == str(root / ".tidetable" / "spring")


def test_a_table_that_is_kept_elsewhere_stays_as_it_is(root: Path) -> None:
    """The flights of today would not fit into it, and starting afresh must not remove it."""
    file = root / "include" / "indexes" / "flights_sweep.yaml"
    file.write_text(file.read_text().replace(".tidetable/flights_sweep", "kept/flights_sweep"))
    assert index(started(root), "flights_sweep") == load_index(file, root)


def test_a_project_without_the_sample_is_none_of_this(tmp_path: Path) -> None:
    (tmp_path / "include" / "indexes").mkdir(parents=True)
    assert live(tmp_path, NOW) is None


def test_values_that_are_not_changed_stay_as_they_are_written() -> None:
    text = "a: '1.10'  # text\nb: {c: 1.10, d: [on, 0x1f]}\ne: 2013-01-02T12:00:00Z\n"
    found = changed(text, {("b", "c"): "5m", ("f", "g"): "100%", ("e",): None})
    assert yaml.safe_load(found) == {
        "a": "1.10", "b": {"c": "5m", "d": [True, 31]}, "f": {"g": "100%"}
    }  # fmt: skip


def test_the_clock_keeps_the_order_of_times() -> None:
    clock = Clock(NOW)
    assert clock.moved(SAMPLE_START) == NOW
    assert clock.moved(SAMPLE_START + timedelta(hours=1)) == NOW + timedelta(minutes=10)


def stand(made: Live, slot: int) -> None:
    """Tables that stand at this slot, as far as their notes say."""
    for name in SHIPPED:
        of = index(made, name)
        note = Note(of.name, slot=slot, previous=None, run="handmade", kind="load", read=0,
                    inserted=0, live=0, live_by_expiration={})  # fmt: skip
        write_deltalake(
            of.table,
            pa.table({"tail_number": pa.array([], pa.string())}),
            commit_properties=CommitProperties(custom_metadata={"userMetadata": note.dumps()}),
        )
        first = Path(of.table) / "_delta_log" / f"{0:020d}.json"
        actions = [json.loads(line) for line in first.read_text().splitlines()]
        for action in actions:
            if "metaData" in action:
                action["metaData"]["configuration"] |= {
                    PROPERTY_INDEX: of.name,
                    PROPERTY_LAYOUT: json.dumps(of.layout_fingerprint, sort_keys=True),
                }
        # Without a transaction of ours the note would be somebody else's.
        actions.append(transaction(f"{of.name}@new"))
        first.write_text("".join(json.dumps(action) + "\n" for action in actions))
