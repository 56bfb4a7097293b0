"""The pipeline: Airflow runs the updates of every index. For a file in dags/: `dags()`.

Importing this imports no Airflow, and calling it reads YAML and nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidetable.core.extras import require
from tidetable.pipeline.catalog import read_catalog

if TYPE_CHECKING:
    from airflow.sdk import DAG

__all__ = ["by_hand_dags", "check_indexes", "dags", "index_dags"]


def dags(project: Path | None = None) -> dict[str, DAG]:
    """Every DAG of a project by its id: those with a schedule, and those to trigger by hand.

    A file in dags/ gives them to Airflow with `globals().update(dags())`. An index whose YAML has
    mistakes has none, and takes no other index down; `check_indexes` says what is wrong with it.
    """
    return index_dags(project) | by_hand_dags(project)


def index_dags(project: Path | None = None) -> dict[str, DAG]:
    """The DAG `tidetable__NAME` of every index, scheduled at its update interval."""
    require("airflow", "A DAG")
    from tidetable.pipeline.dag import index_dag

    made = map(index_dag, read_catalog(project).entries.values())
    return {dag.dag_id: dag for dag in made}


def by_hand_dags(project: Path | None = None) -> dict[str, DAG]:
    """The DAG `tidetable__NAME-by-hand` of every index: a form behind the Trigger button."""
    require("airflow", "A DAG")
    from tidetable.pipeline.by_hand import by_hand_dag

    made = map(by_hand_dag, read_catalog(project).entries.values())
    return {dag.dag_id: dag for dag in made}


def check_indexes(project: Path | None = None) -> None:
    """ValueError that names file and line of every mistake in the YAML files of the indexes.

    Airflow keeps one import error for each file in dags/, so this belongs into a file of its own.
    """
    mistakes = read_catalog(project).mistakes
    if mistakes:
        text = "\n".join(str(mistake) for mistake in mistakes)
        raise ValueError(f"These indexes have no DAG (airflow runs the others):\n{text}")
