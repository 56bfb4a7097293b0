"""Published results can be read back, so that a run on another machine goes on from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as command
from bench.published import published
from bench.sizes import chosen
from bench.systems.catalog import SYSTEMS
from bench.tables import write_csv, write_updates_csv
from tests.bench.figures import measured


def write(folder: Path) -> None:
    found = [measured(), measured("rebuild", seconds=(2.0, 3.5), expired_visible=None)]
    write_csv(folder / "small.csv", found)
    write_updates_csv(folder / "small-updates.csv", found)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    write(tmp_path)
    ours, other = published(tmp_path, "small")
    assert ours == measured()
    assert other == measured("rebuild", seconds=(2.0, 3.5), expired_visible=None)


def test_results_from_before_a_figure_was_measured_are_read_without_it(tmp_path: Path) -> None:
    write(tmp_path)
    file = tmp_path / "small-updates.csv"
    file.write_text(file.read_text().replace("collecting_s", "something"))
    ours, _ = published(tmp_path, "small")
    assert [update.collecting_s for update in ours.updates] == [None, None]


def test_results_that_do_not_name_their_rows_are_left_out(tmp_path: Path) -> None:
    """They may be of other rows than those of today."""
    write(tmp_path)
    file = tmp_path / "small.csv"
    file.write_text(file.read_text().replace("digest", "something"))
    assert published(tmp_path, "small") == []


def test_where_all_is_published_a_new_machine_measures_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = chosen("small", ["sweep"], ["uniform_36"])
    found = replace(
        measured(), digest=choice.workload("uniform_36").digest, setting=SYSTEMS["sweep"].setting
    )
    write_csv(tmp_path / "small.csv", [found])
    write_updates_csv(tmp_path / "small-updates.csv", [found])
    before = {file.name: file.read_text() for file in tmp_path.iterdir()}
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "CACHE", tmp_path / "cache")
    assert command.run(choice, fresh=False, keep=True) == 0
    assert "the published results stay as they are" in capsys.readouterr().out
    assert {file.name: file.read_text() for file in tmp_path.iterdir() if file.is_file()} == before


@pytest.mark.parametrize("label", ["small", "medium-72"])
def test_where_nothing_is_published_nothing_is_read(tmp_path: Path, label: str) -> None:
    assert published(tmp_path, label) == []
