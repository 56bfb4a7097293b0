"""A DAG with a form beside each index: update, rebuild, replay, probe, maintain."""

from tidetable.pipeline import by_hand_dags

globals().update(by_hand_dags())
