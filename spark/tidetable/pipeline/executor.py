"""Airflow's LocalExecutor with workers that have loaded beforehand what our tasks import.

Its workers are forked from the scheduler, and every task from a worker. What the scheduler has
imported when it starts the executor costs a task nothing: without this, each validation would spend
most of its time on importing Great Expectations, and each update on importing the client of Spark
Connect.
"""

from __future__ import annotations

import importlib
import logging
import time

from airflow.executors.local_executor import LocalExecutor

log = logging.getLogger(__name__)

# Only what starts no thread and opens nothing when it is imported: a fork would not survive that.
MODULES = (
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.dag_processing.bundles.local",
    "airflow.dag_processing.dagbag",
    "airflow.providers.standard.operators.python",
    "airflow.providers.standard.decorators.python",
    "tidetable.pipeline.by_hand",
    "tidetable.pipeline.dag",
    "tidetable.pipeline.metrics",
    "tidetable.pipeline.preparation",
    "tidetable.table.upkeep",
    "tidetable.table.read",
    "tidetable.table.history",
    "tidetable.quality.suite",
    "tidetable.quality.site",
)

CLIENT = (
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.functions",
    "tidetable.cli",
    "tidetable.output.show",
    "tidetable.advisor.choose",
    "tidetable.engine.updater",
    "tidetable.engine.replay",
    "tidetable.engine.rebuild",
)
"""For indexes with `engine: connect`. gRPC starts its threads with the first connection only."""


class WarmLocalExecutor(LocalExecutor):
    """For `[core] executor = tidetable.pipeline.executor.WarmLocalExecutor`."""

    def start(self) -> None:
        """Loads the modules, then forks the workers."""
        load()
        super().start()


def load() -> None:
    """Imports the modules; one that is missing is the business of the task that needs it."""
    from tidetable.quality.gx_import import great_expectations

    began = time.monotonic()
    # It tells at length what it does not document.
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    try:
        great_expectations()  # before the modules: one of them would import all of it
    except Exception:
        log.exception("Great Expectations cannot be loaded beforehand")
    for name in (*MODULES, *(CLIENT if _has_clients() else ())):
        try:
            importlib.import_module(name)
        except Exception:
            log.exception("%s cannot be loaded beforehand", name)
    log.info("Loaded what tasks need in %.1f s", time.monotonic() - began)


def _has_clients() -> bool:
    """Whether an index of this project is updated through Spark Connect."""
    from tidetable.config import Engine
    from tidetable.pipeline.catalog import read_catalog

    return any(entry.index.engine is Engine.CONNECT for entry in read_catalog().entries.values())
