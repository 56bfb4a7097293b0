"""What the pipeline shows and proves of an index whose scheme the advisor chooses."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.cli.handmade import make_table
from tests.workspace import START, Workspace, row
from tidetable.page.picture import picture
from tidetable.page.standing import Entry, stand
from tidetable.quality import validate

ROWS = [row(number, -0.5, 1 + number % 5) for number in range(20)]


def test_before_the_table_is_made_the_page_says_so(workspace: Workspace, tmp_path: Path) -> None:
    entry = Entry("things", "things.yaml", workspace.index(scheme="auto"))
    found = picture(stand(entry, START, tmp_path), START)
    assert found["scheme"] == "auto, not chosen yet"
    assert found["health"] == "empty"


def test_afterwards_page_and_report_know_the_scheme(workspace: Workspace, tmp_path: Path) -> None:
    make_table(workspace, ROWS)
    index = workspace.index(scheme="auto")
    now = START + timedelta(minutes=1)
    found = picture(stand(Entry("things", "things.yaml", index), now, tmp_path), now)
    assert found["scheme"] == "Sweep(3,1) without deletion vectors"
    assert len(found["cells"]) == 3
    assert found["coming"][0]["cells"]
    assert validate(index, due_slot=0, reports=tmp_path / "reports").failed == []
