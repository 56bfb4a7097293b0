"""Who may see what: Airflow's login decides, and its permissions on the DAGs of the indexes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.configuration import conf
from airflow.models.dag import DagModel

from tidetable.page.standing import Entry


def readable(entries: Iterable[Entry], user: BaseUser) -> list[Entry]:
    """The indexes whose DAG the user may read."""
    entries = list(entries)
    by_team: dict[str | None, set[str]] = defaultdict(set)
    teams = _teams([entry.dag_id for entry in entries])
    for entry in entries:
        by_team[teams.get(entry.dag_id)].add(entry.dag_id)
    allowed: set[str] = set()
    for team, dag_ids in by_team.items():
        # Asked by id and not looked up in Airflow's database: the DAG of a new index is not there
        # yet, that of a broken one never was.
        allowed |= get_auth_manager().filter_authorized_dag_ids(
            dag_ids=dag_ids, user=user, method="GET", team_name=team
        )
    return [entry for entry in entries if entry.dag_id in allowed]


def _teams(dag_ids: list[str]) -> dict[str, str | None]:
    if not dag_ids or not conf.getboolean("core", "multi_team"):
        return {}
    return DagModel.get_dag_id_to_team_name_mapping(dag_ids)


def team_of(dag_id: str) -> str | None:
    """The team of a DAG, where Airflow has teams."""
    return _teams([dag_id]).get(dag_id)
