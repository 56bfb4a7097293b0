"""What can go wrong, sorted by what helps: the user, a retry, or neither.

Every message is a sentence that names what was found, what was required and what to do next.
"""

from __future__ import annotations


class TidetableError(Exception):
    """Root of all errors raised on purpose. `retry_can_help` decides the exit status (1 or 2)."""

    retry_can_help = False

    @property
    def exit_status(self) -> int:
        return 1 if self.retry_can_help else 2


class UserError(TidetableError):
    """The user's input is wrong: the same call fails again until somebody changes something."""


class TransientError(TidetableError):
    """The work did not get done this time; nothing was half done, and the same call may succeed."""

    retry_can_help = True
