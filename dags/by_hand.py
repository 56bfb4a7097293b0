"""DAGs for airflow's Trigger button: update up to a time, rebuild, replay, probe, purge."""

from tidetable.pipeline.by_hand import by_hand_dags
from tidetable.pipeline.catalog import read_catalog

for _dag in by_hand_dags(list(read_catalog().entries)):
    globals()[_dag.dag_id] = _dag
