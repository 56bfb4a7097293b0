"""What Airflow's list of providers says about Tidetable (entry point apache_airflow_provider)."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Name, description, and the links on our tasks that Airflow may show."""
    links = "tidetable.pipeline.links"
    return {
        "package-name": "tidetable",
        "name": "Tidetable",
        "description": "Delta tables whose rows expire, updated once per data interval.",
        "extra-links": [f"{links}.PageLink", f"{links}.ReportsLink"],
    }
