"""`make run`: builds the three indexes some slots further, shows them, and ends."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from deltalake import DeltaTable
from rich.console import Console

from tidetable import demo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
TWO_SLOTS_LATER = "2013-01-02T13:00:00Z"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The shipped indexes over the real flights, ended after two slots, with no table yet."""
    shutil.copytree(ROOT / "include" / "sample", tmp_path / "include" / "sample")
    indexes = tmp_path / "include" / "indexes"
    indexes.mkdir()
    for name in demo.INDEXES:
        written = yaml.safe_load((ROOT / "include" / "indexes" / f"{name}.yaml").read_text())
        written |= {"start": written["start"].isoformat(), "end": TWO_SLOTS_LATER}
        (indexes / f"{name}.yaml").write_text(yaml.safe_dump(written))
    data = ROOT / "include" / "data"
    data.mkdir(exist_ok=True)
    (tmp_path / "include" / "data").symlink_to(data)
    return tmp_path


def shown(project: Path, slots: int, *, terminal: bool = False) -> tuple[str, list[demo.Stretch]]:
    screen = io.StringIO()
    console = Console(file=screen, width=100, force_terminal=terminal, highlight=False)
    done = demo.run(project, slots, console)
    return screen.getvalue(), done


def probed(text: str) -> str:
    return text.split("A probe: ")[1].split(",")[0]


def tail_numbers(project: Path) -> list[str]:
    """Who is in the air, as any reader of Delta tables sees it."""
    table = DeltaTable(project / ".tidetable" / demo.PROBED)
    return table.to_pyarrow_table(columns=["tail_number"]).column(0).to_pylist()


def test_it_builds_all_three_and_shows_them(spark: SparkSession, project: Path) -> None:
    """Two slots, asked for as one and as more than are left; then there is nothing to do."""
    text, done = shown(project, 1)
    assert [[report.slot for report in one.reports] for one in done] == [[0, 1]] * 3
    assert "flights_no_rebuild  slot  1  12:30  +25  -7   in the air 104" in text
    assert "Rows written per row inserted in this run: flights_rebuild" in text
    assert probed(text) in tail_numbers(project)

    text, done = shown(project, 5, terminal=True)
    assert [[report.slot for report in one.reports] for one in done] == [[2]] * 3
    assert "goes on to slot 2" in text

    ratios = {one.index.name: one.written_per_inserted for one in done}
    assert ratios["flights_no_rebuild"] == 1.0
    assert ratios["flights_rebuild"] > ratios["flights_sweep"] > 1.0  # type: ignore[operator]

    text, done = shown(project, 1)
    assert [one.reports for one in done] == [[], [], []]
    assert "Nothing left to do" in text
    for expected in (
        "Rebuild 4x4", "NoRebuild 4x4", "Sweep(8,1)", "130", "e7", "A probe", "landed_at",
        "status flights_sweep", "plan flights_sweep", "probe flights_sweep",
        "update flights_sweep --slots 4", "simulate --scheme sweep",
    ):  # fmt: skip
        assert expected in text


def test_help_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(["--help"])
    assert ended.value.code == 0
    assert "--slots N" in capsys.readouterr().out


def test_no_slots_are_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(["--slots", "0"])
    assert ended.value.code == 2
    assert "--slots must be at least 1, not 0" in capsys.readouterr().err


def test_a_mistake_of_the_user_ends_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    assert demo.main([]) == 2
    assert "flights.py is missing" in capsys.readouterr().err
