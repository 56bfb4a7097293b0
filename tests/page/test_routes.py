"""The routes inside Airflow's own server: who gets in, what they see, what cannot be done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.page.airflow_runs import Runs
from tests.page.pages import BAD_ROWS, NASTY_KEYS, Project
from tidetable.page.bad_rows import ROWS_MAX, TEXT_MAX

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.testclient import TestClient

pytestmark = pytest.mark.slow  # Airflow itself is started

PATHS = (
    "/",
    "/static/page.js",
    "/static/page.css",
    "/static/nothing.js",
    "/api/indexes",
    "/api/indexes/things",
    "/api/indexes/nothing",
    "/api/indexes/things/probe?key=k1",
    "/api/indexes/things/probe",
    "/api/indexes/things/quarantine",
    "/reports/things/index.html",
    "/reports/things/",
    "/reports/nothing/index.html",
    "/docs",
    "/redoc",
    "/openapi.json",
    "/no/such/path",
)


def names(answer: object) -> list[str]:
    return [one["name"] for one in answer.json()["indexes"]]  # type: ignore[attr-defined]


# -- the login -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_anonymous_is_refused_everywhere(anonymous: TestClient, path: str) -> None:
    answer = anonymous.get(f"/tidetable{path}")
    assert (answer.status_code, answer.json()) == (401, {"detail": "Not authenticated"})


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
def test_anonymous_is_refused_with_every_method(anonymous: TestClient, method: str) -> None:
    for path in ("/", "/api/indexes", "/no/such/path"):
        assert anonymous.request(method, f"/tidetable{path}").status_code == 401


def test_every_route_is_among_those_tried(server: FastAPI) -> None:
    from tidetable.page.app import make_app

    patterns = [route.path_regex for route in make_app().routes]  # type: ignore[attr-defined]
    assert len(patterns) == 8
    tried = [path.partition("?")[0] for path in PATHS]
    assert all(any(pattern.fullmatch(path) for path in tried) for pattern in patterns)


def test_no_route_changes_anything(anna: TestClient) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert anna.request(method, "/tidetable/api/indexes").status_code == 404


def test_a_forged_token_is_refused(server: FastAPI) -> None:
    from starlette.testclient import TestClient

    forged = TestClient(server, headers={"Authorization": "Bearer e30.e30.e30"})
    for path in PATHS:
        assert forged.get(f"/tidetable{path}").status_code == 403


def test_airflow_shows_the_page_in_its_navigation_and_on_dags(anna: TestClient) -> None:
    from airflow.plugins_manager import get_import_errors, get_plugin_info

    assert get_import_errors() == {}
    (plugin,) = [one for one in get_plugin_info() if one["name"] == "tidetable"]
    views = {view["destination"]: view for view in plugin["external_views"]}
    assert views["nav"]["href"] == "tidetable/"
    assert views["dag"]["href"] == "tidetable/?dag_id={DAG_ID}"
    assert len({view["url_route"] for view in views.values()}) == 2
    for view in views.values():
        assert anna.get(f"/{view['href'].partition('?')[0]}").status_code == 200
        assert anna.get(f"/{view['icon']}").headers["content-type"].startswith("image/svg")
        assert anna.get(f"/{view['icon_dark_mode']}").status_code == 200


# -- what a person sees ----------------------------------------------------------------------------


def test_every_index_is_listed_whatever_its_state(anna: TestClient) -> None:
    answer = anna.get("/tidetable/api/indexes")
    health = {one["name"]: one["health"] for one in answer.json()["indexes"]}
    late = dict.fromkeys(("gridded", "numbers", "secret", "things"), "late")
    assert health == {"broken": "broken", "damaged": "damaged", "planned": "empty", **late}


def test_only_indexes_whose_dag_may_be_read_are_there(
    limited: TestClient, anna: TestClient
) -> None:
    assert names(limited.get("/tidetable/api/indexes")) == ["things"]
    assert limited.get("/tidetable/api/indexes/things").status_code == 200
    for path in (
        "/api/indexes/secret",
        "/api/indexes/secret/probe?key=treasure",
        "/api/indexes/secret/quarantine",
        "/reports/secret/index.html",
        "/api/indexes/broken",
    ):
        assert anna.get(f"/tidetable{path}").status_code != 404
        hidden = limited.get(f"/tidetable{path}")
        missing = limited.get(f"/tidetable{path}".replace("secret", "nothing"))
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text == missing.text
        assert "treasure" not in hidden.text


def test_a_broken_index_shows_what_is_wrong_with_it(anna: TestClient) -> None:
    found = anna.get("/tidetable/api/indexes/broken").json()
    assert found["health_word"] == "broken YAML"
    assert "include/indexes/broken.yaml" in found["sentence"]
    assert "cells" not in found
    refused = anna.get("/tidetable/api/indexes/broken/probe?key=1")
    assert refused.status_code == 400
    assert "include/indexes/broken.yaml" in refused.json()["detail"]


def test_a_new_index_is_there_at_once(anna: TestClient, project: Project) -> None:
    before = names(anna.get("/tidetable/api/indexes"))
    assert "fresh" not in before
    project.describe("fresh")
    try:
        assert "fresh" in names(anna.get("/tidetable/api/indexes"))
    finally:
        (project.indexes / "fresh.yaml").unlink()
    assert names(anna.get("/tidetable/api/indexes")) == before


# -- the page itself -------------------------------------------------------------------------------


def test_the_page_takes_everything_from_here(anna: TestClient) -> None:
    page = anna.get("/tidetable/")
    assert page.headers["content-type"].startswith("text/html")
    linked = set(re.findall(r'(?:src|href)="([^"#]+)"', page.text))
    scripts = {"static/page.js"}
    for script in (
        "page", "bad-rows", "cells", "charts", "draw", "format", "reading", "theme",
    ):  # fmt: skip
        text = anna.get(f"/tidetable/static/{script}.js").text
        scripts |= {f"static/{name}" for name in re.findall(r'from "\./(\w+\.js)"', text)}
        # The name of SVG's namespace is no address that is fetched.
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
        assert "innerHTML" not in text
    for path in linked | scripts:
        assert anna.get(f"/tidetable/{path}").status_code == 200, path
    assert "://" not in page.text
    assert "url(" not in anna.get("/tidetable/static/page.css").text
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", page.text)


def test_every_answer_says_what_a_browser_may_do_with_it(
    anna: TestClient, anonymous: TestClient
) -> None:
    for answer in (
        *(anna.get(f"/tidetable{path}") for path in PATHS),
        anonymous.get("/tidetable/"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'self'" in policy
        assert "unsafe-inline" not in policy or "script-src" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in anna.get("/tidetable/").headers["content-security-policy"]


@pytest.mark.parametrize(
    "file", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "app.py", "page.html", ".", "page.js/"]
)
def test_nothing_but_its_parts_is_served(anna: TestClient, file: str) -> None:
    assert anna.get(f"/tidetable/static/{file}").status_code == 404


# -- the probe box ---------------------------------------------------------------------------------


def test_a_probe_gives_the_rows_of_the_key(anna: TestClient) -> None:
    found = anna.get("/tidetable/api/indexes/secret/probe", params={"key": "treasure"}).json()
    columns = [one["name"] for one in found["columns"]]
    (only,) = [dict(zip(columns, row, strict=True)) for row in found["rows"]]
    assert (only["id"], only["key"], only["_expiration_slot"]) == (1, "treasure", 5)
    assert only["expires_at"] == "2024-03-01T00:50:00Z"
    assert (found["slot"], found["as_of"], found["cut"]) == (0, "2024-03-01T00:00:00Z", False)
    assert found["seconds"] < 1


@pytest.mark.parametrize(("number", "key"), list(enumerate(NASTY_KEYS)))
def test_whatever_is_typed_is_a_key_and_nothing_else(
    anna: TestClient, number: int, key: str
) -> None:
    answer = anna.get("/tidetable/api/indexes/things/probe", params={"key": key})
    assert answer.headers["content-type"] == "application/json"
    assert [row[:2] for row in answer.json()["rows"]] == [[number, key]]
    assert answer.json()["key"] == key


@pytest.mark.parametrize("key", ["", "\0", "k1' OR '1'='1", "k1;", "𝕜1", "x" * 1000, "K1"])
def test_a_key_that_is_not_there_finds_nothing(anna: TestClient, key: str) -> None:
    answer = anna.get("/tidetable/api/indexes/things/probe", params={"key": key})
    assert (answer.status_code, answer.json().get("rows")) == (200, [])


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"key": "seven"}, "\"seven\" is not a value of the key 'key'"),
        ({"key": "7 OR 1=1"}, "whole number"),
        ({"key": "7.5"}, "whole number"),
        ({}, "No key was given"),
        ({"key": "1" * 1001}, "at most 1,000"),
        ({"key": "7", "alive_at": "yesterday"}, "'yesterday' is not a time"),
        ({"key": "7", "alive_at": "2024-03-01T00:00:00"}, "has no zone"),
        ({"key": "7", "alive_at": "2024-02-29T00:00:00Z"}, "before the table's own time"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(
    anna: TestClient, asked: dict[str, str], told: str
) -> None:
    answer = anna.get("/tidetable/api/indexes/numbers/probe", params=asked)
    assert answer.status_code == 400
    assert told in answer.json()["detail"]


def test_numbers_too_large_for_a_browser_come_as_text(anna: TestClient) -> None:
    answer = anna.get("/tidetable/api/indexes/numbers/probe", params={"key": str(2**60)})
    (row,) = answer.json()["rows"]
    assert row[1] == str(2**60)
    larger = anna.get("/tidetable/api/indexes/numbers/probe", params={"key": "9" * 300})
    assert (larger.status_code, larger.json()["rows"]) == (200, [])


def test_alive_at_leaves_out_what_has_died_by_then(anna: TestClient) -> None:
    path = "/tidetable/api/indexes/numbers/probe"
    alive = anna.get(path, params={"key": "7", "alive_at": "2024-03-01T00:49:59Z"}).json()
    dead = anna.get(path, params={"key": "7", "alive_at": "2024-03-01T00:50:00Z"}).json()
    assert (len(alive["rows"]), len(dead["rows"])) == (1, 0)


def test_an_index_that_cannot_be_probed_says_why(anna: TestClient) -> None:
    for name, told in (("planned", "has no table yet"), ("damaged", "not made by Tidetable")):
        answer = anna.get(f"/tidetable/api/indexes/{name}/probe", params={"key": "k1"})
        assert answer.status_code == 400
        assert told in answer.json()["detail"]


# -- what Airflow is doing -------------------------------------------------------------------------


@pytest.fixture
def runs(server: FastAPI) -> Iterator[Runs]:
    made = Runs()
    yield made
    made.forget()


def health(client: TestClient, name: str) -> tuple[str, str]:
    found = client.get(f"/tidetable/api/indexes/{name}").json()
    listed = client.get("/tidetable/api/indexes").json()["indexes"]
    (line,) = [one for one in listed if one["name"] == name]
    assert (line["health"], line["sentence"]) == (found["health"], found["sentence"])
    return found["health"], found["health_word"]


def test_a_first_update_that_is_running_is_no_missing_table(anna: TestClient, runs: Runs) -> None:
    assert health(anna, "planned") == ("empty", "no table yet")
    runs.add("planned", "running")
    assert health(anna, "planned") == ("first", "first update is running")


def test_slots_that_are_being_caught_up_are_not_late(
    anna: TestClient, runs: Runs, project: Project
) -> None:
    assert health(anna, "things")[0] == "late"
    run = runs.add("things", "running")
    word = health(anna, "things")[1]
    assert re.fullmatch(r"catching up, 0 of [\d,]+", word)
    runs.add_task("things", run, "plan", "up_for_reschedule")
    assert health(anna, "things")[0] == "late"
    assert "waits for the task plan" in anna.get("/tidetable/api/indexes/things").json()["sentence"]


def test_between_two_runs_an_index_is_still_catching_up(anna: TestClient, runs: Runs) -> None:
    runs.add("things", "success", ended=datetime.now(UTC) - timedelta(seconds=5))
    assert health(anna, "things")[0] == "catching_up"
    runs.forget()
    runs.add("things", "success", ended=datetime.now(UTC) - timedelta(minutes=5))
    assert health(anna, "things")[0] == "late"


def test_the_last_failed_task_is_told_with_its_run(anna: TestClient, runs: Runs) -> None:
    then = datetime.now(UTC) - timedelta(hours=1)
    run = runs.add("things", "failed", ended=then)
    runs.add_task("things", run, "update", "failed", ended=then)
    found = anna.get("/tidetable/api/indexes/things").json()
    assert found["health"] == "failing"
    assert "The task update failed at" in found["sentence"]
    assert {name: found["failure"][name] for name in ("run", "task", "over")} == {
        "run": run, "task": "update", "over": False,
    }  # fmt: skip
    later = runs.add("things", "success", ended=then + timedelta(minutes=30))
    runs.add_task("things", later, "update", "success", ended=then + timedelta(minutes=30))
    found = anna.get("/tidetable/api/indexes/things").json()
    assert (found["health"], found["failure"]["over"]) == ("late", True)


def test_runs_are_told_to_nobody_who_may_not_read_them(
    without_runs: TestClient, runs: Runs
) -> None:
    then = datetime.now(UTC) - timedelta(hours=1)
    run = runs.add("things", "running")
    runs.add_task("things", run, "update", "failed", ended=then)
    found = without_runs.get("/tidetable/api/indexes/things").json()
    assert (found["health"], found["failure"]) == ("late", None)


# -- rows in quarantine ----------------------------------------------------------------------------


def test_quarantined_rows_are_told_with_the_reason(anna: TestClient) -> None:
    found = anna.get("/tidetable/api/indexes/things/quarantine").json()
    assert found["more"] is True
    assert len(found["rows"]) == ROWS_MAX
    first = found["rows"][0]
    assert (first["slot"], first["reason"], first["as_of"]) == (
        BAD_ROWS, "no key", "2024-03-01T10:00:00Z",
    )  # fmt: skip
    assert json.loads(first["row"]) == {"id": BAD_ROWS, "key": "<script>alert(1)</script>"}
    long = found["rows"][1]["row"]
    assert len(long) < TEXT_MAX + 50
    assert long.endswith("characters)")
    assert [one["slot"] for one in found["rows"]] == sorted(
        (one["slot"] for one in found["rows"]), reverse=True
    )


def test_an_index_without_a_quarantine_has_no_row_in_it(anna: TestClient) -> None:
    found = anna.get("/tidetable/api/indexes/gridded/quarantine").json()
    assert found == {"rows": [], "more": False}


def test_a_quarantine_of_somebody_else_is_refused(anna: TestClient, project: Project) -> None:
    """A table that is not ours lies in its place: nothing in it is shown."""
    answer = anna.get("/tidetable/api/indexes/numbers/quarantine")
    assert answer.status_code == 400
    assert "a Delta table that Tidetable did not make" in answer.json()["detail"]


# -- Data Docs -------------------------------------------------------------------------------------


def test_reports_are_served_and_nothing_in_them_is_run(anna: TestClient, project: Project) -> None:
    project.report("things", "validations/one.html", "<script>alert(1)</script>")
    for path in ("", "index.html", "validations/one.html"):
        answer = anna.get(f"/tidetable/reports/things/{path}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "../../private.txt",
        "..%2f..%2fprivate.txt",
        "%2e%2e/%2e%2e/private.txt",
        "..%5c..%5cprivate.txt",
        "validations/../../../private.txt",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "link.html",
        "folder/private.txt",
        "validations",
        "nul%00.html",
        "x" * 5000,
    ],
)
def test_no_report_lies_outside_of_the_site(anna: TestClient, project: Project, path: str) -> None:
    site = project.report("things", "validations/one.html").parents[1]
    for link, target in (("link.html", "../../private.txt"), ("folder", "../..")):
        if not (site / link).is_symlink():
            (site / link).symlink_to(target)
    assert (site / "link.html").read_text() == "not for the page"
    answer = anna.get(f"/tidetable/reports/things/{path}")
    assert answer.status_code == 404
    assert "not for" not in answer.text
