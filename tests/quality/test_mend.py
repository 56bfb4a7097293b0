"""From which slot a replay mends what is wrong: told by the log, without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from tests.cli.handmade import make_table
from tests.quality.tables import Stored, Wrong
from tests.workspace import Workspace, at, row
from tidetable.quality.mend import judged_figures
from tidetable.table.history import Updates, _stored
from tidetable.table.history_row import UpdateRow
from tidetable.table.note import Note

Change = Callable[[list[Stored]], list[Stored]]


def as_they_are(rows: list[Stored]) -> list[Stored]:
    return rows


def set_key(key: str) -> Change:
    return lambda rows: [one | {"key": key} if one["id"] == 1 else one for one in rows]


visibly, back, hidden = set_key(""), set_key("k1"), set_key("other")


class Story:
    """A table whose rows live throughout, and a commit for each thing that happens to it."""

    def __init__(self, folder: Path) -> None:
        rows = [row(number, 0, 20) for number in range(12)]
        quality = {"check_rows_every": 0, "imbalance_max": 100}
        index = make_table(Workspace(folder), rows, longest_lifetime="200m", quality=quality)
        self.table = Wrong(index)
        self.recorded: list[UpdateRow] = []

    def update(self, slot: int, change: Change = as_they_are, checks: Any = None) -> None:
        now = self.table.state.note
        self._commit(change, replace(now, slot=slot, previous=now.slot, kind="update", read=0,
                                     inserted=0), checks)  # fmt: skip

    def again(self, kind: str, slot: int, change: Change = as_they_are) -> None:
        """A load, a restore or a rebuild that leaves the table at this slot."""
        now = self.table.state.note
        note = now.as_rebuilt("again") if kind == "rebuild" else now.as_restored("again")
        read = {"read": now.live, "inserted": now.live} if kind == "load" else {}
        self._commit(change, replace(note, slot=slot, kind=kind, **read), None)

    def stranger(self, change: Change) -> None:
        self.table.rewrite(change, note=None)

    @property
    def replay_from(self) -> int | None:
        figures = judged_figures(self.table.index, None)
        assert "replay_from" in figures.summary()
        return figures.replay_from

    def _commit(self, change: Change, note: Note, checks: Any) -> None:
        self.table.rewrite(change, note)
        if checks is None:
            return
        self.recorded.append(
            UpdateRow(
                index="things", slot=note.slot, as_of=at(note.slot), committed_at=at(note.slot),
                version=self.table.state.version, kind="update", read=0, inserted=0, expired=0,
                dead_on_arrival=0, quarantined=0, live=12, late=0, missing=0, rewritten_rows=0,
                written_bytes=0, files=1, bytes=1, cells=1, imbalance=1, seconds=1, reasons={},
                touched=[], checks={"rows": 12, **checks},
            )
        )  # fmt: skip
        updates = Updates(self.table.index)
        updates.record()  # makes the table, which says whose it is
        write_deltalake(updates.path, _stored(self.recorded), mode="overwrite")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path)
    story.update(1)
    story.update(2)
    return story


def test_nothing_is_wrong(story: Story) -> None:
    assert story.replay_from is None


def test_a_stranger_who_came_last(story: Story) -> None:
    story.stranger(hidden)
    assert story.replay_from == 2


def test_a_wrong_update_that_others_went_on_from(story: Story) -> None:
    """A replay of the last slot would put back what is wrong."""
    story.update(3, visibly)
    story.update(4)
    story.update(6)
    assert story.replay_from == 3


def test_of_a_slot_with_two_versions_the_newer_one_would_be_put_back(story: Story) -> None:
    story.update(3)
    story.again("rebuild", 3, visibly)
    story.update(4)
    assert story.replay_from == 3


def test_a_stranger_under_our_own_commits(story: Story) -> None:
    """What the stranger did does not show: that there was one is enough."""
    story.stranger(hidden)
    story.update(3)
    story.update(4)
    story.update(5, visibly)
    assert story.replay_from == 3


def test_a_stranger_whose_work_was_undone(story: Story) -> None:
    story.stranger(hidden)
    story.again("restore", 2, back)
    story.update(3)
    story.update(4, visibly)
    assert story.replay_from == 4


def test_a_table_that_was_wrong_from_the_start(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.again("load", 0, visibly)
    story.update(1)
    assert story.replay_from is None


def test_before_a_load_the_source_tells(story: Story) -> None:
    """The log knows no slot before it, so a replay from there loads from the source."""
    story.again("load", 2, visibly)
    story.update(3)
    assert story.replay_from == 2


def test_what_only_rows_tell_must_have_been_told_then(story: Story) -> None:
    story.update(3, checks={"misplaced": 0})
    story.update(4)
    story.update(5, checks={"misplaced": 1})
    assert story.replay_from == 4


def test_if_rows_were_never_looked_at_before_no_version_is_believed(story: Story) -> None:
    story.again("load", 2)
    story.update(3)
    story.update(4, checks={"misplaced": 1})
    assert story.replay_from == 2
