"""Writers that get into each other's way: no row is lost or doubled, every slot is done once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.steady import LAST, expected, rows_of_every_slot
from tests.workspace import Workspace, at, row
from tidetable.config import Index
from tidetable.engine import create
from tidetable.engine import updater as update
from tidetable.engine.commit import write_commit
from tidetable.engine.quarantine import Quarantine
from tidetable.engine.replay import replay
from tidetable.engine.updater import Updater
from tidetable.table import commits
from tidetable.table.append import NotTheNewest, append_version
from tidetable.table.forget import forget, merge_files
from tidetable.table.log import open_log
from tidetable.table.place import INCOMING, quarantine_path
from tidetable.table.steps import Step, watched
from tidetable.table.upkeep import purge

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]


def steps(index: Index) -> list[tuple[int | None, int]]:
    """(slot before, slot after) of all commits of ours, oldest first."""
    log = open_log(index.table)
    assert log is not None
    return [(note.previous, note.slot) for _, note in log.notes()][::-1]


def before_the_first_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """The next commit of any writer waits until `act` is done; those that `act` makes do not."""
    waiting = [act]

    def write(*arguments: Any) -> None:
        if waiting:
            waiting.pop()()
        write_commit(*arguments)

    monkeypatch.setattr(update, "write_commit", write)


@pytest.mark.parametrize(
    "scheme",
    [
        # Appends without removing anything: nothing but the fence stands between two of them.
        {"name": "no_rebuild", "insertion": 2, "expiration": 3},
        {"name": "sweep", "groups": 3},
    ],
    ids=["no_rebuild", "sweep"],
)
def test_the_writer_that_comes_second_goes_on_from_where_the_first_has_got(
    spark: SparkSession,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    scheme: dict[str, Any],
) -> None:
    """One by one against one by one, a fold against one slot, and one slot against a fold."""
    workspace.add(rows_of_every_slot())
    index = workspace.index(scheme=scheme)
    slow, quick = Updater(spark, index), Updater(spark, index)
    list(quick.catch_up(0))

    before_the_first_commit(monkeypatch, lambda: list(quick.catch_up(1)))
    assert [report.slot for report in slow.catch_up(2)] == [2]
    assert workspace.ids() == expected(2)

    before_the_first_commit(monkeypatch, lambda: list(quick.catch_up(3)))
    folded = list(slow.catch_up(5, fold=True))
    assert [(report.slot, report.inserted) for report in folded] == [(5, 4)]
    assert workspace.ids() == expected(5)

    before_the_first_commit(monkeypatch, lambda: list(quick.catch_up(LAST, fold=True)))
    assert list(slow.catch_up(6)) == []
    assert workspace.ids() == expected(LAST)

    assert steps(index) == [(None, 0), (0, 1), (1, 2), (2, 3), (3, 5), (5, LAST)]


@pytest.mark.parametrize("vectors", [False, True])
def test_a_commit_while_the_rows_are_being_written_makes_the_other_start_over(
    spark: SparkSession, workspace: Workspace, vectors: bool
) -> None:
    """Too late for the fence to skip the write: it is refused when it is to be committed."""
    workspace.add([row(1, 0.5, 4), row(2, 1.5, 4)])
    index = workspace.index(scheme={"name": "sweep", "groups": 3, "deletion_vectors": vectors})
    list(Updater(spark, index).catch_up(0))
    go_on, writing = Event(), Event()

    def holds(step: Step) -> None:
        if step is Step.FILES_WRITTEN and not writing.is_set():
            writing.set()
            assert go_on.wait(300)

    slots: list[int] = []
    slow = Thread(
        target=lambda: slots.extend(one.slot for one in Updater(spark, index).catch_up(2))
    )
    with watched(holds):
        slow.start()
        assert writing.wait(120)
        assert [one.slot for one in Updater(spark, index).catch_up(1)] == [1]
        go_on.set()
        slow.join(300)
    assert slots == [2]
    assert workspace.ids() == [1, 2]
    assert steps(index) == [(None, 0), (0, 1), (1, 2)]
    assert not any((workspace.table / INCOMING).glob("*"))


def test_a_crash_right_after_the_commit_loses_and_doubles_nothing(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit counts, whatever became of the program that made it."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()

    def crash(*arguments: Any) -> None:
        write_commit(*arguments)
        raise RuntimeError("the power is gone")

    for target in (0, 1):  # the load, then an update
        monkeypatch.setattr(update, "write_commit", crash)
        with pytest.raises(RuntimeError, match="power"):
            list(Updater(spark, index).catch_up(target))
        assert workspace.ids() == expected(target)
    monkeypatch.setattr(update, "write_commit", write_commit)
    assert [report.slot for report in Updater(spark, index).catch_up(2)] == [2]
    assert workspace.ids() == expected(2)
    assert steps(index) == [(None, 0), (0, 1), (1, 2)]


def test_two_writers_that_meet_at_the_quarantine_fill_it_once(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen the same version of it, first an empty table and then an old one."""
    workspace.add([row(1, 0.5, 4, key=""), row(2, 1.5, 4, key=""), row(3, 1.5, 4)])
    index = workspace.index()
    slow, quick = Updater(spark, index), Updater(spark, index)
    list(quick.catch_up(0))
    waiting: list[int] = []
    write = Quarantine._written

    def written(*arguments: Any) -> bool:
        if waiting:
            list(quick.catch_up(waiting.pop()))
        return write(*arguments)

    monkeypatch.setattr(Quarantine, "_written", written)
    for slot in (1, 2):
        waiting.append(slot)
        assert list(slow.catch_up(slot)) == []
        assert not waiting
    assert workspace.reasons(index) == [(1, "no key"), (2, "no key")]
    assert workspace.ids() == [3]
    assert steps(index) == [(None, 0), (0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("slow_folds", "quick_folds"), [(True, False), (False, True)], ids=["fold", "single update"]
)
def test_no_commit_of_the_quarantine_replaces_another(
    spark: SparkSession,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    slow_folds: bool,
    quick_folds: bool,
) -> None:
    """The files of one are written; before its commit another makes the very version."""
    bad = [row(900 + slot, slot - 0.5, slot + 2, key="") for slot in (1, 2)]
    workspace.add([*rows_of_every_slot(), *bad])
    index = workspace.index()
    slow, quick = Updater(spark, index), Updater(spark, index)
    list(quick.catch_up(0))
    waiting = [lambda: list(quick.catch_up(2 if quick_folds else 1, fold=quick_folds))]
    made: list[tuple[int, bool]] = []
    append = commits.append_version

    def come_first(path: str, version: int, actions: Any) -> None:
        is_contended = path == quarantine_path(index)
        if is_contended and waiting:
            waiting.pop()()
        try:
            append(path, version, actions)
        except NotTheNewest:
            made.append((version, False))
            raise
        if is_contended:
            made.append((version, True))

    monkeypatch.setattr(commits, "append_version", come_first)
    list(slow.catch_up(2 if slow_folds else 1, fold=slow_folds))
    list(Updater(spark, index).catch_up(2))
    first = made[0][0]
    assert made[:2] == [(first, True), (first, False)]
    assert workspace.reasons(index) == [(1, "no key"), (2, "no key")]
    found = [json.loads(one["row"])["id"] for one in workspace.quarantined(index)]
    assert found == [901, 902]
    assert workspace.ids() == expected(2)


def test_a_clean_up_of_the_quarantine_between_look_and_commit_is_kept(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was forgotten stays forgotten, what comes in comes in."""
    workspace.add([row(900 + slot, slot - 0.5, slot + 2, key="") for slot in (1, 3, 5)])
    index = workspace.index(quarantine={"keep_for": "0s"}, source={"recount_every": 0})
    list(Updater(spark, index).catch_up(4))
    waiting = [lambda: (forget(index, 2), merge_files(index, above=0))]
    append = commits.append_version

    def come_first(path: str, version: int, actions: Any) -> None:
        if path == quarantine_path(index) and waiting:
            waiting.pop()()
        append(path, version, actions)

    monkeypatch.setattr(commits, "append_version", come_first)
    list(Updater(spark, index).catch_up(5))
    assert not waiting
    assert workspace.reasons(index) == [(3, "no key"), (5, "no key")]


def test_a_commit_whose_answer_was_lost_counts(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store has taken the version, and refuses the second attempt because of the first."""
    workspace.add([*rows_of_every_slot(), row(901, 0.5, 3, key="")])
    index = workspace.index()
    append = commits.append_version
    lost = []

    def lose_the_answer(path: str, version: int, actions: Any) -> None:
        append(path, version, actions)
        lost.append(path)
        raise NotTheNewest(f"{version} is there already")

    monkeypatch.setattr(commits, "append_version", lose_the_answer)
    assert [report.slot for report in Updater(spark, index).catch_up(1)] == [0, 1]
    assert sorted(lost) == [index.table, index.table, quarantine_path(index)]
    assert workspace.ids() == expected(1)
    assert workspace.reasons(index) == [(1, "no key")]


def test_a_row_without_an_arrival_is_quarantined_once_by_a_fold_and_a_single_update(
    spark: SparkSession, workspace: Workspace
) -> None:
    """It is in every batch. Whoever of the two comes second has it in its batch as well."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    slow, quick = Updater(spark, index), Updater(spark, index)
    list(quick.catch_up(0))
    waiting: list[tuple[Step, int, bool]] = []
    unreadable = 0

    def come_first(step: Step) -> None:
        if waiting and waiting[0][0] is step:
            _, target, fold = waiting.pop()
            list(quick.catch_up(target, fold=fold))

    def meet(step: Step, quick_does: tuple[int, bool], slow_does: tuple[int, bool]) -> None:
        nonlocal unreadable
        unreadable += 1
        workspace.add([row(900 + unreadable, 0, 3) | {"arrived_at": None}])
        waiting.append((step, *quick_does))
        with watched(come_first):
            list(slow.catch_up(slow_does[0], fold=slow_does[1]))
        assert not waiting
        last = max(quick_does[0], slow_does[0])
        assert workspace.ids() == expected(last)
        found = [json.loads(one["row"])["id"] for one in workspace.quarantined(index)]
        assert found == [900 + number for number in range(1, unreadable + 1)]

    single, fold = False, True
    meet(Step.PLAN_MADE, (2, fold), (1, single))
    meet(Step.QUARANTINE_WRITTEN, (4, fold), (3, single))
    meet(Step.PLAN_MADE, (5, single), (6, fold))
    meet(Step.QUARANTINE_WRITTEN, (7, single), (8, fold))


def test_a_replay_whose_files_are_purged_meanwhile_loads_from_the_source(
    spark: SparkSession, workspace: Workspace
) -> None:
    """They were there when it looked; what it puts back would name files that are gone."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    list(Updater(spark, index).catch_up(3))
    purged: list[int] = []

    def come_between(step: Step) -> None:
        if step is Step.PLAN_MADE and not purged:
            purged.append(purge(index, datetime.now(UTC) + timedelta(days=2)).files)

    with watched(come_between):
        reports = list(replay(Updater(spark, index), 3))
    assert purged[0] > 0
    assert [report.slot for report in reports] == [2, 3]
    assert workspace.ids() == expected(3)


def test_a_table_that_another_makes_at_the_same_moment_is_taken(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found the place free; one of them makes the first version."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    other = Updater(spark, index)
    waiting = [lambda: list(other.catch_up(0))]

    def make(path: str, version: int, actions: list[dict[str, Any]]) -> None:
        if version == 0 and path == index.table and waiting:
            waiting.pop()()
        append_version(path, version, actions)

    monkeypatch.setattr(create, "append_version", make)
    assert list(Updater(spark, index).catch_up(0)) == []
    assert not waiting
    assert workspace.ids() == expected(0)
    assert steps(index) == [(None, 0)]


def test_what_a_killed_maker_of_the_table_has_left_is_no_obstacle(
    spark: SparkSession, workspace: Workspace
) -> None:
    """Of a version before this one an empty log, of this one a folder on its way in."""
    workspace.add(rows_of_every_slot())
    index = workspace.index()
    (workspace.table / "_delta_log").mkdir(parents=True)
    (workspace.table / INCOMING / "run" / "_delta_log").mkdir(parents=True)
    assert [report.slot for report in Updater(spark, index).catch_up(0)] == [0]
    assert workspace.ids() == expected(0)


@pytest.mark.slow
@pytest.mark.spark
def test_two_processes_at_once_do_every_slot_once(workspace: Workspace) -> None:
    """From no table at all, with a bad row, so that they also meet at the quarantine."""
    workspace.add([*rows_of_every_slot(), row(99, -0.3, 4, key=""), row(98, 0.3, 4, key="")])
    index = workspace.index()
    command = [sys.executable, "-m", "tidetable.cli", "update", str(workspace.yaml), "--json"]
    writers = [
        subprocess.Popen(
            [*command, "--until", at(1).isoformat()],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [writer.communicate(timeout=400) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], said
    done = [json.loads(line)["slot"] for out, _ in said for line in out.splitlines()]
    assert sorted(done) == [0, 1]
    assert steps(index) == [(None, 0), (0, 1)]
    assert workspace.ids() == expected(1)
    assert workspace.reasons(index) == [(0, "no key"), (1, "no key")]
