"""The programs that make a pipeline: started, watched, and stopped without leaving one behind.

    with Services(logs) as services:
        services.start(Service("scheduler", [...], ready=...))
        services.wait_ready()
        ...

Each service runs in a session of its own with its output in a file. Leaving the block stops all of
them, the last stage first. A process of its own (`keeper.py`) is their parent, so they are stopped
as well if this one is killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

from tidetable.core.errors import TransientError

_KEEPER = Path(__file__).with_name("keeper.py")
_ANSWER_WITHIN_S = 20.0
_POLL_S = 0.1
_TAIL_LINES = 25

Told = Callable[[str, str], None]
"""Called with what happens ("stopping", "stopped", "killing") and the name of the service."""


class ServiceError(TransientError):
    """A service did not start, or ended when it should not have."""

    code = "service_failed"


class Stopped(BaseException):
    """TERM or HUP has arrived. Like KeyboardInterrupt, no handler of errors should catch it."""


@dataclass(frozen=True)
class Service:
    """One program, and how to tell that it is up."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: Path | None = None
    ready: Callable[[], bool] | None = None
    """True once it serves; None: it is up when it runs."""

    ready_within_s: float = 120.0
    stage: int = 0
    """Services are stopped stage by stage, the highest first; those of one stage together."""

    stop_signal: int = signal.SIGTERM
    stop_within_s: float = 10.0
    """How long it may take to end by itself; then it and its children are killed."""

    user: str | None = None
    group: int | None = None

    may_end: bool = False
    """Nobody needs it for long: when it ends, in whatever way, the others go on."""


class Services:
    """The services of one run. Not for use by several threads."""

    def __init__(self, logs: Path, told: Told | None = None) -> None:
        self._logs = logs
        self._told = told or (lambda event, name: None)
        self._services: dict[str, Service] = {}
        self._began: dict[str, int] = {}
        self._pids: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self._up: set[str] = set()
        self._received = b""
        self._keeper: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def __enter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        ours, theirs = socket.socketpair()
        with theirs:
            self._keeper = subprocess.Popen(
                # -I: nothing in the environment or the current folder changes what it imports.
                [sys.executable, "-I", str(_KEEPER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C reaches us alone
            )
        ours.settimeout(_POLL_S)
        self._control = ours
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- starting --------------------------------------------------------------------------------

    def start(self, service: Service) -> int:
        """Starts the program, without waiting until it is ready; returns the process id."""
        log = self.log(service.name)
        self._services[service.name] = service
        self._began[service.name] = log.stat().st_size if log.exists() else 0
        self._ended.pop(service.name, None)
        self._send(
            {
                "do": "start",
                "name": service.name,
                "command": [str(word) for word in service.command],
                "environment": dict(service.environment),
                "cwd": None if service.cwd is None else str(service.cwd),
                "log": str(log),
                "stage": service.stage,
                "stop_signal": int(service.stop_signal),
                "stop_within_s": service.stop_within_s,
                "user": service.user,
                "group": service.group,
            }
        )
        until = time.monotonic() + _ANSWER_WITHIN_S
        while service.name not in self._pids and service.name not in self._refused:
            if time.monotonic() > until:
                raise ServiceError(f"{service.name} was not started within {_ANSWER_WITHIN_S} s.")
            self._listen()
        if why := self._refused.pop(service.name, None):
            raise ServiceError(f"{service.name} cannot be started: {why}.")
        return self._pids[service.name]

    def run(self, service: Service) -> None:
        """Starts a program that ends by itself, and waits for that."""
        self.start(service)
        until = time.monotonic() + service.ready_within_s
        while service.name not in self._ended:
            self._listen()
            if time.monotonic() > until:
                raise self._failure(
                    service.name, f"has not ended within {service.ready_within_s:.0f} s"
                )
        if status := self._ended[service.name]:
            raise self._failure(service.name, f"has failed ({_ending(status)})")
        self._forget(service.name)

    def wait_ready(self, *names: str) -> None:
        """Until these services serve, or all that were started; fails if one ends meanwhile."""
        began = time.monotonic()
        waiting = [name for name in (names or tuple(self._services)) if name not in self._up]
        while waiting:
            self.check()
            for name in list(waiting):
                service = self._services[name]
                if service.ready is None or service.ready():
                    self._up.add(name)
                    waiting.remove(name)
                elif time.monotonic() - began > service.ready_within_s:
                    raise self._failure(
                        name, f"is not ready after {service.ready_within_s:.0f} seconds"
                    )
            if waiting:
                self._listen()

    def check(self) -> None:
        """Raises if a service has ended that should run."""
        self._listen(wait=False)
        for name, status in self._ended.items():
            if self._services[name].may_end:
                continue
            raise self._failure(name, f"has ended unexpectedly ({_ending(status)})")

    def sleep(self, seconds: float) -> None:
        """Waits, and raises as soon as a service ends that should run."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(_POLL_S, left))

    # -- stopping --------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stops all services; a second Ctrl-C meanwhile kills them at once."""
        if self._keeper is None or self._control is None:
            return
        with _interruptions_counted() as interrupted:
            with suppress(ServiceError):
                self._send({"do": "stop"})
            hurried = False
            while self._keeper.poll() is None:
                with suppress(ServiceError):
                    self._listen()
                if interrupted() and not hurried:
                    hurried = True
                    with suppress(ServiceError):
                        self._send({"do": "stop"})
        with suppress(ServiceError):
            self._listen(wait=False)
        self._control.close()
        if self._keeper.returncode:  # it was killed: the kernel has told the services to end
            self._kill_groups()
        self._keeper = None
        self._control = None

    def _kill_groups(self) -> None:
        """What we can do ourselves without the keeper."""
        for number, patience_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 0.0)):
            until = time.monotonic() + patience_s
            for pid in self._pids.values():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, number)
            while time.monotonic() < until and any(map(_group_lives, self._pids.values())):
                time.sleep(_POLL_S)

    # -- what is known of them -------------------------------------------------------------------

    def log(self, name: str) -> Path:
        """The file that takes what the service prints."""
        return self._logs / f"{name}.log"

    def pid(self, name: str) -> int:
        return self._pids[name]

    def tail(self, name: str, lines: int = _TAIL_LINES) -> str:
        """The last lines that the service has printed since it was started."""
        try:
            with self.log(name).open("rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(self._began.get(name, 0), end - 64 * 1024))
                text = file.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.rstrip().splitlines()[-lines:])

    def _failure(self, name: str, what: str) -> ServiceError:
        said = self.tail(name)
        where = f"The end of {self.log(name)}:\n{said}" if said else f"{self.log(name)} is empty."
        return ServiceError(f"{name} {what}. {where}")

    def _forget(self, name: str) -> None:
        for known in (self._services, self._ended, self._pids):
            known.pop(name, None)  # type: ignore[attr-defined]

    # -- the keeper ------------------------------------------------------------------------------

    def _send(self, request: dict[str, Any]) -> None:
        if self._control is None:
            raise ServiceError("The services have been stopped already.")
        try:
            self._control.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise self._keeper_gone() from error

    def _listen(self, *, wait: bool = True) -> None:
        """Takes in what the keeper has said; waits a moment for it unless told otherwise."""
        if self._control is None:
            raise ServiceError("The services have been stopped already.")
        self._control.settimeout(_POLL_S if wait else 0.0)
        try:
            got = self._control.recv(1 << 16)
        except (TimeoutError, BlockingIOError):
            return
        except OSError:
            got = b""
        if not got:
            if wait:
                time.sleep(_POLL_S)
            raise self._keeper_gone()
        *lines, self._received = (self._received + got).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        match message:
            case {"started": name, "pid": pid}:
                self._pids[name] = pid
            case {"refused": name, "why": why}:
                self._refused[name] = why
            case {"ended": name, "status": status}:
                self._ended[name] = status
            case {"stopping": name}:
                self._told("stopping", name)
            case {"killing": name}:
                self._told("killing", name)
            case {"stopped": name}:
                self._told("stopped", name)

    def _keeper_gone(self) -> ServiceError:
        return ServiceError(
            "The process that keeps the services has ended, and so they end too. Start again; if "
            f"it happens again, the files in {self._logs} may say why."
        )


# -- signals ---------------------------------------------------------------------------------------


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """TERM and HUP raise `Stopped` inside the block, so that `with` blocks stop what they hold."""

    def raise_stopped(number: int, _: FrameType | None) -> None:
        raise Stopped(signal.Signals(number).name)

    with _handlers({signal.SIGTERM: raise_stopped, signal.SIGHUP: raise_stopped}):
        yield


@contextmanager
def _interruptions_counted() -> Iterator[Callable[[], int]]:
    """Signals do not break off what goes on inside the block; they are counted."""
    count = 0

    def note(number: int, _: FrameType | None) -> None:
        nonlocal count
        count += 1

    with _handlers(dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), note)):
        yield lambda: count


@contextmanager
def _handlers(wanted: Mapping[int, Callable[[int, FrameType | None], None]]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # Python allows it there only
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- is it up? -------------------------------------------------------------------------------------


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Whether somebody accepts connections there."""
    with suppress(OSError), socket.create_connection((host, port), timeout=1.0):
        return True
    return False


def answers(url: str, wanted: Callable[[Any], bool] = lambda found: True) -> bool:
    """Whether the address answers with JSON that is as wanted."""
    try:
        with urllib.request.urlopen(url, timeout=5.0) as response:
            return wanted(json.load(response))
    except (OSError, ValueError, urllib.error.URLError):
        return False


def free_port(preferred: int | None = None) -> int:
    """The preferred port of 127.0.0.1 if nobody has it, else any free one."""
    for port in (preferred, 0) if preferred else (0,):
        with socket.socket() as probe:
            # As servers do: what a stopped one has left in TIME_WAIT is no hindrance.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ServiceError("There is no free port on 127.0.0.1.")


def _group_lives(group: int) -> bool:
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


def _ending(status: int) -> str:
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"
