"""How the DAGs of an index are called, without Airflow."""

from __future__ import annotations

PREFIX = "tidetable__"
BY_HAND = "-by-hand"


def dag_id(name: str) -> str:
    return f"{PREFIX}{name}"


def by_hand_dag_id(name: str) -> str:
    """With a dash: no name of an index has one, so it is never the DAG of another index."""
    return f"{PREFIX}{name}{BY_HAND}"
