"""Airflow forgets the runs of some DAGs: `python -m rig.forget DAG_ID...`, with its environment.

For a start with no tables, while none of Airflow's programs runs. A task that was running when they
were killed is no hindrance.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def forget(dag_ids: Sequence[str]) -> int:
    """Deletes what the database has about them; how many of them it knew."""
    from airflow.api.common.delete_dag import delete_dag
    from airflow.exceptions import DagNotFound
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from airflow.utils.state import TaskInstanceState
    from sqlalchemy import update

    known = 0
    for dag_id in dag_ids:
        with create_session() as session:
            running = update(TaskInstance).where(TaskInstance.dag_id == dag_id)
            session.execute(running.values(state=TaskInstanceState.FAILED))
        try:
            delete_dag(dag_id)
        except DagNotFound:
            continue
        known += 1
    return known


if __name__ == "__main__":
    forget(sys.argv[1:])
