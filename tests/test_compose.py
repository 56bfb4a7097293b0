"""docker-compose.yaml is what it should be, as far as that can be seen without Docker."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import shlex
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yaml"
DOCKERFILE = ROOT / "docker" / "Dockerfile"
SECRET = re.compile(r"PASSWORD|SECRET|KEY|TOKEN")


@cache
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE.read_text()))


SERVICES: dict[str, dict[str, Any]] = compose()["services"]


def example() -> dict[str, str]:
    """NAME -> value of .env.example."""
    lines = re.findall(r"^(\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    return dict(lines)


def variables() -> list[tuple[str, str]]:
    """Every ${NAME...} of the file, and what follows the name."""
    return re.findall(r"(?<!\$)\$\{(\w+)([^}]*)\}", COMPOSE.read_text())


def environments() -> list[tuple[str, str, str]]:
    return [
        (service, name, str(value))
        for service, about in SERVICES.items()
        for name, value in about.get("environment", {}).items()
    ]


def module(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_it_follows_the_compose_specification() -> None:
    checked = subprocess.run(
        [
            sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec",
            str(COMPOSE),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_all_parts_are_there() -> None:
    assert set(SERVICES) == {
        "postgres", "s3", "airflow-init", "api-server", "scheduler", "dag-processor", "triggerer",
        "spark-master", "spark-worker", "spark-connect",
    }  # fmt: skip


# -- secrets -------------------------------------------------------------------------------------


def test_every_variable_is_explained() -> None:
    assert {name for name, _ in variables()} == set(example())


def test_what_is_secret_has_no_default() -> None:
    """compose stops with a sentence instead of starting with a password that all know."""
    secret = {name for name, value in example().items() if value.startswith("<")}
    assert {name for name in example() if SECRET.search(name)} == secret
    for name, rest in variables():
        assert rest.startswith(":?" if name in secret else ":-"), name


@pytest.mark.parametrize(
    ("service", "name", "value"),
    [one for one in environments() if SECRET.search(one[1]) and "FILE" not in one[1]],
    ids=lambda part: part if len(part) < 40 else "...",
)
def test_no_secret_is_in_the_file(service: str, name: str, value: str) -> None:
    assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value)


def test_no_password_hides_in_a_url() -> None:
    for _, _, value in environments():
        for password in re.findall(r"://[^:/@\s]+:([^@/]+)@", value):
            assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", password)


def test_the_defaults_of_the_file_are_those_of_the_example() -> None:
    for name, rest in variables():
        if rest.startswith(":-"):
            assert rest[2:] == example()[name], name


def test_make_env_fills_in_secrets(tmp_path: Path) -> None:
    make_env = module("scripts/make_env.py")
    (tmp_path / ".env.example").write_text((ROOT / ".env.example").read_text())
    make_env.main(tmp_path)
    written = dict(re.findall(r"^(\w+)=(.*)$", (tmp_path / ".env").read_text(), re.MULTILINE))
    assert set(written) == set(example())
    made = {name: value for name, value in written.items() if example()[name].startswith("<")}
    assert len(set(made.values())) == len(made) > 0
    assert all(len(value) >= 32 and "<" not in value for value in made.values())
    assert len(base64.urlsafe_b64decode(written["AIRFLOW_FERNET_KEY"])) == 32
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600


def test_make_env_leaves_an_env_alone(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text("A=<password>\n")
    (tmp_path / ".env").write_text("A=mine\n")
    assert "stays as it is" in module("scripts/make_env.py").main(tmp_path)
    assert (tmp_path / ".env").read_text() == "A=mine\n"


def test_env_is_for_nobody_else() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "/.env" in ignored
    docker = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in docker
    assert not any(line.startswith("!.env") for line in docker)


# -- images --------------------------------------------------------------------------------------


def images() -> list[str]:
    base = re.findall(r"^FROM (\S+)", DOCKERFILE.read_text(), re.MULTILINE)
    return sorted({str(about["image"]) for about in SERVICES.values()} | set(base))


@pytest.mark.parametrize("image", images())
def test_images_are_pinned(image: str) -> None:
    _, _, tag = image.partition(":")
    assert re.search(r"\d+\.\d+", tag), f"{image} may be another one tomorrow"


def test_our_image_has_our_version() -> None:
    from tidetable import __version__

    ours = {image for image in images() if image.startswith("tidetable:")}
    assert ours == {f"tidetable:{__version__}"}
    for name, about in SERVICES.items():
        if str(about["image"]).startswith("tidetable:"):
            assert about["build"] == {"context": ".", "dockerfile": "docker/Dockerfile"}, name


def test_the_image_has_the_python_that_the_lock_was_made_for() -> None:
    wanted = re.search(r"--python-version (\S+)", (ROOT / "Makefile").read_text())
    assert wanted is not None
    assert f"FROM python:{wanted[1]}." in DOCKERFILE.read_text()


def copied() -> list[str]:
    lines = re.findall(r"^COPY (.+)$", DOCKERFILE.read_text(), re.MULTILINE)
    return [source for line in lines for source in shlex.split(line)[:-1]]


def test_the_dockerfile_copies_what_exists() -> None:
    assert "requirements.txt" in copied()
    assert [source for source in copied() if not (ROOT / source).exists()] == []


def test_what_is_copied_is_not_ignored() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    for source in copied():
        assert any(source == path or source.startswith(f"{path}/") for path in allowed), source


def test_nobody_is_root_in_our_image() -> None:
    assert re.findall(r"^USER (\S+)$", DOCKERFILE.read_text(), re.MULTILINE)[-1] == "tidetable"


# -- running it ----------------------------------------------------------------------------------


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_a_health_check(service: str) -> None:
    about = SERVICES[service]
    if service == "airflow-init":  # it ends: others wait for that
        assert about["restart"] == "no"
        return
    assert about["restart"] == "unless-stopped"
    assert set(about["healthcheck"]) == {"test", "interval", "timeout", "retries", "start_period"}


def test_services_wait_for_what_they_need() -> None:
    for name, about in SERVICES.items():
        for other, how in about.get("depends_on", {}).items():
            wanted = "completed_successfully" if other == "airflow-init" else "healthy"
            assert how == {"condition": f"service_{wanted}"}, (name, other)
    for name in ("api-server", "scheduler", "dag-processor", "triggerer"):
        assert {"postgres", "airflow-init"} <= set(SERVICES[name]["depends_on"])


def test_volumes_are_declared() -> None:
    used = {
        volume.split(":")[0] for about in SERVICES.values() for volume in about.get("volumes", [])
    }
    named = {volume for volume in used if not volume.startswith("./")}
    assert named == set(compose()["volumes"])
    assert [path for path in used - named if not (ROOT / path).exists()] == []


def test_everything_that_keeps_state_has_a_volume() -> None:
    for name in ("postgres", "s3"):
        assert SERVICES[name]["volumes"], name
    for name in ("scheduler", "spark-worker", "spark-connect", "api-server"):
        assert "tables:/opt/tidetable/.tidetable" in SERVICES[name]["volumes"], name


def test_only_what_has_a_login_is_published() -> None:
    """Spark's own pages have none, and who reaches its master runs anything."""
    assert [name for name, about in SERVICES.items() if about.get("ports")] == ["api-server"]


def test_spark_connect_wants_the_token_that_airflow_has() -> None:
    wanted = SERVICES["spark-connect"]["environment"]["SPARK_CONNECT_AUTHENTICATE_TOKEN"]
    known = SERVICES["scheduler"]["environment"]["AIRFLOW_CONN_SPARK_CONNECT_DEFAULT"]
    connection = json.loads(known)
    assert connection["password"] == wanted == "${SPARK_CONNECT_TOKEN:?run make env}"
    # In the network of the containers: PySpark would insist on TLS otherwise.
    assert connection["extra"] == {"use_ssl": False}


def test_airflow_answers_to_its_own_names_only() -> None:
    environment = SERVICES["api-server"]["environment"]
    names = environment["TIDETABLE_ALLOWED_HOSTS"].split(",")
    assert set(names) == {"localhost", "127.0.0.1", "api-server"}
    tasks = urlsplit(environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"]).hostname
    assert tasks in names
    assert urlsplit(module("docker/healthy.py").HEALTH).hostname in names


def test_only_this_machine_gets_in_unless_told_otherwise() -> None:
    ports = [port for about in SERVICES.values() for port in about.get("ports", [])]
    assert ports
    assert all(port.startswith("${BIND_ADDRESS:-127.0.0.1}:") for port in ports)


def test_workers_can_be_scaled() -> None:
    """A fixed name, host name or port of this machine could be had only once."""
    assert not {"container_name", "hostname", "ports"} & set(SERVICES["spark-worker"])


def test_commands_name_files_that_exist() -> None:
    words = [
        word
        for about in SERVICES.values()
        for part in (about.get("command", []), about.get("healthcheck", {}).get("test", []))
        for word in part
        if word.startswith("docker/")
    ]
    assert words
    assert [word for word in words if not (ROOT / word).is_file()] == []


def test_connections_are_the_ones_that_the_pipeline_asks_for() -> None:
    environment = SERVICES["scheduler"]["environment"]
    submit = json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert (submit["host"], submit["port"]) == ("spark://spark-master", 7077)
    assert "--port=7077" in SERVICES["spark-master"]["command"]
    connect = json.loads(environment["AIRFLOW_CONN_SPARK_CONNECT_DEFAULT"])
    assert connect["port"] == module("docker/spark_connect.py").PORT


def test_hadoop_aws_is_of_the_version_that_spark_brings() -> None:
    found = module("docker/fetch_s3_jars.py").hadoop_version()
    assert re.fullmatch(r"\d+\.\d+\.\d+", found)


@pytest.mark.slow  # imports Airflow
def test_settings_are_ones_that_airflow_has() -> None:
    """A misspelled name would be ignored without a word."""
    from airflow.configuration import conf

    for service, name, _ in environments():
        if name.startswith("AIRFLOW__"):
            _, section, option = name.lower().split("__", 2)
            known = conf.configuration_description.get(section, {"options": {}})["options"]
            assert option in known, (service, name)
