"""The ways into an Airflow that we start: its names, and the link that logs in once."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.page.conftest import HOST

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.testclient import TestClient

pytestmark = pytest.mark.slow  # Airflow itself is started

OURS = ["127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:9000", "[::1]:8080", "localhost."]
STRANGE = [
    "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "",
    "127.0.0.1@evil.example", "evil.example#127.0.0.1", "evil.example/127.0.0.1", "0.0.0.0",
    "127.0.0.2", "localhost:x", "[::1", "127.0.0.1, evil.example", "127.0.0.1:8080:80",
    "2130706433",
]  # fmt: skip


def status(headers: list[tuple[bytes, bytes]], kind: str = "http") -> Any:
    """What the check answers; 200 stands for: let through."""
    from tidetable.page.hosts import HostCheck

    said: list[dict[str, Any]] = []

    async def server(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    check = HostCheck(server, frozenset({"127.0.0.1", "localhost", "::1"}))
    asyncio.run(check({"type": kind, "headers": headers, "method": "GET"}, receive, send))
    return said[0].get("status", said[0]["type"])


@pytest.mark.parametrize("host", OURS)
def test_our_own_names_are_let_in(server: FastAPI, host: str) -> None:
    assert status([(b"host", host.encode())]) == 200


@pytest.mark.parametrize("host", STRANGE)
def test_a_strangers_name_is_refused(server: FastAPI, host: str) -> None:
    assert status([(b"host", host.encode())]) == 421
    assert status([(b"host", host.encode())], "websocket") == "websocket.close"


def test_no_name_and_two_names_are_refused(server: FastAPI) -> None:
    assert status([]) == 421
    assert status([(b"host", b"127.0.0.1"), (b"host", b"evil.example")]) == 421


@pytest.mark.parametrize(
    "path", ["/", "/auth/token", "/auth/login", "/api/v2/version", "/tidetable/", "/static/x.js"]
)
def test_a_strangers_name_is_refused_on_every_path(anna: TestClient, path: str) -> None:
    answer = anna.get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert "TIDETABLE_ALLOWED_HOSTS" in answer.text
    assert anna.get(path, headers={"Host": HOST}, follow_redirects=False).status_code != 421


def test_without_the_variable_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidetable.page.hosts import allowed_hosts

    monkeypatch.delenv("TIDETABLE_ALLOWED_HOSTS", raising=False)
    assert allowed_hosts("http://localhost:8080") == frozenset()
    monkeypatch.setenv("TIDETABLE_ALLOWED_HOSTS", "a, B")
    assert allowed_hosts("https://tides.example/airflow") == {"a", "b", "tides.example"}


def test_nobody_gets_a_token_for_nothing(anonymous: TestClient) -> None:
    assert anonymous.get("/auth/token").status_code == 403
    assert anonymous.get("/auth/token/login", follow_redirects=False).status_code == 403
    assert anonymous.post("/auth/token", json={}).status_code in (400, 422)


# -- the link --------------------------------------------------------------------------------------


def follow(client: TestClient, key: str) -> Any:
    return client.get(f"/tidetable-login/?key={key}", follow_redirects=False)


def test_a_link_logs_in_once(anonymous: TestClient, login_key: Path) -> None:
    login_key.write_text("the key")
    for wrong in ("", "another", "the%20key%20", "the%20ke"):
        assert follow(anonymous, wrong).status_code == 403
    answer = follow(anonymous, "the%20key")
    assert answer.status_code == 303
    assert answer.headers["location"].endswith("/tidetable/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert anonymous.get("/tidetable/api/indexes").status_code == 200
    assert not login_key.exists()
    assert "works once" in follow(anonymous, "the%20key").text
    assert follow(anonymous, "the%20key").status_code == 403


def test_a_link_is_made_for_us_alone_and_the_older_one_is_void(tmp_path: Path) -> None:
    from rig.home import Airflow

    airflow = Airflow(tmp_path, tmp_path, 8080, {})
    first, second = airflow.login_link(), airflow.login_link()
    file = Path(airflow.environment()["TIDETABLE_LOGIN_LINK"])
    assert first != second
    assert second == f"http://127.0.0.1:8080/tidetable-login/?key={file.read_text()}"
    assert len(file.read_text()) >= 40
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_there_is_no_such_route_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidetable.page import plugin

    monkeypatch.delenv("TIDETABLE_LOGIN_LINK", raising=False)
    monkeypatch.delenv("TIDETABLE_ALLOWED_HOSTS", raising=False)
    assert [app["url_prefix"] for app in plugin._apps()] == ["/tidetable"]
    assert plugin._middlewares() == []
