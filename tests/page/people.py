"""People who ask for the page, and what Airflow lets them see."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

EVERYBODY = SimpleAuthManagerUser(username="anna", role="viewer")
LIMITED = SimpleAuthManagerUser(username="limited", role="viewer")
WITHOUT_RUNS = SimpleAuthManagerUser(username="norun", role="viewer")


class LimitedAuthManager(SimpleAuthManager):
    """Airflow's own simple manager, and two people who may read less than all of every DAG."""

    def is_authorized_dag(
        self, *, user: SimpleAuthManagerUser, details: DagDetails | None = None, **more: Any
    ) -> bool:
        if user.username == "norun" and more.get("access_entity") is not None:
            return False
        if user.username == "limited":
            return details is not None and details.id == "tidetable__things"
        return bool(super().is_authorized_dag(user=user, details=details, **more))
