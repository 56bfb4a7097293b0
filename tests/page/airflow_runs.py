"""Runs and tasks in Airflow's own database, as its scheduler leaves them there."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import delete, insert


class Runs:
    """The runs that a test has added."""

    def __init__(self) -> None:
        self._runs: list[str] = []

    def add(self, index: str, state: str, *, ended: datetime | None = None) -> str:
        """A run of the index's DAG; its id."""
        run_id = f"scheduled__{uuid.uuid4()}"
        self._runs.append(run_id)
        values = {
            "dag_id": f"tidetable__{index}",
            "run_id": run_id,
            "state": state,
            "run_type": "scheduled",
            "start_date": ended or datetime.now(UTC),
            "end_date": ended,
            "run_after": datetime.now(UTC),
        }
        with create_session(scoped=False) as session:
            session.execute(insert(DagRun.__table__).values(**values))
        return run_id

    def add_task(
        self, index: str, run_id: str, task: str, state: str, *, ended: datetime | None = None
    ) -> None:
        """A task of that run."""
        values = {
            "id": uuid.uuid4(),
            "task_id": task,
            "dag_id": f"tidetable__{index}",
            "run_id": run_id,
            "state": state,
            "end_date": ended,
            "pool": "default_pool",
        }
        with create_session(scoped=False) as session:
            session.execute(insert(TaskInstance.__table__).values(**values))

    def forget(self) -> None:
        with create_session(scoped=False) as session:
            session.execute(delete(TaskInstance).where(TaskInstance.run_id.in_(self._runs)))
            session.execute(delete(DagRun).where(DagRun.run_id.in_(self._runs)))
        self._runs.clear()
