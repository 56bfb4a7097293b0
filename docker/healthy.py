"""Exit status 0 if a part of the whole is well: what docker-compose.yaml asks now and then.

usage: healthy.py airflow PART      as Airflow's API server sees it: scheduler, dag_processor, ...
       healthy.py url ADDRESS       an address answers with JSON
       healthy.py port NUMBER       somebody listens in this container
"""

from __future__ import annotations

import json
import socket
import sys
import urllib.request

HEALTH = "http://api-server:8080/api/v2/monitor/health"


def fetched(address: str) -> dict[str, dict[str, str]]:
    with urllib.request.urlopen(address, timeout=5) as response:
        return dict(json.load(response))


def is_healthy(kind: str, what: str) -> bool:
    if kind == "airflow":
        return fetched(HEALTH)[what]["status"] == "healthy"
    if kind == "url":
        return bool(fetched(what))
    with socket.create_connection((socket.gethostname(), int(what)), timeout=5):
        return True


if __name__ == "__main__":
    try:
        sys.exit(0 if is_healthy(*sys.argv[1:]) else 1)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{' '.join(sys.argv[1:])}: {error}")
