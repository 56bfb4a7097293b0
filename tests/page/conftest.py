"""Airflow's own API server with the plugin in it, over a project of handmade tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.page.pages import Project, full_project

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.testclient import TestClient

ROOT = Path(__file__).resolve().parents[2]
HOST = "testserver"
"""As Starlette's client calls the server."""


@pytest.fixture(scope="package")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """For reading only."""
    return full_project(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="package")
def login_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with the key of the link that logs in once."""
    return tmp_path_factory.mktemp("login") / "login-key"


@pytest.fixture(scope="package")
def server(project: Project, login_key: Path) -> Iterator[FastAPI]:
    """The application that `airflow api-server` serves, with our plugin found by Airflow itself."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDETABLE_HOME", str(project.folder))
        patched.setenv("TIDETABLE_ALLOWED_HOSTS", HOST)
        patched.setenv("TIDETABLE_LOGIN_LINK", str(login_key))
        manager = "tests.page.people.LimitedAuthManager"
        patched.setenv("AIRFLOW__CORE__AUTH_MANAGER", manager)
        patched.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "False")
        patched.setenv(
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "anna:viewer,limited:viewer,norun:viewer"
        )
        patched.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "of these tests, and long enough " * 3)

        from airflow import plugins_manager, settings
        from airflow.api_fastapi import app as airflow_app
        from airflow.models import import_all_models
        from airflow.models.base import Base

        # Other tests in this process may have started Airflow with other settings.
        patched.setattr(settings, "PLUGINS_FOLDER", str(ROOT / "plugins"))
        patched.syspath_prepend(str(ROOT / "plugins"))
        plugins_manager._get_plugins.cache_clear()
        plugins_manager.get_fastapi_plugins.cache_clear()
        airflow_app.purge_cached_app()
        import_all_models()
        Base.metadata.create_all(settings.engine)
        yield airflow_app.create_app(apps="core")
        plugins_manager._get_plugins.cache_clear()
        plugins_manager.get_fastapi_plugins.cache_clear()
        airflow_app.purge_cached_app()


@pytest.fixture
def anonymous(server: FastAPI) -> TestClient:
    from starlette.testclient import TestClient

    return TestClient(server, raise_server_exceptions=False)


@pytest.fixture
def anna(server: FastAPI) -> TestClient:
    """Somebody who may read every DAG, with the cookie that the UI has."""
    return _logged_in(server, "EVERYBODY")


@pytest.fixture
def limited(server: FastAPI) -> TestClient:
    """Somebody who may read the DAG of `things` and no other."""
    return _logged_in(server, "LIMITED")


@pytest.fixture
def without_runs(server: FastAPI) -> TestClient:
    """Somebody who may read every DAG, and neither its runs nor its tasks."""
    return _logged_in(server, "WITHOUT_RUNS")


def _logged_in(server: FastAPI, person: str) -> TestClient:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from starlette.testclient import TestClient

    from tests.page import people

    token = get_auth_manager().generate_jwt(getattr(people, person))
    return TestClient(server, cookies={COOKIE_NAME_JWT_TOKEN: token})
