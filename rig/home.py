"""An Airflow of our own: its folder, secrets and settings, and the programs that make it.

Settings go by environment variables, so `airflow.cfg` says nothing that counts, and nothing of
somebody's own Airflow on the same machine gets in.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from rig.services import Service, answers, listens

REPOSITORY = Path(__file__).resolve().parents[1]

ADDRESS = "127.0.0.1"
"""Nothing that is started here can be reached from another machine."""

# What a shell may hold and what would change which Airflow, Python or Spark is run.
_FOREIGN = ("AIRFLOW", "PYTHON", "SPARK_", "PYSPARK_", "HADOOP_", "_AIRFLOW", "GUNICORN")
_FOREIGN_NAMES = {"VIRTUAL_ENV", "COLUMNS", "LINES"}

_SCHEDULER_STOPS_WITHIN_S = 40.0
"""The scheduler lets the tasks that run come to their end; an update takes some seconds."""


@dataclass(frozen=True)
class Airflow:
    """One Airflow, as it is started on this machine."""

    home: Path
    project: Path
    """Whose indexes it runs (TIDETABLE_HOME)."""

    port: int
    connections: Mapping[str, Mapping[str, object]]
    """By connection id."""

    database: str | None = None
    """A URL of SQLAlchemy; None for SQLite in `home`."""

    dags: Path = REPOSITORY / "dags"
    plugins: Path = REPOSITORY / "plugins"
    parallel: int = 3
    """Tasks that run at once."""

    more: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables, for tasks too."""

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}"

    @property
    def logs(self) -> Path:
        """What the tasks print."""
        return self.home / "logs"

    @property
    def passwords(self) -> Path:
        return self.home / "passwords.json"

    def password(self, user: str = "admin") -> str:
        """The generated password; generated now, if there is none."""
        if self.passwords.exists():
            return str(json.loads(self.passwords.read_text())[user])
        made = {user: secrets.token_urlsafe(12)}
        write_private(self.passwords, json.dumps(made))
        return made[user]

    def login_link(self) -> str:
        """A new link that logs in once; an older one no longer works.

        The key is in a file that the route of the plugin (spark/tidetable/page/login_link.py)
        takes away with the first request that has it.
        """
        key = secrets.token_urlsafe(32)
        write_private(self._login_key, key)
        return f"{self.url}/tidetable-login/?key={key}"

    @property
    def _login_key(self) -> Path:
        return self.home / "login-key"

    def environment(self) -> dict[str, str]:
        """All that the programs of this Airflow, and its tasks, get to see."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.password()
        settings = {
            "CORE__DAGS_FOLDER": str(self.dags),
            "CORE__PLUGINS_FOLDER": str(self.plugins),
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "CORE__EXECUTOR": "tidetable.pipeline.executor.WarmLocalExecutor",
            "CORE__PARALLELISM": str(self.parallel),
            # Tasks are forked from a process that has Airflow loaded already.
            "CORE__MP_START_METHOD": "fork",
            "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
            "CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.passwords),
            "API__HOST": ADDRESS,
            "API__PORT": str(self.port),
            "API__BASE_URL": self.url,
            "API__WORKERS": "1",
            "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
            "DAG_PROCESSOR__REFRESH_INTERVAL": "30",
            "DAG_PROCESSOR__PARSING_PROCESSES": "1",
            # What a killed scheduler left is taken up again soon, not after five minutes.
            "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "20",
            "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
            "LOGGING__BASE_LOG_FOLDER": str(self.logs),
            "LOGGING__COLORED_CONSOLE_LOG": "False",
            **_secrets(self.home / "secrets.json"),
        }
        if self.database is not None:
            settings["DATABASE__SQL_ALCHEMY_CONN"] = self.database
        return {
            **own_environment(self.project),
            "AIRFLOW_HOME": str(self.home),
            "TIDETABLE_ALLOWED_HOSTS": f"{ADDRESS},localhost,::1",
            "TIDETABLE_LOGIN_LINK": str(self._login_key),
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
            **{
                f"AIRFLOW_CONN_{name.upper()}": json.dumps(connection)
                for name, connection in self.connections.items()
            },
            **self.more,
        }

    # -- its programs ----------------------------------------------------------------------------

    def migration(self) -> Service | None:
        """Makes or upgrades the metadata database; None if this version has done so here."""
        if self._migrated().exists() and self._migrated().read_text() == version("apache-airflow"):
            return None
        return self._program("airflow-migrate", "db", "migrate", ready_within_s=300)

    def has_database(self) -> bool:
        """Whether an earlier start has made one, so that it may remember runs."""
        return self._migrated().exists()

    def note_migrated(self) -> None:
        self._migrated().write_text(version("apache-airflow"))

    def _migrated(self) -> Path:
        return self.home / "migrated"

    def services(self) -> list[Service]:
        """In the order in which to start them. The scheduler is stopped first, and alone: the tasks
        that run then still find the server they report to."""
        return [
            self._program("api-server", "api-server", stage=2, stop_within_s=4, alive=self._serves),
            self._program("dag-processor", "dag-processor", stage=3, alive=self._is_healthy),
            self._program("scheduler", "scheduler", "--skip-serve-logs", stage=4,
                          stop_within_s=_SCHEDULER_STOPS_WITHIN_S, alive=self._is_healthy),
            self._program("triggerer", "triggerer", "--skip-serve-logs", stage=3, stop_within_s=3,
                          alive=self._is_healthy),
        ]  # fmt: skip

    def _program(
        self,
        name: str,
        *arguments: str,
        stage: int = 1,
        ready_within_s: float = 180,
        stop_within_s: float = 10,
        alive: object = None,
    ) -> Service:
        ready = None if alive is None else lambda: bool(alive(name))  # type: ignore[operator]
        return Service(
            name,
            [sys.executable, "-m", "airflow", *arguments],
            self.environment(),
            cwd=self.project,
            ready=ready,
            ready_within_s=ready_within_s,
            stage=stage,
            stop_within_s=stop_within_s,
        )

    def _serves(self, name: str) -> bool:
        return listens(self.port) and answers(f"{self.url}/api/v2/monitor/health")

    def _is_healthy(self, name: str) -> bool:
        part = name.replace("-", "_")
        return answers(
            f"{self.url}/api/v2/monitor/health",
            lambda found: found.get(part, {}).get("status") == "healthy",
        )


def own_environment(project: Path) -> dict[str, str]:
    """Ours less what belongs to another Airflow, Python or Spark, and what our programs need."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN) and name not in _FOREIGN_NAMES
    }
    programs = Path(sys.executable).parent  # spark-submit is looked for on the PATH only
    java = Path(sys.prefix) / "java"
    if "JAVA_HOME" not in kept and java.exists():
        kept["JAVA_HOME"] = str(java)
    local = f"{ADDRESS},localhost"
    proxied = [kept[name] for name in ("NO_PROXY", "no_proxy") if kept.get(name)]
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": ADDRESS,
        "TIDETABLE_HOME": str(project),
        "GX_ANALYTICS_ENABLED": "false",
        **dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join([*proxied[:1], local])),
    }


def _secrets(file: Path) -> dict[str, str]:
    """Keys of this Airflow, made once; nobody else may read them."""
    if not file.exists():
        made = {
            "CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "API__SECRET_KEY": secrets.token_urlsafe(32),
            "API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
        }
        write_private(file, json.dumps(made, indent=1))
    return dict(json.loads(file.read_text()))


def write_private(file: Path, text: str) -> None:
    """Readable by us alone from the first moment on, and never half written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(text)
    unfinished.replace(file)
