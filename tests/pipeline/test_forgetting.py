"""`make run` starts afresh: Airflow forgets the runs of DAGs whose tables are gone, no others."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rig.forget import forget

pytestmark = [pytest.mark.slow]


def test_only_what_is_named_is_forgotten(airflow_database: None) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunType
    from sqlalchemy import select

    names = ["tidetable__forgotten", "tidetable__kept"]
    with create_session() as session:
        session.merge(DagBundleModel(name="forgetting"))
        session.flush()
        for name in names:
            session.add(DagModel(dag_id=name, bundle_name="forgetting", fileloc="indexes.py"))
            session.add(
                DagRun(
                    dag_id=name,
                    run_id="scheduled__1",
                    run_type=DagRunType.SCHEDULED,
                    logical_date=datetime(2026, 1, 1, tzinfo=UTC),
                    state=DagRunState.RUNNING,
                )
            )

    def known(of: type[DagModel] | type[DagRun]) -> list[str]:
        with create_session() as session:
            return sorted(session.scalars(select(of.dag_id).where(of.dag_id.in_(names))))

    assert known(DagModel) == known(DagRun) == names
    assert forget(["tidetable__forgotten", "tidetable__never_seen"]) == 1
    assert known(DagModel) == known(DagRun) == ["tidetable__kept"]
    assert forget(["tidetable__forgotten"]) == 0
