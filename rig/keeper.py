"""The parent of all services: stops every one of them, whatever becomes of whoever started it.

Run as a program by `services.py`, with one end of a socket. Through it come requests to start and
to stop, one JSON object per line, and go the answers. When the other end closes, because it was
told so or because that process died, everything is stopped. Nothing of the project is imported: it
has to start at once and to go on working while the rest fails.

On Linux it adopts what its children leave behind (PR_SET_CHILD_SUBREAPER), so no descendant gets
out of its sight; and should it be killed itself, the services are told to end (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil  # type: ignore[import-untyped]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LEFT_OVER_WITHIN_S = 3.0
"""How long what the services leave behind gets to end before it is killed."""

_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass
class Child:
    """A service that runs, or ran."""

    name: str
    pid: int
    stage: int
    stop_signal: int
    stop_within_s: float
    status: int | None = None
    """How it ended, as `subprocess` counts: negative for a signal."""


class Keeper:
    """Starts, watches and stops the services."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._received = b""
        self._children: list[Child] = []
        self._hurry = False
        self._stop = False

    def run(self) -> None:
        """Serves requests until it is told to stop or nobody is left who could tell."""
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in _ENDS:
            signal.signal(number, self._asked_to_end)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while not self._stop:
                ready = {key.fileobj for key, _ in selector.select()}
                if woken in ready:
                    with suppress(BlockingIOError):
                        woken.recv(4096)
                self._reap()
                if self._control in ready:
                    self._receive()
        self._stop_all()
        self._say({"gone": True})

    # -- requests --------------------------------------------------------------------------------

    def _asked_to_end(self, *_: Any) -> None:
        self._hurry = self._stop  # the second time
        self._stop = True

    def _receive(self) -> None:
        try:
            got = self._control.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        if not got:
            self._stop = True
            return
        *lines, self._received = (self._received + got).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if request["do"] == "start":
                self._start(request)
            else:
                self._asked_to_end()

    def _start(self, request: dict[str, Any]) -> None:
        try:
            pid = _spawn(request)
        except (OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
            self._say({"refused": request["name"], "why": str(error)})
            return
        self._children.append(
            Child(
                request["name"],
                pid,
                request["stage"],
                request["stop_signal"],
                request["stop_within_s"],
            )
        )
        self._say({"started": request["name"], "pid": pid})

    def _say(self, message: dict[str, Any]) -> None:
        with suppress(OSError):  # nobody listens any more: that must not stop us from stopping
            self._control.settimeout(1.0)
            self._control.sendall(json.dumps(message).encode() + b"\n")

    # -- children --------------------------------------------------------------------------------

    def _reap(self) -> None:
        """Notes who has ended, adopted ones too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self._children:
                if child.pid == pid and child.status is None:
                    child.status = os.waitstatus_to_exitcode(status)
                    self._say({"ended": child.name, "status": child.status})

    def _stop_all(self) -> None:
        """Stage by stage, the last first; then whatever the services have left behind."""
        for stage in sorted({child.stage for child in self._children}, reverse=True):
            self._stop_stage([child for child in self._children if child.stage == stage])
        left = _descendants()
        _signal_all(left, signal.SIGTERM)
        self._wait(lambda: not _alive(left), _LEFT_OVER_WITHIN_S)
        for _ in range(20):  # who is killed may have started another a moment before
            left = _descendants()
            if not left:
                break
            _signal_all(left, signal.SIGKILL)
            self._wait(lambda: not _descendants(), 0.5, even_in_a_hurry=True)

    def _stop_stage(self, children: list[Child]) -> None:
        began = time.monotonic()
        running = [child for child in children if child.status is None]
        for child in running:
            self._say({"stopping": child.name})
            # Only the leader: it knows best how to end its own children, and a task that runs below
            # it may finish first.
            with suppress(ProcessLookupError):
                os.kill(child.pid, child.stop_signal)
        while unfinished := [child for child in running if child.status is None]:
            waited = time.monotonic() - began
            late = [child for child in unfinished if self._hurry or waited > child.stop_within_s]
            for child in late:
                self._say({"killing": child.name})
                _signal_all(_descendants(child.pid), signal.SIGKILL)
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
            self._wait_for(late or unfinished, 0.2, even_in_a_hurry=bool(late))
        for child in running:
            self._say({"stopped": child.name, "seconds": round(time.monotonic() - began, 1)})

    def _wait_for(self, children: list[Child], within_s: float, *, even_in_a_hurry: bool) -> None:
        self._wait(
            lambda: all(child.status is not None for child in children),
            within_s,
            even_in_a_hurry=even_in_a_hurry,
        )

    def _wait(
        self, done: Callable[[], bool], within_s: float, *, even_in_a_hurry: bool = False
    ) -> None:
        """Until `done`, or so long; listens for the word to hurry meanwhile."""
        until = time.monotonic() + within_s
        while True:
            self._reap()
            if done() or time.monotonic() >= until or (self._hurry and not even_in_a_hurry):
                return
            self._control.setblocking(False)
            with suppress(OSError):
                if b"stop" in self._control.recv(1 << 16):
                    self._hurry = True
            time.sleep(0.02)


def _spawn(request: dict[str, Any]) -> int:
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    keeper = os.getpid()

    def become_dependent() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != keeper:  # died a moment ago
                os._exit(1)

    # In Python the user changes before preexec_fn runs: the other way round the kernel would forget
    # what we asked for.
    as_user = {"user": request["user"], "extra_groups": []} if request["user"] else {}
    if request["group"]:
        as_user["group"] = request["group"]
    with open(request["log"], "ab") as log:  # noqa: PTH123
        return subprocess.Popen(
            request["command"],
            cwd=request["cwd"],
            env=request["environment"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=become_dependent,
            **as_user,
        ).pid


def _descendants(pid: int | None = None) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return [
            process
            for process in psutil.Process(pid).children(recursive=True)
            if _is_running(process)
        ]
    return []


def _alive(processes: list[psutil.Process]) -> bool:
    return any(_is_running(process) for process in processes)


def _is_running(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _signal_all(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.send_signal(number)


def main() -> None:
    """The socket's number is the only argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.setblocking(False)
    os.set_inheritable(control.fileno(), False)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    Keeper(control).run()


if __name__ == "__main__":
    main()
