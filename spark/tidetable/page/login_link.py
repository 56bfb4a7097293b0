"""A link that logs in once, as `make run` prints it.

Whoever started Airflow holds the key: it is in what was printed, and in a file that only they can
read. The first request with it takes the file away, so the link in a terminal, a history or a log
is worth nothing afterwards. The route is there only if `TIDETABLE_LOGIN_LINK` names that file.
"""

from __future__ import annotations

import hmac
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

VARIABLE = "TIDETABLE_LOGIN_LINK"
PREFIX = "/tidetable-login"
USER, ROLE = "admin", "ADMIN"

_NO_LONGER = """\
This link has been used, or is not the newest one: it works once. Log in at the address that was
printed with it, with the user and the password beside it; or start again for a new link.
"""
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


def make_app() -> ASGIApp:
    """The one route, as an application to be mounted in Airflow's."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    return Starlette(routes=[Route("/", log_in, methods=["GET"])])


def log_in(request: Request) -> Response:
    """Sets the cookie that Airflow's own login sets, and goes on to the page."""
    from airflow.api_fastapi.app import get_auth_manager, get_cookie_path
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.configuration import conf
    from starlette.responses import PlainTextResponse, RedirectResponse

    manager = get_auth_manager()
    given = request.query_params.get("key", "")
    if not isinstance(manager, SimpleAuthManager) or not take(given):
        return PlainTextResponse(_NO_LONGER, status_code=403, headers=_HEADERS)
    base = conf.get("api", "base_url", fallback="/").rstrip("/")
    answer = RedirectResponse(f"{base}/tidetable/", status_code=303, headers=_HEADERS)
    answer.set_cookie(
        COOKIE_NAME_JWT_TOKEN,
        manager.generate_jwt(SimpleAuthManagerUser(username=USER, role=ROLE)),
        path=get_cookie_path(),
        secure=request.base_url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return answer


def take(given: str) -> bool:
    """Whether it is the key; if so, it was the last time."""
    place = os.environ.get(VARIABLE)
    if not place or not given:
        return False
    file = Path(place)
    try:
        expected = file.read_text()
        if not hmac.compare_digest(expected.encode(), given.encode()):
            return False
        file.unlink()  # of two requests at once, one finds it gone already
    except OSError:
        return False
    return True
