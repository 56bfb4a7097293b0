"""Which names this server answers to.

A page of a stranger can make its own name point to 127.0.0.1 and then ask our server as if it were
its own (DNS rebinding): the browser sees one site. What gives it away is the Host header, which
carries the stranger's name. `TIDETABLE_ALLOWED_HOSTS` has the names that are ours; where it is not
set, in an Airflow of your own behind a proxy of your own, nothing is checked.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

VARIABLE = "TIDETABLE_ALLOWED_HOSTS"


def allowed_hosts(base_url: str = "") -> frozenset[str]:
    """The names of the variable and that of Airflow's own address; empty: nothing is checked."""
    named = {name.strip().lower() for name in os.environ.get(VARIABLE, "").split(",")} - {""}
    own = urlsplit(base_url).hostname
    return frozenset(named | {own} if named and own else named)


def host_name(header: str) -> str | None:
    """The name in a Host header, without its port; None if it is no name at all."""
    try:
        name = urlsplit(f"//{header}")
        plain = name.netloc == header and name.username is None
        return name.hostname if plain and name.port != 0 else None
    except ValueError:
        return None


class HostCheck:
    """Answers 421 to a request that was meant for somebody else, before anything else sees it."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        found = [value for name, value in scope["headers"] if name == b"host"]
        name = host_name(found[0].decode("latin-1")) if len(found) == 1 else None
        if name is not None and name.removesuffix(".") in self._hosts:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _refuse(scope, receive, send)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    from starlette.responses import PlainTextResponse

    sentence = (
        "This server does not go by the name in your request's Host header. Use the address that "
        f"it printed when it was started, or add the name to {VARIABLE}.\n"
    )
    await PlainTextResponse(sentence, status_code=421)(scope, receive, send)
