"""What is finished stays finished, and figures are what their names say."""

from __future__ import annotations

from pathlib import Path

from bench.__main__ import unfinished
from bench.measured import METHOD, Finished
from bench.sizes import chosen
from tests.bench.figures import measured


def test_figures_of_all_updates() -> None:
    found = measured(seconds=(1.0, 2.0, 6.0))
    assert found.update_s_median == 2
    assert found.update_s_mean == 3
    assert found.update_s_max == 6
    assert found.update_max_of_median == 3
    assert found.written_per_inserted == 2.5
    assert found.stored_per_live == 1.05


def test_a_finished_pair_is_read_back_as_it_was(tmp_path: Path) -> None:
    finished = Finished(tmp_path / "not there yet")
    assert finished.all() == []
    finished.keep(measured())
    assert finished.all() == [measured()]


def test_a_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    choice = chosen("small", ["sweep", "rebuild"], ["uniform_36"])
    finished = Finished(tmp_path)
    finished.keep(measured("sweep"))

    def names(fresh: bool) -> list[str]:
        return [entry.name for entry in unfinished(choice, finished, fresh=fresh)["uniform_36"]]

    assert names(fresh=False) == ["rebuild"]
    assert names(fresh=True) == ["sweep", "rebuild"]


def test_a_pair_that_met_other_rows_or_was_set_otherwise_is_not_finished(tmp_path: Path) -> None:
    finished = Finished(tmp_path)
    finished.keep(measured())
    pair = ("uniform_36", "sweep")
    here = (measured().digest, measured().setting)
    assert finished.is_finished(*pair, *here)
    assert not finished.is_finished(*pair, "other rows", here[1])
    assert not finished.is_finished(*pair, here[0], "another setting")


def test_a_pair_that_was_measured_in_another_way_is_not_finished(tmp_path: Path) -> None:
    finished = Finished(tmp_path)
    for before in (None, METHOD - 1):
        finished.keep(measured(method=before))
        pair = ("uniform_36", "sweep")
        assert not finished.is_finished(*pair, measured().digest, measured().setting)
