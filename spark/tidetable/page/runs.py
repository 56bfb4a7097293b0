"""The runs of an index's DAG, from Airflow's own database: a few rows by its indexes.

Only what the user may see anyway: runs and tasks have permissions of their own beside the DAG's.
"""

from __future__ import annotations

import logging

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from sqlalchemy import select
from sqlalchemy.orm import Session

from tidetable.page.access import team_of
from tidetable.page.activity import NOTHING_KNOWN, Activity, Failure

log = logging.getLogger(__name__)

_WAITS = (TaskInstanceState.UP_FOR_RETRY, TaskInstanceState.UP_FOR_RESCHEDULE)


def activity(dag_id: str, user: BaseUser) -> Activity:
    """What the runs of this DAG are doing; nothing known of what the user may not see."""
    seen = [one for one in (DagAccessEntity.RUN, DagAccessEntity.TASK_INSTANCE)
            if _may_read(dag_id, one, user)]  # fmt: skip
    if DagAccessEntity.RUN not in seen:
        return NOTHING_KNOWN
    try:
        with create_session(scoped=False) as session:
            return _asked(session, dag_id, tasks_too=DagAccessEntity.TASK_INSTANCE in seen)
    except Exception:  # the page is about the tables; it does without what Airflow does not say
        log.exception("The runs of %s could not be looked up", dag_id)
        return NOTHING_KNOWN


def _may_read(dag_id: str, entity: DagAccessEntity, user: BaseUser) -> bool:
    details = DagDetails(id=dag_id, team_name=team_of(dag_id))
    return get_auth_manager().is_authorized_dag(
        method="GET", access_entity=entity, details=details, user=user
    )


def _asked(session: Session, dag_id: str, *, tasks_too: bool) -> Activity:
    of_dag = DagRun.dag_id == dag_id
    open_runs = session.execute(
        select(DagRun._state, DagRun.run_id, DagRun.start_date).where(
            of_dag, DagRun._state.in_([DagRunState.RUNNING, DagRunState.QUEUED])
        )
    ).all()
    good_runs = select(DagRun.end_date).where(of_dag, DagRun._state == DagRunState.SUCCESS)
    running = next((one for one in open_runs if one[0] == DagRunState.RUNNING), None)
    return Activity(
        since=None if running is None else running.start_date,
        waiting=None if running is None else _waits_for(session, dag_id, running.run_id),
        queued=any(one[0] == DagRunState.QUEUED for one in open_runs),
        succeeded_at=session.scalar(good_runs.order_by(DagRun.id.desc()).limit(1)),
        paused=bool(session.scalar(select(DagModel.is_paused).where(DagModel.dag_id == dag_id))),
        failure=_failure(session, dag_id) if tasks_too else None,
    )


def _waits_for(session: Session, dag_id: str, run_id: str) -> str | None:
    """The task of a run that is to be tried again, or to look again."""
    of_run = (TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
    return session.scalar(
        select(TaskInstance.task_id).where(*of_run, TaskInstance.state.in_(_WAITS)).limit(1)
    )


def _failure(session: Session, dag_id: str) -> Failure | None:
    of_dag = TaskInstance.dag_id == dag_id
    last = session.execute(
        select(TaskInstance.run_id, TaskInstance.task_id, TaskInstance.end_date)
        .where(of_dag, TaskInstance.state == TaskInstanceState.FAILED,
               TaskInstance.end_date.is_not(None))
        .order_by(TaskInstance.end_date.desc())
        .limit(1)
    ).first()  # fmt: skip
    if last is None:
        return None
    good_since = select(TaskInstance.run_id).where(
        of_dag,
        TaskInstance.task_id == last.task_id,
        TaskInstance.state == TaskInstanceState.SUCCESS,
        TaskInstance.end_date > last.end_date,
    )
    over = session.execute(good_since.limit(1)).first() is not None
    return Failure(dag_id, last.run_id, last.task_id, last.end_date, over)
