"""Airflow's database of `make cluster`: made once, found again, reached by password only."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from rig.postgres import DATABASE, NoPostgres, Postgres, find_programs
from rig.services import Services, free_port, listens

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def programs() -> Path:
    try:
        return find_programs()
    except NoPostgres as error:
        pytest.skip(str(error))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder that the server's user may not be able to enter: its data is elsewhere then."""
    yield tmp_path / "home"
    shutil.rmtree((tmp_path / "home" / "pg").resolve(), ignore_errors=True)


def test_it_keeps_what_was_written(tmp_path: Path, home: Path, programs: Path) -> None:
    """Two servers one after the other in the same folder, on different ports."""
    for run, port in enumerate((free_port(), free_port())):
        server = Postgres(home, port, programs)
        with Services(tmp_path / "logs") as services:
            services.start(server.service())
            services.wait_ready()
            server.make_database(services)
            with psycopg2.connect(server._dsn(DATABASE)) as connection:
                cursor = connection.cursor()
                if run == 0:
                    cursor.execute("CREATE TABLE t AS SELECT 42 AS n")
                else:
                    cursor.execute("SELECT n FROM t")
                    assert cursor.fetchall() == [(42,)]
            connection.close()
        assert not listens(port)
    log = (tmp_path / "logs" / "postgres.log").read_text()
    assert log.count("database system is shut down") == 2


def test_nobody_gets_in_without_the_password(tmp_path: Path, home: Path, programs: Path) -> None:
    server = Postgres(home, free_port(), programs)
    with Services(tmp_path / "logs") as services:
        services.start(server.service())
        services.wait_ready()
        wrong = server._dsn("postgres").replace(server._password(), "wrong")
        with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
            psycopg2.connect(wrong)
    assert (home / "postgres.password").stat().st_mode & 0o077 == 0


def test_root_does_not_run_it(home: Path, programs: Path) -> None:
    server = Postgres(home, free_port(), programs)
    assert (server.user is None) == (os.geteuid() != 0)
    if server.user is not None:
        assert server.service().user in ("postgres", "nobody")
        assert server.data.owner() == server.user
