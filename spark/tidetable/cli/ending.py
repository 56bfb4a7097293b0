"""What becomes of whatever a command raises: a sentence and an exit status.

Exit status: 0 done (also when there was nothing to do), 1 failed but a retry can help,
2 the user's input is wrong.
"""

from __future__ import annotations

import os
import sys

from tidetable.cli.output import output
from tidetable.core.errors import TidetableError


def is_interrupted(error: BaseException) -> bool:
    """Whether somebody has pressed Ctrl-C, whatever has come of it.

    It reaches Spark's JVM and its workers as well: what is cleaned up on the way out may fail for
    it, and a worker may tell of it first.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        if type(seen).__name__ == "PythonException" and "KeyboardInterrupt" in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def status_of(error: BaseException, as_json: bool) -> int:
    """Says what went wrong. Raises it again if that is what somebody wants to see."""
    if isinstance(error, BrokenPipeError):  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    out = output(as_json)
    if is_interrupted(error):
        # What was under way knows more than nothing, or says nothing.
        stopped = "Stopped. What was committed stays, and nothing is half done."
        out.say((str(error) if isinstance(error, KeyboardInterrupt) else "") or stopped)
        return 130
    if isinstance(error, Exception):
        if os.environ.get("TIDETABLE_DEBUG") and not isinstance(error, TidetableError):
            raise error
        return out.error(error)
    if type(error).__name__ != "PanicException":  # of Rust, which is no Exception
        raise error
    return out.error(error)
