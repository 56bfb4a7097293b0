"""Tidetable in Airflow's UI: an entry in the navigation and a tab on every DAG.

The page itself is in tidetable.page. It is imported when somebody first asks for it: Airflow loads
plugins in every process, in each task too, and only the API server needs the page.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "/tidetable"
LOGIN_PREFIX = "/tidetable-login"


class Lazy:
    """An ASGI application that is made when it is first asked for something."""

    def __init__(self, name: str, make: Callable[[], ASGIApp]) -> None:
        self._name = name
        self._make = make
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            from starlette.concurrency import run_in_threadpool

            self._app = await run_in_threadpool(self._make)
        await self._app(scope, receive, send)

    def __repr__(self) -> str:
        return self._name


def _page() -> ASGIApp:
    from tidetable.page.app import make_app

    return make_app()


def _login_link() -> ASGIApp:
    from tidetable.page.login_link import make_app

    return make_app()


def _apps() -> list[dict[str, Any]]:
    apps = [{"app": Lazy("tidetable_page", _page), "url_prefix": PREFIX, "name": "Tidetable"}]
    if os.environ.get("TIDETABLE_LOGIN_LINK"):  # only in an Airflow that we have started
        link = {"app": Lazy("tidetable_login", _login_link), "name": "Tidetable's login link"}
        apps.append({**link, "url_prefix": LOGIN_PREFIX})
    return apps


def _middlewares() -> list[dict[str, Any]]:
    if not os.environ.get("TIDETABLE_ALLOWED_HOSTS"):
        return []
    from airflow.configuration import conf

    from tidetable.page.hosts import HostCheck, allowed_hosts

    hosts = allowed_hosts(conf.get("api", "base_url", fallback=""))
    return [{"name": "Tidetable's hosts", "middleware": HostCheck, "kwargs": {"hosts": hosts}}]


# The addresses are relative to Airflow's base URL, which may have a path of its own.
_ICONS = {
    "icon": "tidetable/static/icon.svg",
    "icon_dark_mode": "tidetable/static/icon-dark.svg",
}


class TidetablePlugin(AirflowPlugin):
    """The page, where it is mounted and where Airflow shows it."""

    name = "tidetable"
    fastapi_apps: list[Any] = _apps()
    fastapi_root_middlewares: list[Any] = _middlewares()
    external_views: list[Any] = [  # noqa: RUF012
        {
            "name": "Tidetable",
            "href": "tidetable/",
            "destination": "nav",
            "nav_top_level": True,
            "url_route": "tidetable",
            **_ICONS,
        },
        {
            # Airflow shows a tab on every DAG; on one that keeps no index the page says so.
            "name": "Tidetable",
            "href": "tidetable/?dag_id={DAG_ID}",
            "destination": "dag",
            "url_route": "tidetable-index",
            **_ICONS,
        },
    ]
