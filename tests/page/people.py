"""People who ask for the page, and what Airflow lets them see."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

EVERYBODY = SimpleAuthManagerUser(username="anna", role="viewer")
LIMITED = SimpleAuthManagerUser(username="limited", role="viewer")


class LimitedAuthManager(SimpleAuthManager):
    """Airflow's own simple manager, and one person who may read one DAG only."""

    def is_authorized_dag(
        self, *, user: SimpleAuthManagerUser, details: DagDetails | None = None, **more: Any
    ) -> bool:
        if user.username == "limited":
            return details is not None and details.id == "tidetable__things"
        return bool(super().is_authorized_dag(user=user, details=details, **more))
