"""Tidetable in Airflow's UI: an entry in the navigation and a tab on every DAG.

The page itself is in tidetable_page. It is imported when somebody first asks for it: Airflow loads
plugins in every process, in each task too, and only the API server needs the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "/tidetable"


class Page:
    """The page as an ASGI application."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            from starlette.concurrency import run_in_threadpool

            self._app = await run_in_threadpool(_make_app)
        await self._app(scope, receive, send)

    def __repr__(self) -> str:
        return "tidetable_page"


def _make_app() -> ASGIApp:
    from tidetable_page.app import make_app

    return make_app()


# The addresses are relative to Airflow's base URL, which may have a path of its own.
_ICONS = {
    "icon": "tidetable/static/icon.svg",
    "icon_dark_mode": "tidetable/static/icon-dark.svg",
}


class TidetablePlugin(AirflowPlugin):
    """The page, where it is mounted and where Airflow shows it."""

    name = "tidetable"
    fastapi_apps: list[Any] = [{"app": Page(), "url_prefix": PREFIX, "name": "Tidetable"}]  # noqa: RUF012
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
