"""What people see in a terminal, at several widths."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from rich.console import Console, RenderableType

from tests.advisor.test_search import USUAL, uniform
from tests.workspace import Workspace, at
from tidetable.advisor import Wishes, advise
from tidetable.core.cell import LOG, MERGED_LOG, Cell, CellState
from tidetable.output import show
from tidetable.output.values import json_line
from tidetable.table.note import Note
from tidetable.table.report import UpdateReport
from tidetable.table.status import Status


def drawn(picture: RenderableType, width: int = 80) -> list[str]:
    """The lines as they look without colour."""
    file = io.StringIO()
    Console(file=file, width=width, color_system=None, highlight=False).print(picture)
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert max((len(line) for line in lines), default=0) <= width
    return lines


def grid(counts: list[list[int]]) -> dict[Cell, CellState]:
    return {
        Cell(g, e): CellState(rows=rows, files=1, bytes=1000)
        for g, line in enumerate(counts)
        for e, rows in enumerate(line)
    }


def report(slot: int, inserted: int = 10) -> UpdateReport:
    return UpdateReport(
        slot=slot, as_of="2013-01-02T14:00:00Z", inserted=inserted, expired=2, dead_on_arrival=0,
        quarantined=1, live=1_234, rewritten_rows=50, written_bytes=70_000, cells=7, seconds=2.345,
        version=slot,
    )  # fmt: skip


# -- tables ----------------------------------------------------------------------------------------


def updates(width: int, *reports: UpdateReport) -> list[str]:
    file = io.StringIO()
    lines = show.UpdateLines(Console(file=file, width=width, color_system=None, highlight=False))
    for one in reports:
        lines.show(one)
    return file.getvalue().splitlines()


def test_the_lines_of_an_update_give_up_columns_rather_than_readability() -> None:
    reports = [report(1), report(2)]
    wide = updates(120, *reports)
    assert wide[0].split() == [
        "slot", "as", "of", "inserted", "expired", "dead", "bad", "live", "rewritten", "written",
        "cells", "s",
    ]  # fmt: skip
    assert wide[1].split() == [
        "1", "2013-01-02", "14:00Z", "10", "2", "0", "1", "1,234", "50", "68", "KB", "7", "2.3",
    ]  # fmt: skip
    assert len(wide) == 3
    narrow = updates(80, *reports)
    assert len(narrow) == 3
    assert "cells" not in narrow[0]
    assert "as of" in narrow[0]
    narrower = updates(60, *reports)
    assert len(narrower) == 3
    assert "as of" not in narrower[0]
    assert "live" in narrower[0]


def test_numbers_that_grow_widen_their_column_and_stay_whole() -> None:
    lines = updates(80, report(1), report(2, inserted=123_456_789_012), report(3))
    assert "123,456,789,012" in lines[2]
    assert lines[3].index(" 10 ") == lines[2].index("789,012") + 4


def test_rows_that_fit_are_a_table() -> None:
    rows = [{"key": "N1", "seats": 4}, {"key": "N2", "seats": None}]
    assert drawn(show.rows_table(["key", "seats"], rows)) == ["key  seats", "N1   4", "N2"]


def test_rows_that_do_not_fit_are_shown_one_value_a_line() -> None:
    columns = [f"column_{n}" for n in range(12)]
    rows = [{name: f"{name} of row {n}" for name in columns} for n in (1, 2)]
    lines = drawn(show.rows_table(columns, rows))
    assert lines[0].startswith("── 1 ──")
    assert lines[1] == "column_0   column_0 of row 1"
    assert lines[13].startswith("── 2 ──")
    assert len(lines) == 2 * (1 + len(columns))


def test_a_single_row_needs_no_number() -> None:
    lines = drawn(show.rows_table(["a", "b"], [{"a": "x" * 50, "b": "y" * 50}]))
    assert lines == ["a  " + "x" * 50, "b  " + "y" * 50]


def test_markup_in_a_value_is_text() -> None:
    assert drawn(show.rows_table(["a"], [{"a": "[bold]x[/bold]"}]))[1] == "[bold]x[/bold]"


def test_a_value_longer_than_the_terminal_is_folded_not_cut() -> None:
    lines = drawn(show.rows_table(["a"], [{"a": "x" * 200}]), 60)
    assert "".join(line.removeprefix("a").strip() for line in lines) == "x" * 200


# -- status ----------------------------------------------------------------------------------------


def status_of(workspace: Workspace, cells: dict[Cell, CellState]) -> Status:
    scheme = {"name": "no_rebuild", "insertion": 4, "expiration": 4}
    index = workspace.index(name="flights_no_rebuild", scheme=scheme)
    label = "NoRebuild 4x4 round-robin"
    return Status(index, 24, at(24), label, Note("things", 24, 23, "run"), cells)


def test_a_status_table_fits_80_columns(workspace: Workspace) -> None:
    found = status_of(workspace, grid([[100, 200], [300, 1_000]]))
    head, line = drawn(show.status_table([found]), 80)
    assert line.split()[:3] == ["flights_no_rebuild", "NoRebuild", "4x4"]
    assert head.split()[-1] == "imbalance"
    assert line.split()[-1] == "2.50"
    assert "2024-03-01 04:00Z" in drawn(show.status_table([found]), 120)[1]


def test_a_status_in_words(workspace: Workspace) -> None:
    lines = drawn(show.status_summary(status_of(workspace, grid([[1, 2], [3, 10]]))))
    assert lines == [
        "flights_no_rebuild  NoRebuild 4x4 round-robin",
        "slot 24, as of 2024-03-01 04:00Z",
        "16 live rows in 4 files, 3.9 KB; 4 cells, the fullest 2.50 times the mean",
    ]
    empty = drawn(show.status_summary(status_of(workspace, {Cell(0, 0): CellState()})))
    assert empty[-1] == "0 live rows in 0 files, 0 B; 1 cell"


# -- pictures --------------------------------------------------------------------------------------


def test_the_cells_of_a_grid() -> None:
    assert drawn(show.cells_picture(grid([[7, 25], [0, 100]]))) == [
        "           e0      e1",
        "  g0   ░░   7  ░░  25",
        "  g1        ·  ██ 100",
    ]


def test_the_cells_of_sweep_with_its_log() -> None:
    cells = {**grid([[51, 27, 13]]), LOG: CellState(rows=40, files=8, bytes=1)}
    assert drawn(show.cells_picture(cells)) == [
        "          e0     e1     e2",
        "       ██ 51  ▓▓ 27  ▒▒ 13",
        "  log  ██ 40  in 8 files",
    ]
    assert "log: of all parts" in str(show.cells_legend(cells))


def test_the_cells_of_sweep_with_both_logs() -> None:
    logs = {LOG: CellState(rows=10, files=8, bytes=1), MERGED_LOG: CellState(40, 5, 1)}
    assert drawn(show.cells_picture({**grid([[51, 27]]), **logs})) == [
        "                 e0     e1",
        "              ██ 51  ▓▓ 27",
        "  log         ░░ 10  in 8 files",
        "  merged log  ██ 40  in 5 files",
    ]


def test_the_lines_of_tiers_are_levels() -> None:
    cells = {**grid([[5, 2], [20, 30]]), LOG: CellState(rows=4, files=2, bytes=1)}
    assert "g: level" in str(show.cells_legend(cells))


def test_many_groups_go_on_in_the_next_line() -> None:
    lines = drawn(show.cells_picture(grid([list(range(1, 25))])))
    assert len(lines) == 2 * 3
    assert lines[0].split()[0] == "e0"
    assert lines[-2].split()[-1] == "e23"


def test_too_many_cells_for_numbers_become_shades() -> None:
    lines = drawn(show.cells_picture(grid([[1, 4] * 20] * 20)))
    assert len(lines) == 1 + 20
    assert lines[-1] == "  g19  " + "░█" * 20


def test_cells_without_a_row() -> None:
    assert drawn(show.cells_picture(grid([[0, 0]]))) == [
        "          e0     e1",
        "           ·      ·",
    ]


def test_the_legend_fits_a_line() -> None:
    for counts in ([[1, 2]], [[1], [2]]):
        assert len(drawn(show.cells_legend(grid(counts)))) == 1


def test_the_forecast_shows_every_coming_slot() -> None:
    lines = drawn(show.forecast({5: 8, 6: 4, 7: 0, 8: 1}, slot=4, period=6))
    assert lines[0] == "Rows that expire in each coming slot; 8 in the next"
    assert lines[1].endswith("8 │███")
    assert len(lines) == 7
    assert lines[-2].split("│")[1] == "███ ███     ▅▅▅"
    assert lines[-1].split() == ["5", "6", "7", "8", "9", "10"]


def test_a_long_forecast_puts_slots_together() -> None:
    lines = drawn(show.forecast(dict.fromkeys(range(1, 1001), 3), slot=0, period=1000))
    assert "15 slots to a bar" in lines[0]
    assert lines[1].split("│")[0].strip() == "45"
    assert len(lines) == 7


def test_the_forecast_of_an_empty_table() -> None:
    assert drawn(show.forecast({}, slot=4, period=6)) == ["No row is going to expire."]


# -- words and values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (20 * 1024, "20 KB"), (3 * 1024**4, "3.0 TB")],
)
def test_sizes_in_words(number: int, expected: str) -> None:
    assert show.human_bytes(number) == expected


def test_seconds_are_shown_where_there_are_any() -> None:
    assert show.short_time("2013-01-02T14:00:00Z") == "2013-01-02 14:00Z"
    assert show.short_time("2013-01-02T14:00:30Z") == "2013-01-02 14:00:30Z"


def test_json_of_any_value() -> None:
    line = json_line(
        {
            "time": datetime(2013, 1, 1, 5, tzinfo=UTC),
            "naive": datetime(2013, 1, 1, 5),  # noqa: DTZ001
            "day": date(2013, 1, 1),
            "price": Decimal("1.50"),
            "raw": b"\x00\xff",
            "text": "東京 \n",
            "nested": [{"when": datetime(2013, 1, 1, tzinfo=UTC)}],
            "none": None,
        }
    )
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2013-01-01T05:00:00Z",
        "naive": "2013-01-01T05:00:00",
        "day": "2013-01-01",
        "price": "1.50",
        "raw": "00ff",
        "text": "東京 \n",
        "nested": [{"when": "2013-01-01T00:00:00Z"}],
        "none": None,
    }


def test_json_knows_no_nan_and_only_text_as_names() -> None:
    line = json_line({"x": [float("nan"), float("-inf"), 1.5], "m": {date(2013, 1, 1): True}})
    assert json.loads(line) == {"x": ["NaN", "-Infinity", 1.5], "m": {"2013-01-01": True}}


# -- the advisor -----------------------------------------------------------------------------------


def test_advice_shows_the_best_why_and_the_rule() -> None:
    text = "\n".join(drawn(show.advice(advise(uniform(), USUAL, Wishes())), 120))
    assert "live rows, 400 MB" in text
    assert "total s  update s  largest  probe ms" in text
    assert "on rewriting" in text
    assert text.startswith("64,528 rows in a slot, 1,000 bytes each")
    assert "scheme: {name: sweep, groups: " in text
    assert "At most one sorted run for each MB" in text


def test_advice_that_is_too_wide_drops_what_matters_least() -> None:
    found = advise(uniform(), USUAL, Wishes())
    wide, narrow = ("\n".join(drawn(show.advice(found), width)) for width in (120, 60))
    assert "purged in" in wide
    assert "purged in" not in narrow
    assert "update s" in narrow


def test_durations_have_two_units() -> None:
    assert show.human_duration(timedelta(days=1, hours=2, minutes=3)) == "1d 2h"
    assert show.human_duration(timedelta(minutes=90)) == "1h 30m"
    assert show.human_duration(timedelta(0)) == "0s"
