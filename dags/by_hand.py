"""A DAG for airflow's Trigger button beside each index: update, rebuild, replay, probe, purge."""

from tidetable.pipeline.by_hand import by_hand_dag
from tidetable.pipeline.catalog import read_catalog

for _entry in read_catalog().entries.values():
    _dag = by_hand_dag(_entry)
    globals()[_dag.dag_id] = _dag
