"""The routes of the page. All of them read, none of them changes anything.

Every path below the page, known or not, wants Airflow's login first. Endpoints are plain functions:
they read files, so they run in threads and never hold up the server.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.core_api.security import GetUserDep, requires_authenticated
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from tidetable.config import Index, parse_time, project_root
from tidetable.core.errors import TidetableError
from tidetable.output.remedies import as_command
from tidetable.page.bad_rows import quarantine
from tidetable.page.picture import picture
from tidetable.page.runs import activity
from tidetable.page.standing import Entry, brief, entries, stand
from tidetable.pipeline.catalog import read_catalog
from tidetable.pipeline.probing import probe
from tidetable.quality import reports_home

from .access import readable

log = logging.getLogger(__name__)

HERE = Path(__file__).resolve().parent
STATIC = HERE / "static"

OURS = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; " \
       "frame-ancestors 'self'"  # fmt: skip
# Reports are made by Great Expectations, whose pages carry styles of their own. They may hold what
# came in with the data, so nothing in them is run and nothing is fetched from elsewhere.
REPORTS = "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; " \
          "font-src 'self' data:; base-uri 'none'; form-action 'none'; " \
          "frame-ancestors 'self'"  # fmt: skip
HEADERS = {
    "Content-Security-Policy": OURS,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FRESH = {"Cache-Control": "no-store"}
CHECKED = {"Cache-Control": "private, no-cache"}

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def make_app() -> FastAPI:
    """The page as an application of its own, to be mounted in Airflow's."""
    app = FastAPI(
        title="Tidetable",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(requires_authenticated())],
    )
    app.middleware("http")(_with_headers)
    app.add_api_route("/", page)
    app.add_api_route("/static/{file}", static)
    app.add_api_route("/api/indexes", list_indexes)
    app.add_api_route("/api/indexes/{name}", show_index)
    app.add_api_route("/api/indexes/{name}/probe", probe_index)
    app.add_api_route("/api/indexes/{name}/quarantine", quarantined_rows)
    app.add_api_route("/reports/{name}/{path:path}", report)
    # Last, and with every method: without a login there is no telling which paths exist.
    app.add_api_route("/{path:path}", nothing, methods=METHODS)
    return app


async def _with_headers(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    response = await call_next(request)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


# -- the page and its parts ------------------------------------------------------------------------


def page() -> Response:
    return FileResponse(HERE / "page.html", media_type="text/html", headers=CHECKED)


def static(file: str) -> Response:
    media = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    kind = media.get(Path(file).suffix)
    if kind is None or not re.fullmatch(r"[a-z]+(-[a-z]+)*\.[a-z]+", file):
        raise _not_found()
    path = STATIC / file
    if not path.is_file():
        raise _not_found()
    return FileResponse(path, media_type=kind, headers=CHECKED)


def nothing(path: str) -> Response:
    raise _not_found()


# -- what it shows ---------------------------------------------------------------------------------


def list_indexes(user: GetUserDep) -> Response:
    """Every index that the user may see, in a line each."""
    root = project_root()
    now, reports = datetime.now(UTC), reports_home(root)
    ask = partial(activity, user=user)
    found = [stand(entry, now, reports, ask).as_json() for entry in _entries(root, user)]
    return JSONResponse({"indexes": found}, headers=FRESH)


def show_index(name: str, user: GetUserDep) -> Response:
    """Everything that is drawn for one index."""
    root = project_root()
    now = datetime.now(UTC)
    entry = _entry(root, name, user)
    doing = activity(entry.dag_id, user)
    standing = replace(stand(entry, now, reports_home(root), lambda _: doing), activity=doing)
    return JSONResponse(picture(standing, now), headers=FRESH)


def probe_index(
    name: str,
    user: GetUserDep,
    key: Annotated[str | None, Query()] = None,
    alive_at: Annotated[str | None, Query()] = None,
) -> Response:
    """The rows of one key."""
    entry = _entry(project_root(), name, user)
    if entry.index is None:
        return _refused(entry.mistake or "The index cannot be read.")
    if key is None:
        return _refused(f"No key was given. Ask for a value of {entry.index.key!r}.")
    return _probed(entry.index, key, alive_at)


def _probed(index: Index, key: str, alive_at: str | None) -> Response:
    try:
        moment = parse_time(alive_at) if alive_at else None
    except ValueError as error:
        return _refused(f"{error}.")
    try:
        return JSONResponse(probe(index, key, moment), headers=FRESH)
    except TidetableError as error:
        return _refused(error.told(as_command))
    except Exception as error:  # storage that does not answer, a file that has just gone
        log.exception("A probe of %s failed", index.name)
        return _unreadable("table", error)


def quarantined_rows(name: str, user: GetUserDep) -> Response:
    """The newest rows in quarantine, with the reason."""
    entry = _entry(project_root(), name, user)
    if entry.index is None:
        return _refused(entry.mistake or "The index cannot be read.")
    try:
        return JSONResponse(quarantine(entry.index), headers=FRESH)
    except TidetableError as error:
        return _refused(error.told(as_command))
    except Exception as error:  # storage that does not answer, a log that is no log
        log.exception("The quarantine of %s could not be read", entry.name)
        return _unreadable("quarantine", error)


def report(name: str, path: str, user: GetUserDep) -> Response:
    """A file of the quality reports (Data Docs) of one index."""
    root = project_root()
    site = (reports_home(root) / _entry(root, name, user).name / "site").resolve()
    try:
        wanted = (site / (path or "index.html")).resolve()
        found = wanted.is_relative_to(site) and wanted.is_file()
    except (OSError, ValueError):  # too long, or with a character that no path has
        found = False
    if not found:
        raise _not_found("There is no such quality report.")
    return FileResponse(wanted, headers={**CHECKED, "Content-Security-Policy": REPORTS})


# -- what they share -------------------------------------------------------------------------------


def _entries(root: Path, user: Any) -> list[Entry]:
    return readable(entries(read_catalog(root)), user)


def _entry(root: Path, name: str, user: Any) -> Entry:
    """The index of that name; one that the user may not see is as one that is not there."""
    for entry in _entries(root, user):
        if entry.name == name:
            return entry
    raise _not_found("There is no such index, or you may not see it.")


def _refused(sentence: str) -> Response:
    return JSONResponse({"detail": sentence}, status_code=400, headers=FRESH)


def _unreadable(what: str, error: Exception) -> Response:
    sentence = f"The {what} could not be read this time: {brief(error)}"
    return JSONResponse({"detail": sentence}, status_code=503, headers=FRESH)


def _not_found(sentence: str = "Not found.") -> HTTPException:
    return HTTPException(404, sentence)
