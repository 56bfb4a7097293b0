"""Up to which slot `make run` waits, and with it until when it says that it is catching up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from rig.catching_up import to_now, to_the_end
from tests.workspace import EVERY, START, Workspace, at


def test_to_the_end_waits_for_those_that_have_one(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    ends, goes_on = workspace.index(end=at(3).isoformat()), workspace.index()
    (waiting,) = to_the_end([goes_on, ends])
    assert (waiting.index, waiting.last_slot, waiting.since) == (ends, 3, None)
    assert to_the_end([workspace.index(end=(START + EVERY / 2).isoformat())]) == []


def test_to_now_waits_for_what_has_ended_by_now(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    ends, goes_on = workspace.index(end=at(3).isoformat()), workspace.index()
    now = at(5) + EVERY / 2
    assert [one.last_slot for one in to_now([ends, goes_on], now)] == [3, 5]
    assert {one.since for one in to_now([ends, goes_on], now)} == {now}
    assert to_now([goes_on], START + timedelta(seconds=1)) == []
