"""What becomes of whatever a command raises: a sentence and an exit status.

Exit status: 0 done (also when there was nothing to do), 1 failed but a retry can help,
2 the user's input is wrong.
"""

from __future__ import annotations

import os
import sys

from tidetable.cli.output import output
from tidetable.core.errors import TidetableError


def status_of(error: BaseException, as_json: bool) -> int:
    """Says what went wrong. Raises it again if that is what somebody wants to see."""
    if isinstance(error, BrokenPipeError):  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    out = output(as_json)
    if isinstance(error, KeyboardInterrupt):
        # What was under way knows more than nothing, or says nothing.
        stopped = "Stopped. What was committed stays, and nothing is half done."
        out.say(str(error) or stopped)
        return 130
    if isinstance(error, Exception):
        if os.environ.get("TIDETABLE_DEBUG") and not isinstance(error, TidetableError):
            raise error
        return out.error(error)
    if type(error).__name__ != "PanicException":  # of Rust, which is no Exception
        raise error
    return out.error(error)
