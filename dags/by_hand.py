"""For airflow's Trigger button, a DAG for each index: update, rebuild, replay, probe, maintain."""

from tidetable.pipeline import by_hand_dags

globals().update(by_hand_dags())
