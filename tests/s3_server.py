"""A server that answers as S3 does, in a process of its own: `python -m tests.s3_server`.

It prints its address. delta-rs holds Python's lock during some calls, so a server in the same
process would never get to answer them.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server that lives as long as the context."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.s3_server"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the server did not start"
        yield address
    finally:
        process.kill()
        process.wait()


def serve() -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    answer, alone = DomainDispatcherApplication(create_backend_app), Lock()

    def one_at_a_time(environ: Any, start_response: Any) -> Any:
        """S3 promises that a conditional write is atomic; moto looks, and then writes."""
        with alone:
            return answer(environ, start_response)

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True)
    print(f"http://127.0.0.1:{server.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve()
