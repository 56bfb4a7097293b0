"""A command of `tidetable` as a client of a Spark Connect server, in the process of the task.

Airflow has started a process for the task, and its executor may have loaded beforehand what a
client needs (executor.py): another process would start Python and import all of it again. What
PySpark keeps of a server, in the environment and as the active session, is gone when the command
has ended, so that a process which runs several tasks (`dag.test()`) is left as it was found.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

from tidetable.config.project import HOME
from tidetable.core.errors import UserError

SERVER = "SPARK_REMOTE"
_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""PySpark sets it with the first session, and from then on makes no other kind."""

Tell = Callable[[str], None]


def run_command(words: Sequence[str], url: str, root: Path, tell: Tell) -> int:
    """Runs `tidetable WORDS` and hands on every line that it prints; its exit status.

    Whatever ends it from outside (a kill, a time-out) also ends what the server still does for it.
    """
    _check_it_is_free()
    # By name: the commands stand above this floor, and are started as any other program would be.
    commands = import_module("tidetable.cli")
    with _told_by_line(tell), _environment(root, url), _session_ended():
        try:
            commands.app(list(words))
        except SystemExit as end:
            return _status(end)
    return 0


def _check_it_is_free() -> None:
    """PySpark has one kind of session in a process, and another would do the work of ours."""
    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        if SparkSession.getActiveSession() is not None:
            raise UserError(
                "This process has a Spark session already, so it cannot be the client of a Spark "
                "Connect server. Stop the session first, or run the task in another process."
            )


def _status(end: SystemExit) -> int:
    """As a shell would see it."""
    if end.code is None:
        return 0
    return end.code if isinstance(end.code, int) else 1


@contextmanager
def _environment(root: Path, url: str) -> Iterator[None]:
    """Which project and which server, for as long as the command runs."""
    before = {name: os.environ.get(name) for name in (SERVER, HOME, _MODE)}
    os.environ |= {SERVER: url, HOME: str(root)}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _session_ended() -> Iterator[None]:
    """Leaves no session behind: a server ends what it still runs for one that is given back."""
    try:
        yield
    finally:
        if _MODE in os.environ:
            from pyspark.sql import SparkSession

            session = SparkSession.getActiveSession()
            if session is not None:
                session.stop()


@contextmanager
def _told_by_line(tell: Tell) -> Iterator[None]:
    """While this lasts, what is printed goes to the log of the task, stderr not as an error."""
    lines = _Lines(tell)
    with ExitStack() as both:
        both.enter_context(redirect_stdout(lines))
        both.enter_context(redirect_stderr(lines))
        try:
            yield
        finally:
            lines.end()


class _Lines(io.TextIOBase):
    """A stream whose lines are handed on one by one."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._begun = ""
        self._screen = (sys.stdout, sys.stderr)

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._hand_on(line)
        return len(text)

    def end(self) -> None:
        """Hands on a last line that nobody has ended."""
        if self._begun:
            self._hand_on(self._begun)
            self._begun = ""

    def _hand_on(self, line: str) -> None:
        # A log may go to the screen itself, as it does in `dag.test()`.
        out, err = self._screen
        with redirect_stdout(out), redirect_stderr(err):
            self._tell(line.rstrip())
