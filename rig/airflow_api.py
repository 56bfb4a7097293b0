"""What we ask an Airflow over its REST interface: how far its runs are, and what went wrong."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidetable.core.errors import TransientError

_TIMEOUT_S = 15.0
_TRIES = 4
_TOKEN_LASTS_S = 600.0

# Airflow is on this machine: whatever proxy the environment names is not for it.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class AirflowUnreachable(TransientError):
    """Airflow does not answer, or not as it should."""

    code = "airflow_unreachable"


@dataclass(frozen=True)
class Run:
    """One run of a DAG."""

    run_id: str
    state: str
    seconds: float | None


@dataclass(frozen=True)
class Failure:
    """A task that failed, with the end of what it logged."""

    dag_id: str
    run_id: str
    task_id: str
    log: list[str]


class AirflowApi:
    """Reads from an Airflow, logged in."""

    def __init__(self, url: str, password: str, user: str = "admin") -> None:
        self._url = url
        self._login = {"username": user, "password": password}
        self._token: str | None = None
        self._token_until = 0.0

    def counts(self, dag_id: str, failed_since: datetime | None = None) -> dict[str, int]:
        """How many scheduled runs of the DAG have ended how; empty if there is no such DAG."""
        counted = {}
        since = {} if failed_since is None else {"end_date_gte": failed_since.isoformat()}
        for state, more in (("success", {}), ("failed", since)):
            found = self._get(
                f"dags/{dag_id}/dagRuns", state=state, run_type="scheduled", limit=1, missing={},
                **more,
            )  # fmt: skip
            if not found:
                return {}
            counted[state] = int(found["total_entries"])
        return counted

    def runs(self, dag_id: str, state: str, limit: int = 100) -> list[Run]:
        """The newest scheduled runs in a state, newest first."""
        found = self._get(
            f"dags/{dag_id}/dagRuns", state=state, run_type="scheduled", limit=limit,
            order_by="-run_after", missing={"dag_runs": []},
        )  # fmt: skip
        return [Run(one["dag_run_id"], one["state"], one["duration"]) for one in found["dag_runs"]]

    def is_paused(self, dag_id: str) -> bool:
        return bool(self._get(f"dags/{dag_id}", missing={}).get("is_paused"))

    def import_errors(self) -> list[str]:
        """What Airflow could not read in the folder of DAGs."""
        found = self._get("importErrors", limit=20)["import_errors"]
        return [f"{one['filename']}: {one['stack_trace'].strip()}" for one in found]

    def failures(self, dag_id: str, run_id: str, lines: int = 20) -> list[Failure]:
        """The tasks of a run that failed by themselves."""
        path = f"dags/{dag_id}/dagRuns/{urllib.parse.quote(run_id, safe='')}/taskInstances"
        tasks = self._get(path, missing={"task_instances": []})["task_instances"]
        return [
            Failure(dag_id, run_id, task["task_id"], self._log(path, task)[-lines:])
            for task in tasks
            if task["state"] == "failed"
        ]

    def _log(self, path: str, task: dict[str, Any]) -> list[str]:
        found = self._get(
            f"{path}/{task['task_id']}/logs/{task['try_number']}", full_content="true",
            missing={"content": []},
        )  # fmt: skip
        return list(_lines(found["content"]))

    # -- requests --------------------------------------------------------------------------------

    def _get(self, path: str, *, missing: Any = None, **query: object) -> Any:
        url = f"{self._url}/api/v2/{path}"
        if query:
            url += "?" + urllib.parse.urlencode(query)
        last: Exception | None = None
        for attempt in range(_TRIES):
            headers = {"Authorization": f"Bearer {self.token()}", "Accept": "application/json"}
            try:
                with _open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S) as got:
                    return json.load(got)
            except urllib.error.HTTPError as error:
                if error.code == 404 and missing is not None:
                    return missing
                if error.code == 401:
                    self._token = None
                last = error
            except (OSError, ValueError) as error:
                last = error
            time.sleep(0.5 * (attempt + 1))  # busy: two cores do a lot here
        raise AirflowUnreachable(f"Airflow does not answer {url}: {last}") from last

    def token(self) -> str:
        if self._token is None or time.monotonic() > self._token_until:
            request = urllib.request.Request(
                f"{self._url}/auth/token",
                json.dumps(self._login).encode(),
                {"Content-Type": "application/json"},
            )
            self._token = self._logged_in(request)
            self._token_until = time.monotonic() + _TOKEN_LASTS_S
        return self._token

    def _logged_in(self, request: urllib.request.Request) -> str:
        last: Exception | None = None
        for attempt in range(_TRIES):
            try:
                with _open(request, timeout=_TIMEOUT_S) as got:
                    return str(json.load(got)["access_token"])
            except (OSError, ValueError, KeyError) as error:
                last = error
            time.sleep(0.5 * (attempt + 1))
        raise AirflowUnreachable(f"Airflow at {self._url} does not let us in: {last}") from last


def _lines(content: Iterable[Any]) -> Iterable[str]:
    """The log as people read it; Airflow groups and stamps are left out."""
    for entry in content:
        if not isinstance(entry, dict):
            yield str(entry)
            continue
        text = str(entry.get("event", ""))
        if text.startswith("::"):
            continue
        yield from text.splitlines()
        for error in entry.get("error_detail") or ():
            yield f"{error.get('exc_type')}: {error.get('exc_value')}"
