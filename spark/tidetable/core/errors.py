"""What can go wrong, sorted by what helps: the user, a retry, or neither.

An error carries what was found, what is required and what to do next, each a sentence of its own.
Where the next step is a command it is data (`Replay`, `Update`): the command line, a DAG and the
page each have other words for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Update:
    """Remedy: update the index, which makes its table where there is none."""

    index: str

    def __str__(self) -> str:
        return f"Update {self.index}."


@dataclass(frozen=True)
class Replay:
    """Remedy: replay the index from a slot on."""

    index: str
    from_slot: int | None
    """None: whoever replays has to choose the slot."""

    from_source: bool = False
    """Into a fresh log, with nothing taken from the table that is there."""

    also: str = ""
    """What else helps, as a sentence."""

    def __str__(self) -> str:
        source = ", from its source into a fresh log" if self.from_source else ""
        chosen = " of your choice" if self.from_slot is None else f" {self.from_slot}"
        return " ".join(
            part for part in (self.also, f"Replay {self.index}{source}, from slot{chosen}.") if part
        )


@dataclass(frozen=True)
class ReadEarlier:
    """Remedy: read the table as it was after an earlier update."""

    def __str__(self) -> str:
        return "Ask for that time or a later one, or read the table as of an earlier slot."


Remedy = Update | Replay | ReadEarlier | str
"""What to do next: a command as data, or a sentence."""


class TidetableError(Exception):
    """Root of all errors raised on purpose. `retry_can_help` decides the exit status (1 or 2)."""

    retry_can_help = False
    code = "error"
    """What programs go by; a raise may give one that says more."""

    def __init__(
        self,
        found: str,
        required: str | None = None,
        remedy: Remedy | None = None,
        *,
        code: str | None = None,
    ) -> None:
        # BaseException keeps the arguments as given, by which an error is pickled.
        self.found = found
        self.required = required
        self.remedy = remedy
        if code is not None:
            self.code = code

    def told(self, words: Callable[[Remedy], str] = str) -> str:
        """All of it as text; `words` says how the remedy is said."""
        remedy = None if self.remedy is None else words(self.remedy)
        return " ".join(part for part in (self.found, self.required, remedy) if part)

    def __str__(self) -> str:
        return self.told()

    @property
    def exit_status(self) -> int:
        return 1 if self.retry_can_help else 2


class UserError(TidetableError):
    """The user's input is wrong: the same call fails again until somebody changes something."""

    code = "bad_input"


class TransientError(TidetableError):
    """The work did not get done this time; nothing was half done, and the same call may succeed."""

    retry_can_help = True
    code = "try_again"
