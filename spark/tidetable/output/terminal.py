"""What goes to a screen, a file or another program: how wide it may be."""

from __future__ import annotations

import os

from rich.console import Console, ConsoleDimensions

ENDLESS = 1_000_000
"""The width of what is no terminal: nothing is wrapped or cut for a file or a program."""


class Output(Console):
    """A terminal as wide as it is; anything else without end, unless COLUMNS says how wide."""

    @property  # type: ignore[misc]  # nobody sets it
    def size(self) -> ConsoleDimensions:
        if self.is_terminal or "COLUMNS" in os.environ:
            return super().size
        return ConsoleDimensions(ENDLESS, 25)


OUT = Output(highlight=False)
ERR = Output(stderr=True, highlight=False)
