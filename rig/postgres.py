"""A PostgreSQL server of our own for Airflow's metadata: in a folder, on 127.0.0.1, by password.

It needs the server's programs, which `scripts/postgres` finds or installs. PostgreSQL refuses to
run as root; then it runs as the user that its package has made, or as nobody.
"""

from __future__ import annotations

import os
import pwd
import secrets
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from rig.home import ADDRESS, REPOSITORY, own_environment, write_private
from rig.services import Service, Services
from tidetable.core.errors import TransientError, UserError

_FINDER = REPOSITORY / "scripts" / "postgres"
USER = DATABASE = "airflow"

_SETTINGS = {
    "listen_addresses": ADDRESS,
    "max_connections": "100",
    "shared_buffers": "64MB",
    # Airflow's memory of its runs: the tables themselves are kept by Delta.
    "synchronous_commit": "off",
    "logging_collector": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
}


class NoPostgres(UserError):
    """There is no PostgreSQL server on this machine, and we could not install one."""

    code = "no_postgres"


def find_programs() -> Path:
    """The folder with `postgres` and `initdb`; installs the package if we may."""
    found = subprocess.run(["bash", str(_FINDER)], capture_output=True, text=True, check=False)
    folder = Path(found.stdout.strip() or os.devnull)
    if found.returncode or not (folder / "postgres").exists():
        raise NoPostgres(found.stderr.strip() or f"{_FINDER} found no PostgreSQL server.")
    return folder


@dataclass(frozen=True)
class Postgres:
    """One server, in a folder of its own."""

    folder: Path
    port: int
    programs: Path

    @property
    def user(self) -> str | None:
        """As whom it runs; None: as ourselves."""
        if os.geteuid() != 0:
            return None
        names = {entry.pw_name for entry in pwd.getpwall()}
        return next((name for name in ("postgres", "nobody") if name in names), None)

    @property
    def data(self) -> Path:
        """Where its files are; a link leads there if that is outside our folder."""
        return (self.folder / "pg").resolve()

    @property
    def url(self) -> str:
        """For SQLAlchemy, with the password."""
        return f"postgresql+psycopg2://{USER}:{quote(self._password())}@{ADDRESS}:{self.port}/{DATABASE}"

    def service(self) -> Service:
        """The server itself; its folder is made if it is missing."""
        if not (self.data / "PG_VERSION").exists():
            self._make()
        command = [str(self.programs / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        # No socket in a folder that others share.
        for name, value in {**_SETTINGS, "unix_socket_directories": ""}.items():
            command += ["-c", f"{name}={value}"]
        return Service(
            "postgres", command, self._environment(), cwd=self.data, ready=self._answers, stage=0,
            # INT: at once but in order. TERM would wait until everybody has gone.
            stop_signal=signal.SIGINT, stop_within_s=15, user=self.user, group=self._group(),
        )  # fmt: skip

    def make_database(self, services: Services) -> None:
        """Airflow's database, if it is not there yet."""
        import psycopg2  # type: ignore[import-untyped]

        connection = psycopg2.connect(self._dsn("postgres"))
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
                if cursor.fetchone() is None:
                    cursor.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            connection.close()

    # --------------------------------------------------------------------------------------------

    def _make(self) -> None:
        self._make_folder()
        data, user = self.data, self.user
        data.chmod(0o700)
        if user is not None:
            entry = pwd.getpwnam(user)
            os.chown(data, entry.pw_uid, entry.pw_gid)
        with tempfile.NamedTemporaryFile("w", prefix="tidetable-") as password:
            password.write(self._password())
            password.flush()
            if user is not None:
                os.chown(password.name, entry.pw_uid, entry.pw_gid)
            command = [
                str(self.programs / "initdb"), "-D", str(data), "-U", USER, "-E", "UTF8",
                "--locale=C", "-A", "scram-sha-256", f"--pwfile={password.name}", "--no-sync",
            ]  # fmt: skip
            made = subprocess.run(
                command, env=self._environment(), cwd=data, capture_output=True, text=True,
                check=False, user=user, group=self._group(), extra_groups=[] if user else None,
            )  # fmt: skip
        if made.returncode:
            raise TransientError(
                f"initdb of PostgreSQL failed in {data}: {(made.stderr or made.stdout).strip()}"
            )

    def _make_folder(self) -> None:
        """A user who may not come into ours gets one elsewhere, and a link to it here."""
        wanted = self.folder / "pg"
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.user is None or _may_enter(self.user, self.folder):
            wanted.mkdir(exist_ok=True)
        elif not wanted.is_dir():
            wanted.unlink(missing_ok=True)  # a link to what somebody has removed
            wanted.symlink_to(tempfile.mkdtemp(prefix="tidetable-pg-"))

    def _group(self) -> int | None:
        return None if self.user is None else pwd.getpwnam(self.user).pw_gid

    def _environment(self) -> dict[str, str]:
        return {"PATH": own_environment(self.folder)["PATH"], "LC_ALL": "C", "PGTZ": "UTC"}

    def _password(self) -> str:
        file = self.folder / "postgres.password"
        if not file.exists():
            write_private(file, secrets.token_urlsafe(24))
        return file.read_text()

    def _dsn(self, database: str) -> str:
        return (
            f"host={ADDRESS} port={self.port} user={USER} password={self._password()} "
            f"dbname={database} connect_timeout=5"
        )

    def _answers(self) -> bool:
        import psycopg2  # type: ignore[import-untyped]

        try:
            psycopg2.connect(self._dsn("postgres")).close()
        except psycopg2.OperationalError:
            return False
        return True


def _may_enter(user: str, folder: Path) -> bool:
    """Whether the user may go through all folders on the way."""
    tried = subprocess.run(
        ["test", "-x", str(folder)], user=user, extra_groups=[], check=False,
        group=pwd.getpwnam(user).pw_gid, cwd="/",
    )  # fmt: skip
    return tried.returncode == 0
