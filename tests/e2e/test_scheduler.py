"""A real scheduler runs the indexes: caught up, stopped by a wrong table, mended, going on."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request

import psutil
import pytest
from deltalake import DeltaTable

from tests.e2e.conftest import MENDED_UNTIL, Running
from tests.steady import LAST, expected
from tests.workspace import at, read_table
from tidetable.table.log import open_log

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.e2e]


def test_eight_intervals_are_caught_up_and_the_table_equals_the_oracles(running: Running) -> None:
    def done() -> bool:
        states = list(running.runs("tidetable__things").values())
        assert "failed" not in states, running.task_states()
        return states.count("success") == LAST

    running.wait("all runs of things", done)
    assert running.project.ids() == expected(LAST)
    log = open_log(str(running.project.table))
    assert log is not None
    assert [note.slot for _, note in log.notes()] == list(range(LAST, -1, -1))
    found = running.get("assets/events?limit=100&order_by=-timestamp")["asset_events"]
    told = [one["extra"] for one in found if one["source_dag_id"] == "tidetable__things"]
    assert [one["slot"] for one in told] == list(range(LAST, 0, -1))
    assert told[0]["live"] == len(expected(LAST))


def test_a_wrong_table_stops_the_schedule_and_a_replay_lets_it_go_on(running: Running) -> None:
    dag_id = "tidetable__mended"

    def ids() -> list[int]:
        return sorted(one["id"] for one in read_table(running.index("mended").table))

    def successes() -> int:
        return list(running.runs(dag_id).values()).count("success")

    running.wait("the first runs of mended", lambda: successes() == MENDED_UNTIL)
    assert ids() == expected(MENDED_UNTIL)
    # A row is lost, and two more slots become due.
    DeltaTable(running.index("mended").table).delete(f"id = {expected(MENDED_UNTIL)[0]}")
    damaged = ids()
    yaml = running.project.indexes / "mended.yaml"
    yaml.write_text(re.sub(r"(?m)^end:.*", f"end: '{at(MENDED_UNTIL + 2).isoformat()}'",
                           yaml.read_text()))  # fmt: skip

    def waiting() -> bool:
        states = [running.tasks(dag_id, run_id) for run_id in running.runs(dag_id)]
        plans = [one.get("plan") for one in states]
        return "failed" in plans and "up_for_reschedule" in plans

    running.wait("one run that failed and one that waits", waiting)
    assert ids() == damaged

    replay = "tidetable__mended-by-hand"
    run_id = running.trigger(replay, action="replay", from_slot=MENDED_UNTIL)
    running.wait("the replay", lambda: running.runs(replay)[run_id] == "success")
    running.wait("the run that waited", lambda: successes() == MENDED_UNTIL + 1)
    assert ids() == expected(MENDED_UNTIL + 2)


def test_only_who_is_let_in_gets_in(running: Running) -> None:
    """A stranger's page that points its name here, somebody without a token, with a wrong one."""

    def asked(path: str, **headers: str) -> int:
        request = urllib.request.Request(f"{running.airflow.url}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    token = {"Authorization": f"Bearer {running.api.token()}"}
    assert asked("/api/v2/dags", **token) == 200
    assert asked("/api/v2/dags") == 401
    assert asked("/api/v2/dags", Authorization="Bearer e30.e30.e30") in (401, 403)
    assert asked("/auth/token") == 403
    for path in ("/auth/token", "/api/v2/dags", "/tidetable/", "/execution/health"):
        assert asked(path, Host="evil.example", **token) == 421
    assert asked("/tidetable-login/?key=guessed") == 403
    link = running.airflow.login_link()
    assert asked(link.removeprefix(running.airflow.url), Host="evil.example") == 421
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(link) as page:
        assert page.url == f"{running.airflow.url}/tidetable/"
    assert asked(link.removeprefix(running.airflow.url)) == 403


def test_spark_connect_lets_nobody_in_without_its_token(running: Running) -> None:
    """Whoever gets in can run anything. The token is in no command line and in no log."""
    port = running.airflow.connections["spark_connect_default"]["port"]
    token = str(running.airflow.connections["spark_connect_default"]["password"])
    for remote in (f"sc://127.0.0.1:{port}", f"sc://127.0.0.1:{port}/;token=wrong"):
        program = (
            "from tidetable.core.errors import UserError\n"
            "from tidetable.engine.session import connect_session\n"
            f"try: connect_session({remote!r}).sql('SELECT 1').collect()\n"
            "except UserError as error: print(error)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert "wants a token" in done.stdout, done.stdout + done.stderr
    commands = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert any(f"binding.port={port}" in command for command in commands)
    assert not [command for command in commands if token in command]
    for folder in ("services", ".airflow/logs"):
        for file in (running.project.folder / folder).rglob("*.log"):
            assert token not in file.read_text(errors="replace"), file
