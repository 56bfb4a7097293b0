"""The settings of our own Airflow: whole, private, and not mixed up with somebody else's."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from rig.embedded import chosen_port, connections
from rig.home import REPOSITORY, Airflow, own_environment
from rig.running import Options, options_of
from tidetable.core.errors import UserError


@pytest.fixture
def airflow(tmp_path: Path) -> Airflow:
    return Airflow(tmp_path / "home", tmp_path, 8080, connections(15002, "a token"))


def test_nothing_of_another_airflow_gets_in(
    airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "True")
    monkeypatch.setenv("AIRFLOW__CORE__REMOTE_TASK", "theirs")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "theirs")
    monkeypatch.setenv("SPARK_HOME", "/opt/another-spark")
    monkeypatch.setenv("PYTHONPATH", "/opt/elsewhere")
    monkeypatch.setenv("KEPT", "yes")
    found = airflow.environment()
    assert found["AIRFLOW_HOME"] == str(airflow.home)
    assert found["AIRFLOW__CORE__LOAD_EXAMPLES"] == "False"
    assert found["KEPT"] == "yes"
    assert "theirs" not in found.values()
    assert not {"SPARK_HOME", "PYTHONPATH"} & set(found)


def test_programs_find_ours_first(tmp_path: Path) -> None:
    found = own_environment(tmp_path)
    first = found["PATH"].split(":")[0]
    assert (Path(first) / "spark-submit").exists()
    assert found["PYSPARK_PYTHON"] == sys.executable
    assert found["TIDETABLE_HOME"] == str(tmp_path)


def test_no_proxy_stands_between_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    assert own_environment(tmp_path)["no_proxy"] == "example.org,127.0.0.1,localhost"


def test_it_listens_on_this_machine_only(airflow: Airflow) -> None:
    found = airflow.environment()
    assert found["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert found["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "False"
    assert found["TIDETABLE_ALLOWED_HOSTS"] == "127.0.0.1,localhost,::1"


def test_secrets_are_made_once_and_for_us_alone(airflow: Airflow) -> None:
    first, second = airflow.environment(), airflow.environment()
    secret = [name for name in first if name.endswith(("FERNET_KEY", "SECRET_KEY", "JWT_SECRET"))]
    assert len(secret) == 3
    assert len({first[name] for name in secret}) == 3
    assert first == second
    file = airflow.home / "secrets.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_login_has_a_password(tmp_path: Path) -> None:
    airflow = Airflow(tmp_path, tmp_path, 8080, {})
    found = airflow.environment()
    assert found["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "False"
    file = Path(found["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    assert json.loads(file.read_text()) == {"admin": airflow.password()}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(airflow.password()) >= 16


def test_connections_are_those_that_airflow_reads(airflow: Airflow) -> None:
    """`local[*]` in a URI would silently become yarn: it has to be JSON."""
    from airflow.sdk import Connection

    found = Connection.from_json(airflow.environment()["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert (found.conn_type, found.host) == ("spark", "local[*]")
    found = Connection.from_json(airflow.environment()["AIRFLOW_CONN_SPARK_CONNECT_DEFAULT"])
    assert (found.conn_type, found.host, found.port) == ("spark_connect", "sc://127.0.0.1", 15002)
    assert found.password == "a token"


def test_settings_are_ones_that_airflow_has(airflow: Airflow) -> None:
    """A misspelled name would be ignored without a word."""
    from airflow.configuration import conf

    unknown = []
    for name in airflow.environment():
        if name.startswith("AIRFLOW__"):
            _, section, option = name.split("__", 2)
            described = conf.configuration_description.get(section.lower(), {"options": {}})
            if option.lower() not in described["options"]:
                unknown.append(name)
    assert unknown == []


def test_the_database_is_migrated_once_for_each_version(airflow: Airflow) -> None:
    assert airflow.migration() is not None
    airflow.home.mkdir(exist_ok=True)
    airflow.note_migrated()
    assert airflow.migration() is None
    (airflow.home / "migrated").write_text("2.0.0")
    assert airflow.migration() is not None


def test_the_scheduler_stops_first_and_alone(airflow: Airflow) -> None:
    """A task that finishes meanwhile has to reach the server."""
    stages = {service.name: service.stage for service in airflow.services()}
    assert set(stages) == {"api-server", "scheduler", "dag-processor", "triggerer"}
    last = [name for name, stage in stages.items() if stage == max(stages.values())]
    assert last == ["scheduler"]
    assert stages["api-server"] == min(stages.values())


def test_dags_and_plugins_are_the_repositorys(airflow: Airflow) -> None:
    assert airflow.environment()["AIRFLOW__CORE__DAGS_FOLDER"] == str(REPOSITORY / "dags")
    assert (REPOSITORY / "dags" / "indexes.py").exists()


# -- what the caller chooses ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "arguments", "expected"),
    [
        ({}, [], Options()),
        ({"ONCE": "1", "PORT": "9000", "LIMIT": "5"}, [], Options(True, 9000, 300.0)),
        ({"ONCE": "", "PORT": "", "LIMIT": ""}, [], Options()),
        ({"ONCE": "0"}, [], Options()),
        ({}, ["--once", "--limit", "0.5"], Options(True, None, 30.0)),
    ],
)
def test_options(
    environment: dict[str, str],
    arguments: list[str],
    expected: Options,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ONCE", "PORT", "LIMIT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert options_of("x", "y", arguments) == expected


def test_a_port_that_was_asked_for_has_to_be_free() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"Port {port} is taken"):
            chosen_port(Options(port=port))
    assert chosen_port(Options(port=port)) == port
