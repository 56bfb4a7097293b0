"""Where answers go: tables and pictures for people, a JSON object per line for programs.

A command says its answer once, as data and as a picture of it. stdout is for the answer; whatever
is said beside it goes to stderr.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from tidetable.core.errors import TidetableError, TransientError, UserError
from tidetable.core.failures import failure
from tidetable.output.characters import visible
from tidetable.output.remedies import as_command

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidetable.config import Index
    from tidetable.table.report import UpdateReport

_DEBUG_SHOWS = "TIDETABLE_DEBUG=1 shows the whole error."

Commits = AbstractContextManager["Callable[[UpdateReport], None]"]


class Output(ABC):
    """What a command talks to."""

    @abstractmethod
    def answer(
        self,
        data: Mapping[str, Any],
        picture: Callable[[], RenderableType] | None = None,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        """The answer: its data, or the picture and sentences beside it for people."""

    @abstractmethod
    def rows(
        self,
        rows: Iterable[Mapping[str, Any]],
        picture: Callable[[Iterator[Mapping[str, Any]]], RenderableType],
    ) -> None:
        """An answer of rows: all of them, one by one, or what the picture takes of them."""

    @abstractmethod
    def commits(self, index: Index, expected: int) -> Commits:
        """Gives what shows a commit as soon as it is made."""

    @abstractmethod
    def busy(self, what: str) -> AbstractContextManager[object]:
        """Says what is under way, where somebody watches."""

    @abstractmethod
    def error(self, error: BaseException) -> int:
        """Says what went wrong; the exit status."""

    def say(self, sentence: str) -> None:
        """To people, also to those who run a program."""
        from tidetable.output.terminal import ERR

        ERR.print(visible(sentence, lines=True), markup=False, soft_wrap=True)


class JsonOutput(Output):
    """For programs."""

    def answer(
        self,
        data: Mapping[str, Any],
        picture: Callable[[], RenderableType] | None = None,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        from tidetable.output.values import json_line

        sys.stdout.write(json_line(data) + "\n")
        sys.stdout.flush()

    def rows(
        self,
        rows: Iterable[Mapping[str, Any]],
        picture: Callable[[Iterator[Mapping[str, Any]]], RenderableType],
    ) -> None:
        for row in rows:
            self.answer(row)

    @contextmanager
    def commits(self, index: Index, expected: int) -> Iterator[Callable[[UpdateReport], None]]:
        yield lambda report: self.answer(report.as_json())

    def busy(self, what: str) -> AbstractContextManager[object]:
        return nullcontext()

    def error(self, error: BaseException) -> int:
        from tidetable.output.values import json_line

        told = _told(error)
        what = {
            "code": told.code, "found": told.found, "required": told.required,
            "remedy": None if told.remedy is None else as_command(told.remedy),
        }  # fmt: skip
        sys.stderr.write(json_line({"error": what, "retry_can_help": told.retry_can_help}) + "\n")
        return told.exit_status


class ConsoleOutput(Output):
    """For people."""

    def answer(
        self,
        data: Mapping[str, Any],
        picture: Callable[[], RenderableType] | None = None,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        if picture is not None:
            from tidetable.output.terminal import OUT

            OUT.print(picture(), markup=False)
        for note in notes:
            self.say(note)

    def rows(
        self,
        rows: Iterable[Mapping[str, Any]],
        picture: Callable[[Iterator[Mapping[str, Any]]], RenderableType],
    ) -> None:
        from tidetable.output.terminal import OUT

        OUT.print(picture(iter(rows)), markup=False)

    @contextmanager
    def commits(self, index: Index, expected: int) -> Iterator[Callable[[UpdateReport], None]]:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from tidetable.output.show import UpdateLines
        from tidetable.output.terminal import ERR, OUT

        lines = UpdateLines(OUT)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        # The bar is drawn where the lines go, if that is a terminal: so they go above it.
        bar = OUT if OUT.is_terminal else ERR
        progress = Progress(*columns, console=bar, transient=True, disable=not bar.is_terminal)
        task = progress.add_task(_under_way(index, 0, expected), total=max(1, expected))
        done = bad = 0

        def show(report: UpdateReport) -> None:
            nonlocal done, bad
            lines.show(report)
            done, bad = done + 1, bad + report.quarantined
            progress.update(task, advance=1, description=_under_way(index, done, expected))

        if expected > 1 and not bar.is_terminal:
            self.say(f"{index.name}: {expected} commits to make; each is shown once it is made.")
        try:
            with progress:
                yield show
        finally:
            if bad:
                self.say(_quarantined(index, bad))
        if not done:
            self.say("Nothing to do: another writer has applied these slots already.")

    def busy(self, what: str) -> AbstractContextManager[object]:
        from tidetable.output.terminal import ERR

        return ERR.status(what) if ERR.is_terminal else nullcontext()

    def error(self, error: BaseException) -> int:
        from tidetable.output.terminal import ERR

        expected = isinstance(error, TidetableError)
        told = _told(error)
        mark = "failed" if told.retry_can_help and not expected else "error"
        ERR.print(f"[bold red]{mark}:[/] ", end="")
        self.say(told.told(as_command))
        if not expected:
            self.say(("A retry may help. " if told.retry_can_help else "") + _DEBUG_SHOWS)
        return told.exit_status


def output(as_json: bool) -> Output:
    """For programs if they ask for JSON, otherwise for people."""
    return JsonOutput() if as_json else ConsoleOutput()


def _told(error: BaseException) -> TidetableError:
    """What went wrong; an error of others as one of ours."""
    if isinstance(error, TidetableError):
        return error
    found = failure(error)
    kind = TransientError if found.retry_can_help else UserError
    return kind(found.what, remedy=found.remedy, code="unexpected")


def _under_way(index: Index, done: int, expected: int) -> str:
    """Which commit of how many somebody is waiting for."""
    return f"{index.name}: commit {min(done + 1, expected)} of {expected}"


def _quarantined(index: Index, bad: int) -> str:
    from tidetable.table.place import quarantine_path

    told = "1 bad row is" if bad == 1 else f"{bad:,} bad rows are"
    return f"{told} in quarantine: {quarantine_path(index)}"
