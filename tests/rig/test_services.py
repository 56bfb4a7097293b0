"""Services are started, watched and stopped, and none is left, whoever is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from rig.services import (
    Service,
    ServiceError,
    Services,
    answers,
    free_port,
    listens,
    stopping_on_signals,
)

SERVER = "import http.server as h, sys; h.test(h.SimpleHTTPRequestHandler, port=int(sys.argv[1]))"

# Says who it is, starts a child in a session of its own (as daemons do), ignores TERM if told so.
FAMILY = """
import os, signal, subprocess, sys, time
folder, stubborn = sys.argv[1], len(sys.argv) > 2
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleep, start_new_session=True)
for pid in (os.getpid(), child.pid):
    open(os.path.join(folder, f"{pid}.pid"), "w").close()
open(os.path.join(folder, f"{os.getpid()}.ready"), "w").close()
time.sleep(600)
"""


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-u", "-c", textwrap.dedent(code), *map(str, arguments)]


def until(done: Callable[[], bool], within_s: float = 20.0) -> bool:
    end = time.monotonic() + within_s
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def family(folder: Path) -> list[int]:
    return [int(file.stem) for file in folder.glob("*.pid")]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the processes of a test leave their numbers; none may outlive it."""
    here = tmp_path / "family"
    here.mkdir()
    yield here
    for pid in family(here):
        if lives(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_service_serves_and_is_gone_afterwards(tmp_path: Path) -> None:
    port = free_port()
    with Services(tmp_path) as services:
        server = Service("server", python(SERVER, port), ready=lambda: listens(port))
        pid = services.start(server)
        services.wait_ready()
        assert listens(port)
        assert os.getsid(pid) == pid != os.getsid(0)
    assert not listens(port)
    assert not lives(pid)


def test_what_it_prints_is_in_its_log(tmp_path: Path) -> None:
    with Services(tmp_path) as services:
        services.run(Service("talker", python("print('here I am')")))
        assert services.log("talker").read_text() == "here I am\n"


def test_the_environment_is_the_given_one(tmp_path: Path) -> None:
    with Services(tmp_path) as services:
        code = "import os; print(sorted(os.environ))"
        services.run(Service("talker", [sys.executable, "-I", "-c", code], {"ONLY": "this"}))
    assert "'ONLY'" in (tmp_path / "talker.log").read_text()
    assert "PATH" not in (tmp_path / "talker.log").read_text()


def test_a_program_that_fails_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    code = "for n in range(100): print('line', n)\nraise SystemExit(3)"
    with (
        Services(tmp_path) as services,
        pytest.raises(ServiceError, match=r"migrate has failed \(exit status 3\)") as raised,
    ):
        services.run(Service("migrate", python(code)))
    assert "line 99" in str(raised.value)
    assert "line 10\n" not in str(raised.value)


def test_only_what_this_start_printed_is_told(tmp_path: Path) -> None:
    (tmp_path / "migrate.log").write_text("of an earlier run\n")
    with Services(tmp_path) as services, pytest.raises(ServiceError) as raised:
        services.run(Service("migrate", python("raise SystemExit('of this run')")))
    assert "of this run" in str(raised.value)
    assert "of an earlier run" not in str(raised.value)


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    with Services(tmp_path) as services, pytest.raises(ServiceError, match="cannot be started"):
        services.start(Service("nothing", ["/nonexistent/program"]))


def test_a_service_that_ends_while_we_wait(tmp_path: Path) -> None:
    with Services(tmp_path) as services:
        services.start(Service("short", python("print('too bad')"), ready=lambda: False))
        with pytest.raises(ServiceError, match=r"short has ended unexpectedly(.|\n)*too bad"):
            services.wait_ready()


def test_a_service_that_is_killed_later(tmp_path: Path) -> None:
    with Services(tmp_path) as services:
        pid = services.start(Service("sleeper", python("import time; time.sleep(600)")))
        services.wait_ready()
        services.check()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ServiceError, match=r"sleeper has ended unexpectedly.*SIGKILL"):
            services.sleep(10)


@pytest.mark.parametrize("status", [0, 3])
def test_one_that_may_end_takes_nobody_along(tmp_path: Path, status: int) -> None:
    with Services(tmp_path) as services:
        pid = services.start(Service("sleeper", python("import time; time.sleep(600)")))
        passing = services.start(
            Service("passing", python(f"raise SystemExit({status})"), may_end=True)
        )
        services.wait_ready()
        assert until(lambda: not lives(passing))
        services.sleep(0.5)
        assert lives(pid)


def test_a_service_that_never_gets_ready(tmp_path: Path) -> None:
    with Services(tmp_path) as services:
        command = python("import time; time.sleep(600)")
        services.start(Service("lazy", command, ready=lambda: False, ready_within_s=0.3))
        with pytest.raises(ServiceError, match="lazy is not ready"):
            services.wait_ready()


def test_stages_end_in_reverse_order(tmp_path: Path) -> None:
    """The last stage has gone before the one below is told; the first in a stage waits for none."""
    code = """
    import signal, sys, time
    def end(*_):
        time.sleep(0.3)
        print("ended", time.monotonic(), flush=True)
        sys.exit()
    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    time.sleep(600)
    """
    told: list[tuple[str, str]] = []
    with Services(tmp_path, told=lambda *event: told.append(event)) as services:
        for stage, name in enumerate(("database", "server", "scheduler")):
            log = services.log(name)
            services.start(
                Service(
                    name,
                    python(code),
                    stage=stage,
                    ready=lambda log=log: "ready" in log.read_text(),
                )
            )
        services.wait_ready()
    ended = {name: float((tmp_path / f"{name}.log").read_text().split()[-1]) for name in
             ("database", "server", "scheduler")}  # fmt: skip
    assert ended["scheduler"] < ended["server"] < ended["database"]
    assert [name for event, name in told if event == "stopped"] == [
        "scheduler", "server", "database",
    ]  # fmt: skip


def start_family(services: Services, folder: Path, *, stubborn: bool, patience_s: float) -> None:
    services.start(
        Service(
            "family", python(FAMILY, folder, *(["stubborn"] if stubborn else [])),
            ready=lambda: any(folder.glob("*.ready")), stop_within_s=patience_s,
        )
    )  # fmt: skip
    services.wait_ready()


@pytest.mark.parametrize("stubborn", [False, True])
def test_children_of_services_end_too(tmp_path: Path, folder: Path, stubborn: bool) -> None:
    """Also those that have left their group, and those of a service that ignores TERM."""
    with Services(tmp_path) as services:
        start_family(services, folder, stubborn=stubborn, patience_s=0.5)
        assert [lives(pid) for pid in family(folder)] == [True, True]
    assert [lives(pid) for pid in family(folder)] == [False, False]


def test_a_failure_during_the_start_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    def start() -> None:
        with Services(tmp_path) as services:
            start_family(services, folder, stubborn=False, patience_s=1)
            services.start(Service("second", python("raise SystemExit(1)"), ready=lambda: False))
            services.wait_ready()

    with pytest.raises(ServiceError, match="second"):
        start()
    assert [lives(pid) for pid in family(folder)] == [False, False]


PARENT = """
import sys, time
from pathlib import Path
from rig.services import Service, Services, Stopped, stopping_on_signals
folder, patience_s = Path(sys.argv[1]), float(sys.argv[2])
family = [sys.executable, "-c", sys.argv[3], str(folder), *sys.argv[4:]]
try:
    with stopping_on_signals(), Services(folder / "logs") as services:
        services.start(Service("family", family, ready=lambda: any(folder.glob("*.ready")),
                               stop_within_s=patience_s))
        services.wait_ready()
        print(services._keeper.pid, flush=True)
        services.sleep(600)
except (KeyboardInterrupt, Stopped):
    print("stopped", flush=True)
    sys.exit(5)
"""


def start_parent(folder: Path, patience_s: float, *more: str) -> tuple[subprocess.Popen[str], int]:
    """A process that keeps a family as a service; and the process id of its keeper."""
    parent = subprocess.Popen(
        python(PARENT, folder, patience_s, FAMILY, *more),
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_everything(folder: Path, number: signal.Signals) -> None:
    parent, keeper = start_parent(folder, 5)
    assert [lives(pid) for pid in [keeper, *family(folder)]] == [True] * 3
    parent.send_signal(number)
    printed, _ = parent.communicate(timeout=20)
    assert (printed, parent.returncode) == ("stopped\n", 5)
    assert [lives(pid) for pid in [keeper, *family(folder)]] == [False] * 3


def test_ctrl_c_at_a_terminal_reaches_the_parent_alone(folder: Path) -> None:
    """The terminal signals the whole group: the keeper and the services are not in it."""
    parent, keeper = start_parent(folder, 5)
    assert os.getpgid(keeper) != os.getpgid(parent.pid)
    assert all(os.getpgid(pid) != os.getpgid(parent.pid) for pid in family(folder))
    os.killpg(parent.pid, signal.SIGINT)
    printed, _ = parent.communicate(timeout=20)
    assert printed == "stopped\n"
    assert [lives(pid) for pid in [keeper, *family(folder)]] == [False] * 3


@pytest.mark.parametrize("more", [(), ("stubborn",)])
def test_a_killed_parent_leaves_no_orphan(folder: Path, more: tuple[str, ...]) -> None:
    parent, keeper = start_parent(folder, 0.5, *more)
    parent.kill()
    parent.wait()
    assert until(lambda: not any(lives(pid) for pid in [keeper, *family(folder)]))


def test_a_killed_keeper_takes_the_services_along(folder: Path) -> None:
    """What a service has put into another session is then out of our sight; the service is not."""
    parent, keeper = start_parent(folder, 5)
    os.kill(keeper, signal.SIGKILL)
    parent.wait(timeout=20)
    leader = next(int(file.stem) for file in folder.glob("*.ready"))
    assert until(lambda: not lives(leader))


def test_a_second_signal_does_not_wait(folder: Path) -> None:
    parent, keeper = start_parent(folder, 300, "stubborn")
    parent.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert [lives(pid) for pid in [keeper, *family(folder)]] == [True] * 3
    parent.send_signal(signal.SIGINT)
    parent.communicate(timeout=20)
    assert [lives(pid) for pid in [keeper, *family(folder)]] == [False] * 3


def test_stopping_twice_is_no_mistake(tmp_path: Path) -> None:
    with Services(tmp_path) as services:
        services.stop()
        with pytest.raises(ServiceError, match="stopped already"):
            services.start(Service("late", python("pass")))


def test_signals_are_as_before_outside_the_block() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopping_on_signals():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_port_that_is_taken_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert listens(port)
        assert free_port(port) != port
    assert free_port(port) == port


def test_an_address_that_does_not_answer() -> None:
    assert not answers(f"http://127.0.0.1:{free_port()}/")
