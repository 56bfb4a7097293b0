"""Named steps between two effects, where something else may come between.

A test that wants to act there (another writer, a kill) watches; without a watcher a step is one
look at a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

Watcher = Callable[["Step"], None]


class Step(StrEnum):
    """What has just happened when the step is reached."""

    TABLE_CREATED = "table created"
    PLAN_MADE = "plan made"
    QUARANTINE_WRITTEN = "quarantine written"
    FILES_WRITTEN = "files written"
    COMMITTED = "committed"
    RECORDED = "table of updates written"
    CHECKPOINTED = "checkpoint written"
    GARBAGE_FOUND = "files to delete found"
    FILES_DELETED = "files deleted"


_watcher: Watcher | None = None


def reached(step: Step) -> None:
    """Called by the code right after the effect that the step names."""
    if _watcher is not None:
        _watcher(step)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Has `watcher` called at every step, in all threads, until the block ends."""
    global _watcher
    before, _watcher = _watcher, watcher
    try:
        yield
    finally:
        _watcher = before
