"""An example of your own work on top of an index: this DAG runs after every validated update.

It is scheduled on the asset of the first index (airflow runs it when that index's DAG has proved an
update). Copy it, name your index, and do your own work where it logs.
"""

import logging

from airflow.sdk import DAG, task

from tidetable.pipeline.catalog import read_catalog
from tidetable.pipeline.dag import index_asset

_names = list(read_catalog().entries)

if _names:
    _name = _names[-1]
    _asset = index_asset(_name)

    with DAG(
        "example_after_update",
        schedule=[_asset],
        catchup=False,
        tags=["tidetable", "example"],
        doc_md=(
            f"Runs after every update of `{_name}` that passed its validation, and logs what the "
            "update's asset event says. An example to copy."
        ),
    ) as dag:

        @task(inlets=[_asset])
        def report(triggering_asset_events=None) -> list[dict]:
            """What the updates since the last run say about themselves."""
            log = logging.getLogger(__name__)
            told = [
                dict(event.extra)
                for events in (triggering_asset_events or {}).values()
                for event in events
            ]
            for figures in told:
                log.info(
                    "slot %s: %s live rows, %s inserted, %s expired, imbalance %s",
                    *(figures.get(n) for n in ("slot", "live", "inserted", "expired", "imbalance")),
                )
            return told

        report()
