"""A DAG for airflow's Trigger button beside each index: update, rebuild, replay, probe, purge."""

from tidetable.pipeline import by_hand_dags

globals().update(by_hand_dags())
