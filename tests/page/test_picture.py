"""What the page shows, without Airflow: where each index stands, and its picture."""

from __future__ import annotations

import ast
import itertools
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.cli.handmade import make_update
from tests.page.pages import Project, quality_summary
from tests.workspace import EVERY, SCHEMA, START, at, row
from tidetable.config import Index
from tidetable.core.cell import LOG, Cell, CellState
from tidetable.page import picture as pictures
from tidetable.page.activity import NOTHING_KNOWN, Activity, Failure
from tidetable.page.picture import picture
from tidetable.page.snippets import snippets
from tidetable.page.standing import Health, Standing, entries, stand
from tidetable.pipeline.catalog import read_catalog
from tidetable.pipeline.probing import BYTES_MAX, ROWS_MAX, TEXT_MAX, probe

NOW = at(0) + EVERY / 2


@pytest.fixture
def own(tmp_path: Path) -> Project:
    """A project to be changed."""
    return Project(tmp_path / "own")


def standing(
    project: Project, name: str, now: Any = NOW, activity: Activity = NOTHING_KNOWN
) -> Standing:
    (entry,) = [one for one in entries(read_catalog(project.folder)) if one.name == name]
    return stand(entry, now, project.reports, lambda dag_id: activity)


def committed_at(index: Index, version: int, moment: datetime) -> None:
    """As if the commit had been made then."""
    path = Path(index.table) / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = int(moment.timestamp() * 1000)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


# -- health ----------------------------------------------------------------------------------------


def test_an_index_is_late_once_an_update_has_been_due_for_an_interval(own: Project) -> None:
    own.make("things", [row(1, 0, 5)])
    told = {
        slots: (standing(own, "things", at(slots)).lag, standing(own, "things", at(slots)).health)
        for slots in (0, 0.9, 1, 1.9, 2, 3.5)
    }
    assert told == {
        0: (0, Health.OK),
        0.9: (0, Health.OK),
        1: (1, Health.OK),
        1.9: (1, Health.OK),
        2: (2, Health.LATE),
        3.5: (3, Health.LATE),
    }


def test_nothing_is_due_before_the_grace_is_over_or_after_the_end(own: Project) -> None:
    own.make("patient", [row(1, 0, 5)], source={"grace": "15m"})
    own.make("ended", [row(1, 0, 5)], end=at(2).isoformat())
    assert standing(own, "patient", at(2)).lag == 0
    assert standing(own, "patient", at(2.5)).lag == 1
    assert standing(own, "ended", START + timedelta(days=400)).lag == 2


def test_what_is_wrong_with_an_index_is_told(project: Project) -> None:
    found = {name: standing(project, name) for name in ("broken", "planned", "damaged", "things")}
    assert {name: one.health for name, one in found.items()} == {
        "broken": Health.BROKEN,
        "planned": Health.EMPTY,
        "damaged": Health.DAMAGED,
        "things": Health.OK,
    }
    assert "include/indexes/broken.yaml" in found["broken"].sentence
    assert "tidetable update planned" in found["planned"].sentence
    assert "tidetable replay damaged" in found["damaged"].sentence


def test_a_yaml_that_no_longer_fits_its_table_counts_as_broken(own: Project) -> None:
    own.make("things", [row(1, 0, 5)])
    yaml = own.indexes / "things.yaml"
    yaml.write_text(yaml.read_text().replace("groups: 3", "groups: 2"))
    found = standing(own, "things")
    assert found.health is Health.BROKEN
    assert "has changed since its table was made" in found.sentence


def test_a_log_that_is_no_log_is_told_and_nothing_else_happens(own: Project) -> None:
    index = own.make("things", [row(1, 0, 5)])
    (Path(index.table) / "_delta_log" / f"{0:020d}.json").write_text("not JSON\n")
    found = standing(own, "things")
    assert found.health is Health.DAMAGED
    assert f"{0:020d}.json" in found.sentence
    assert "--from-source" in found.sentence
    assert picture(found, NOW)["health_word"] == "damaged"


@pytest.mark.parametrize(
    ("summary", "health", "sentence"),
    [
        ({"success": False, "failed": ["A.", "B."]}, Health.FAILING, "A. And 1 more."),
        ({"success": True, "warnings": ["Uneven."]}, Health.WARNING, "Uneven."),
        ({"success": True}, Health.OK, "Up to date, and the last quality report passed."),
    ],
)
def test_the_last_quality_report_counts(
    own: Project, summary: dict[str, Any], health: Health, sentence: str
) -> None:
    own.make("things", [row(1, 0, 5)])
    told = {
        kind: [{"name": "x", "sentence": one, "observed": ""} for one in summary.get(kind, [])]
        for kind in ("failed", "warnings")
    }
    quality_summary(own, "things", **{"slot": 0, "report": "site/one.html", **summary, **told})
    found = standing(own, "things")
    assert (found.health, found.sentence) == (health, sentence)
    shown = picture(found, NOW)["quality"]
    assert shown["success"] is summary["success"]
    assert shown["failed"] == summary.get("failed", [])
    assert shown["warnings"] == summary.get("warnings", [])
    assert shown["report"] == "one.html"
    assert ("tidetable validate things" in (shown["advice"] or "")) is not summary["success"]


# -- what is being done about it -------------------------------------------------------------------


WORKING = Activity(since=at(3))
BROKEN_OFF = Failure("tidetable__things", "a run", "update", at(2.9), over=False)


@pytest.mark.parametrize(
    ("activity", "health", "told"),
    [
        (NOTHING_KNOWN, Health.EMPTY, "Make it: tidetable update planned"),
        (WORKING, Health.FIRST, "The first update is running"),
        (Activity(since=at(3), waiting="plan"), Health.EMPTY, "waits for the task plan"),
        (Activity(paused=True), Health.EMPTY, "Its DAG is paused."),
        (Activity(queued=True), Health.EMPTY, "A run is queued"),
        (Activity(failure=BROKEN_OFF), Health.FAILING, "The task update failed at"),
        (Activity(failure=replace(BROKEN_OFF, over=True)), Health.EMPTY, "no table yet"),
        (Activity(since=at(3), failure=BROKEN_OFF), Health.FAILING, "The task update failed at"),
    ],
)
def test_an_index_without_a_table_says_what_airflow_does_about_it(
    project: Project, activity: Activity, health: Health, told: str
) -> None:
    found = standing(project, "planned", at(3.1), activity)
    assert found.health is health
    assert told in found.sentence


@pytest.mark.parametrize(
    ("activity", "health", "told"),
    [
        (NOTHING_KNOWN, Health.LATE, "3 updates behind: slot 3 is due, the table is at 0."),
        (WORKING, Health.CATCHING_UP, "Slot 0 of 3 is done, 3 updates to go."),
        (Activity(succeeded_at=at(3.09)), Health.CATCHING_UP, "3 updates to go"),
        (Activity(succeeded_at=at(3.09), paused=True), Health.LATE, "Its DAG is paused."),
        (Activity(succeeded_at=at(2), queued=True), Health.LATE, "A run is queued"),
        (Activity(since=at(3), waiting="plan"), Health.LATE, "waits for the task plan"),
        (Activity(since=at(1)), Health.LATE, "has committed nothing for long"),
        (Activity(failure=BROKEN_OFF), Health.FAILING, "The task update failed at"),
        (Activity(failure=replace(BROKEN_OFF, over=True)), Health.LATE, "3 updates behind"),
    ],
)
def test_an_index_that_is_behind_says_what_airflow_does_about_it(
    own: Project, activity: Activity, health: Health, told: str
) -> None:
    index = own.make("things", [row(1, 0, 5)])
    committed_at(index, 0, at(0))
    found = standing(own, "things", at(3.1), activity)
    assert found.health is health
    assert told in found.sentence
    if health is Health.CATCHING_UP:
        assert found.word == "catching up, 0 of 3"


@pytest.mark.parametrize(
    ("every", "health"), [(0.5, Health.CATCHING_UP), (1.0, Health.CATCHING_UP), (2, Health.LATE)]
)
def test_what_falls_further_behind_is_late_however_busy_it_is(
    own: Project, every: float, health: Health
) -> None:
    """One update takes half of the time in which a slot comes due, all of it, or twice."""
    index = own.make("things", [row(1, 0, 60)], longest_lifetime="1000m")
    for slot in range(1, 8):
        make_update(own.workspace("things"), index, [], slot)
        committed_at(index, slot, at(10 + slot * every))
    now = at(10 + 7 * every + 0.1)
    found = standing(own, "things", now, Activity(since=now - EVERY / 4))
    assert found.health is health
    assert ("falls further behind" in found.sentence) is (health is Health.LATE)


def test_airflow_is_asked_only_about_indexes_that_are_behind(own: Project) -> None:
    own.make("things", [row(1, 0, 5)])

    def never(dag_id: str) -> Activity:
        raise AssertionError(dag_id)

    (entry,) = entries(read_catalog(own.folder))
    assert stand(entry, NOW, own.reports, never).health is Health.OK


# -- the picture -----------------------------------------------------------------------------------


def test_cells_are_those_of_the_layout(project: Project) -> None:
    shown = picture(standing(project, "gridded"), NOW)
    assert [(cell["g"], cell["e"]) for cell in shown["cells"]] == [
        (g, e) for g in range(2) for e in range(3)
    ]
    assert sum(cell["rows"] for cell in shown["cells"]) == shown["live"] == 30
    assert shown["layout"] == {
        "kind": "grid", "g": 2, "e": 3, "g_step": 1, "e_step": 1, "log": False,
    }  # fmt: skip
    groups = picture(standing(project, "things"), NOW)
    assert (groups["layout"]["kind"], groups["layout"]["e"]) == ("groups", 3)


def test_a_log_is_a_cell_of_its_own(own: Project) -> None:
    scheme = {"name": "sweep", "groups": 2, "deletion_vectors": True}
    own.make("logged", [row(1, 0, 5)], scheme=scheme)
    shown = picture(standing(own, "logged"), NOW)
    assert shown["layout"]["log"] is True
    assert [(cell["g"], cell["e"]) for cell in shown["cells"]] == [(0, 0), (0, 1), tuple(LOG)]


def test_both_logs_and_the_levels_of_tiers_are_drawn(own: Project) -> None:
    logged = {
        "name": "sweep", "groups": 2, "every": 2, "deletion_vectors": True, "merge_log": 2,
    }  # fmt: skip
    own.make("twice", [row(1, 0, 5)], scheme=logged)
    shown = picture(standing(own, "twice"), NOW)
    assert [(cell["g"], cell["e"]) for cell in shown["cells"]][2:] == [(1, -1), (2, -1)]
    assert any("move" in update["counts"] for update in shown["coming"])
    own.make("levelled", [row(1, 0, 5)], scheme={"name": "tiers", "groups": 2, "fan_in": 2})
    layout = picture(standing(own, "levelled"), NOW)["layout"]
    assert (layout["kind"], layout["g"], layout["e"], layout["log"]) == ("levels", 3, 2, True)


def test_the_next_updates_are_those_of_the_scheme(project: Project) -> None:
    shown = picture(standing(project, "gridded"), NOW)
    index = read_catalog(project.folder).entries["gridded"].index
    assert [update["slot"] for update in shown["coming"]] == [1, 2, 3, 4, 5, 6]
    for update in shown["coming"][1:]:
        plan = index.build_scheme().plan(update["slot"])
        assert {(one["g"], one["e"]): (one["action"], one["why"]) for one in update["cells"]} == {
            (cell.g, cell.e): (str(touch.action), touch.why) for cell, touch in plan.touched.items()
        }
        assert sum(update["counts"].values()) == len(plan.touched)
    expiring = {bar["last"]: bar["rows"] for bar in shown["expiring"]}
    assert [update["expiring"] for update in shown["coming"]] == [expiring[n] for n in range(1, 7)]


def test_there_is_no_update_after_the_end(own: Project) -> None:
    own.make("ending", [row(1, 0, 5)], end=at(2).isoformat())
    shown = picture(standing(own, "ending"), NOW)
    assert [update["slot"] for update in shown["coming"]] == [1, 2]


def test_rows_expire_in_the_slots_that_the_note_says(project: Project) -> None:
    bars = picture(standing(project, "gridded"), NOW)["expiring"]
    assert [(bar["first"], bar["last"]) for bar in bars] == [(n, n) for n in range(1, 7)]
    rows = {bar["last"]: bar["rows"] for bar in bars}
    assert rows == {1: 0, 2: 8, 3: 8, 4: 7, 5: 7, 6: 0}
    assert bars[1]["as_of"] == "2024-03-01T00:20:00Z"


def test_long_windows_are_drawn_several_slots_to_a_bar(own: Project) -> None:
    own.make("long", [row(n, 0, 1 + n) for n in range(900)], longest_lifetime="10000m")
    bars = picture(standing(own, "long"), NOW)["expiring"]
    assert len(bars) <= pictures.BARS_MAX
    assert (bars[0]["first"], bars[-1]["last"]) == (1, 1000)
    assert all(bar["first"] == before["last"] + 1 for before, bar in itertools.pairwise(bars))
    assert sum(bar["rows"] for bar in bars) == 900


def test_many_cells_are_drawn_several_to_a_square(own: Project) -> None:
    index = own.describe(
        "wide", longest_lifetime="10000m",
        scheme={"name": "rebuild", "insertion": 90, "expiration": 90},
    )  # fmt: skip
    cells = index.build_scheme().cells()
    blocks = pictures._Blocks(index, cells)
    states = {cell: CellState(rows=1, files=2, bytes=3) for cell in cells}
    drawn = blocks.cells(states)
    assert len(drawn) == 30 * 30
    assert {(one["rows"], one["files"], one["bytes"]) for one in drawn} == {(9, 18, 27)}
    assert blocks.of(Cell(89, 4)) == Cell(87, 3)
    touched = blocks.touched(index.build_scheme().plan(1))
    assert len(touched) == 30 + 30 - 1


def test_a_damaged_index_is_drawn_as_far_as_it_is_known(project: Project) -> None:
    shown = picture(standing(project, "damaged"), NOW)
    assert sum(cell["rows"] for cell in shown["cells"]) == 6
    assert [update["slot"] for update in shown["coming"]] == [1, 2, 3, 4, 5, 6]


def test_an_index_without_a_table_has_no_picture_yet(project: Project) -> None:
    shown = picture(standing(project, "planned"), NOW)
    assert (shown["probe"], shown["updates"]) == (None, [])
    assert "cells" not in shown


def test_the_last_updates_are_told(own: Project) -> None:
    from tidetable.table.history import Updates

    index = own.make("things", [row(n, 0, 5) for n in range(4)])
    assert Updates(index).record() == 1
    shown = picture(standing(own, "things"), NOW)
    (load,) = shown["updates"]
    assert (load["slot"], load["kind"], load["inserted"], load["live"]) == (0, "load", 4, 4)
    assert load["written_per_inserted"] is None
    assert shown["quarantine"] == {"updates": 1, "read": 4, "rows": 0, "reasons": []}


def test_an_update_says_how_many_folders_of_its_source_are_missing(own: Project) -> None:
    """And whose update it was not, says none."""
    from tidetable.table.history import Updates
    from tidetable.table.report import UpdateReport

    index = own.make("things", [row(1, 0, 5)])
    report = UpdateReport(
        slot=0, as_of="2024-03-01T00:00:00Z", inserted=1, expired=0, dead_on_arrival=0,
        quarantined=0, live=1, rewritten_rows=0, written_bytes=0, cells=1, seconds=1.0, version=0,
        folders={"expected": 3, "missing": 2, "named": ["day=01", "day=02"]},
    )  # fmt: skip
    assert Updates(index).record([report]) == 1
    (load,) = picture(standing(own, "things"), NOW)["updates"]
    assert load["folders_missing"] == 2

    other = own.make("others", [row(1, 0, 5)])
    assert Updates(other).record() == 1
    (load,) = picture(standing(own, "others"), NOW)["updates"]
    assert load["folders_missing"] == 0


def test_the_example_key_is_one_that_is_there(project: Project) -> None:
    for name in ("things", "numbers"):
        standing_ = standing(project, name)
        example = picture(standing_, NOW)["probe"]["example"]
        assert standing_.entry.index is not None
        assert probe(standing_.entry.index, example)["rows"]


def test_one_quiet_hour_does_not_flatten_the_chart() -> None:
    assert pictures.chart_top([3, 4, 3.5, 2, 3, 4, 812]) == 8
    assert pictures.chart_top([3, 4, 3.5, 2, 3, 4, 7]) is None
    assert pictures.chart_top([1, 2, 3, 4, 5, 6, 7, 8]) is None
    assert pictures.chart_top([1, 1000]) is None, "of two values none is unusual"
    assert pictures.chart_top([]) is None


def test_the_table_and_the_source_are_told(project: Project) -> None:
    shown = picture(standing(project, "things"), NOW)
    index = project.read("things")
    assert shown["table"] == index.table
    assert shown["source"] == {
        "path": index.source.path, "format": "parquet", "arrived_at": "arrived_at",
    }  # fmt: skip
    assert {one["reader"] for one in shown["snippets"]} == {"Polars", "DuckDB", "Spark"}
    assert all(index.table in one["code"] for one in shown["snippets"])


def test_a_snippet_quotes_the_path_as_its_reader_does(own: Project) -> None:
    index = replace(own.describe("things"), table="s3a://bucket/o'brien's \"things\"")
    code = {one["reader"]: one["code"] for one in snippets(index)}
    for reader, path in (("Polars", "s3:"), ("Spark", "s3a:")):
        (text,) = [one.value for one in ast.walk(ast.parse(code[reader]))
                   if isinstance(one, ast.Constant) and "://" in str(one.value)]  # fmt: skip
        assert text == f"{path}//bucket/o'brien's \"things\""
    assert code["DuckDB"] == ("SELECT * FROM delta_scan('s3://bucket/o''brien''s \"things\"');")


def test_the_checks_are_counted_as_the_report_counts_them(own: Project) -> None:
    own.make("things", [row(1, 0, 5)])
    skipped = [{"name": name, "why": "no row"} for name in ("a", "b")]
    failed = [{"name": "x", "sentence": "A.", "observed": ""}]
    quality_summary(
        own, "things", slot=0, report="site/one.html", success=False, checked=35,
        failed=failed, warnings=[], skipped=skipped,
    )  # fmt: skip
    shown = picture(standing(own, "things"), NOW)["quality"]
    assert shown["tally"] == "32 of 35 checks hold, 2 had nothing to look at"


# -- probes ----------------------------------------------------------------------------------------


def test_a_key_with_very_many_rows_is_cut_and_says_so(own: Project) -> None:
    rows = [row(n, 0, 1 + n % 5, "hot") for n in range(ROWS_MAX + 1)]
    index = own.make("hot", [*rows, *(row(1000 + n, 0, 3, "warm") for n in range(ROWS_MAX))])
    hot, warm = probe(index, "hot"), probe(index, "warm")
    assert (len(hot["rows"]), hot["cut"]) == (ROWS_MAX, True)
    assert (len(warm["rows"]), warm["cut"]) == (ROWS_MAX, False)
    assert (hot["cut_because"], warm["cut_because"]) == (f"more than {ROWS_MAX} rows", None)


def test_an_answer_has_a_size_however_large_the_rows_are(own: Project) -> None:
    """Few rows of many megabytes, and many rows of a few kilobytes."""
    schema = SCHEMA.append(pa.field("note", pa.string())).append(pa.field("raw", pa.binary()))
    huge = [row(n, 0, 2, "huge") | {"note": "ä" * 3_000_000, "raw": b"x" * 10**6} for n in (1, 2)]
    many = [
        row(9 + n, 0, 2, "many") | {"note": "y" * TEXT_MAX, "raw": b"z" * 4000} for n in range(150)
    ]
    index = own.make("wide", [*huge, *many], schema)
    found = probe(index, "huge")
    assert (len(found["rows"]), found["cut"]) == (2, False)
    shown = dict(zip((one["name"] for one in found["columns"]), found["rows"][0], strict=True))
    assert shown["note"] == "ä" * TEXT_MAX + "… (3,000,000 characters)"
    assert shown["raw"] == "78" * (TEXT_MAX // 2) + "… (1,000,000 bytes)"
    found = probe(index, "many")
    assert 0 < len(found["rows"]) < 150
    assert found["cut_because"] == f"more than {BYTES_MAX:,} bytes"
    for key in ("huge", "many"):
        assert len(json.dumps(probe(index, key))) < 1.1 * BYTES_MAX
