"""The DAG of an index: plan, update, validate, maintain, once for each update interval."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, DeltaDataIntervalTimetable

from tidetable.config import Index, format_duration, format_time
from tidetable.pipeline.catalog import Entry
from tidetable.pipeline.dag_ids import by_hand_dag_id, dag_id
from tidetable.pipeline.links import page_url, reports_url
from tidetable.pipeline.spark_job import SparkJob
from tidetable.pipeline.tasks import Maintain, PlanUpdate, Validate

TRY_AGAIN = {"retries": 2, "retry_delay": timedelta(seconds=20)}


def index_asset(name: str) -> Asset:
    """Updated after every validated update; its extra has slot, live, inserted, expired, ..."""
    return Asset(name=dag_id(name), uri=f"x-tidetable://indexes/{name}", group="tidetable")


def index_dag(entry: Entry) -> DAG:
    """The DAG of one index. Slots are data intervals: Airflow says which, never the clock."""
    index = entry.index
    # Airflow compares the END date with the START of an interval.
    last_start = None if index.end is None else index.end - index.update_every
    with DAG(
        dag_id(index.name),
        description=index.description or f"{index.name}: {index.scheme_label}",
        schedule=DeltaDataIntervalTimetable(index.update_every),
        start_date=index.start,
        end_date=last_start,
        catchup=True,
        max_active_runs=1,
        default_args={"owner": "tidetable", **TRY_AGAIN},
        tags=["tidetable", index.scheme.name],
        doc_md=doc_md(entry),
    ) as dag:
        plan = PlanUpdate(task_id="plan", index_name=index.name, doc_md=PlanUpdate.__doc__)
        update = SparkJob(
            task_id="update",
            verb="update",
            index_name=index.name,
            # An instant of the run itself, so that a retry asks for the same slots.
            arguments=["--until", "{{ (data_interval_end or dag_run.run_after).isoformat() }}"],
            doc_md=SparkJob.__doc__,
        )
        validate = Validate(
            task_id="validate",
            index_name=index.name,
            outlets=[index_asset(index.name)],
            doc_md=Validate.__doc__,
        )
        maintain = Maintain(task_id="maintain", index_name=index.name, doc_md=Maintain.__doc__)
        plan >> update >> validate >> maintain
    return dag


def doc_md(entry: Entry) -> str:
    """What people read in Airflow about this index."""
    index = entry.index
    window = f"{format_duration(index.longest_lifetime)} = {index.period} updates"
    ends = "" if index.end is None else f" until {format_time(index.end)}"
    return f"""\
### {index.name}

{index.description or "An index of Tidetable: a Delta table that holds exactly the live rows."}

[Pictures of the index]({page_url(index.name)}) ·
[Quality reports (Data Docs)]({reports_url(index.name)}) · described by `{entry.file}`

| | |
|---|---|
| key | `{index.key}` |
| lives | from `{index.inserted_at}` to `{index.expires_at or index.lifetime}` |
| updates | every {format_duration(index.update_every)} from {format_time(index.start)}{ends} |
| longest lifetime | {window} |
| scheme | {index.scheme_label} |
| table | `{_shown(index)}` |
| Spark | `engine: {index.engine.value}` |

Each run is one slot, the data interval of the run:

1. **plan** says which slot is due, whether slots are missing, which cells will be touched and why.
   It waits while the last validation says that the table is wrong.
2. **update** applies the missing slots in order, one Delta commit each.
3. **validate** proves that the table holds exactly the live rows, and writes the report. A failure
   here stops the next update. Mend the table with a replay by the DAG
   `{by_hand_dag_id(index.name)}`; the schedule goes on.
4. **maintain** runs when due: checkpoint, VACUUM, clean-up.

Running an interval twice, or two at once, is safe: what counts is decided by the Delta commit.
"""


def _shown(index: Index) -> str:
    """Below the project only the part that is the user's; elsewhere the whole."""
    from tidetable.config import project_root

    table = Path(index.table)
    root = project_root()
    inside = "://" not in index.table and table.is_relative_to(root)
    return str(table.relative_to(root)) if inside else index.table
