"""An update's figures reach whatever listens to Airflow's metrics."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # Airflow takes seconds to import

CODE = """
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
from tidetable.pipeline.metrics import emit
emit("things", {"slot": 3, "live": 17, "imbalance": None, "kind": "update"})
"""


def test_gauges_are_sent_to_statsd() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(5)
        environment = {
            **os.environ,
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(listener.getsockname()[1]),
        }
        subprocess.run([sys.executable, "-c", CODE], env=environment, check=True, timeout=60)
        heard = set()
        while len(heard) < 4:  # Airflow sends others of its own
            heard.update(re.findall(r"airflow\.tidetable.*", listener.recv(4096).decode()))
    assert heard == {
        "airflow.tidetable.things.slot:3.0|g",
        "airflow.tidetable.things.live:17.0|g",
        "airflow.tidetable.slot:3.0|g",
        "airflow.tidetable.live:17.0|g",
    }
