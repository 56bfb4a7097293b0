"""DAGs that people trigger, with a form: update, rebuild, replay, probe, purge."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Param

from tidetable.pipeline.dag import TRY_AGAIN
from tidetable.pipeline.spark_job import SparkJob
from tidetable.pipeline.tasks import Probe, Purge, Validate

_INDEX = "{{ params.index }}"
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def by_hand_dags(names: Sequence[str]) -> list[DAG]:
    """All of them, for the indexes of these names; none if there is no index."""
    if not names:
        return []
    return [_update(names), _rebuild(names), _replay(names), _probe(names), _purge(names)]


def _update(names: Sequence[str]) -> DAG:
    """### Update up to a time

    Applies every slot that ends by the given time, in order, one commit each (or all in one with
    `fold`), then validates. Without a time: every slot that has ended when the run was asked for.
    Slots that are done already are left alone.
    """
    with _dag(
        "tidetable_update",
        _update,
        index=_index(names),
        until=Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Until",
            description="Every slot that ends by this time. Empty: all that have ended.",
        ),
        fold=Param(
            False,
            type="boolean",
            title="Fold",
            description="All missing slots in one commit: quicker after a long pause.",
        ),
    ) as dag:
        until = "{{ params.until or dag_run.run_after.isoformat() }}"
        update = SparkJob(
            task_id="update",
            verb="update",
            index_name=_INDEX,
            arguments=["--until", until, "{{ '--fold' if params.fold else '' }}"],
        )
        update >> _validate()
    return dag


def _rebuild(names: Sequence[str]) -> DAG:
    """### Rebuild all cells now

    Writes every cell again, sorted and in as few files as possible, in one commit. The rows stay
    the same and so does the slot. Worth it after many small appends, or before heavy reading.
    """
    with _dag("tidetable_rebuild", _rebuild, index=_index(names)) as dag:
        SparkJob(task_id="rebuild", verb="rebuild", index_name=_INDEX) >> _validate()
    return dag


def _replay(names: Sequence[str]) -> DAG:
    """### Replay from a slot

    Restores the state before the slot and applies all slots since then again, from the source. This
    mends a table that something else has changed, and takes in rows that the source has corrected.
    The schedule of the index goes on by itself afterwards.
    """
    with _dag(
        "tidetable_replay",
        _replay,
        index=_index(names),
        from_slot=Param(
            1,
            type="integer",
            minimum=1,
            title="From slot",
            description="The first slot to apply again; the page and the reports name slots.",
        ),
        dry_run=Param(
            False,
            type="boolean",
            title="Dry run",
            description="Only say what would be done, in the log of the task.",
        ),
    ) as dag:
        replay = SparkJob(
            task_id="replay",
            verb="replay",
            index_name=_INDEX,
            arguments=[
                "--from",
                "{{ params.from_slot }}",
                "{{ '--dry-run' if params.dry_run else '' }}",
            ],
        )
        replay >> _validate()
    return dag


def _probe(names: Sequence[str]) -> DAG:
    """### Probe a key

    The live rows of one key, in the log and in the result (XCom) of the task. No JVM is started;
    the page of the index has a box that does the same at once.
    """
    with _dag(
        "tidetable_probe",
        _probe,
        index=_index(names),
        key=Param("", type="string", minLength=1, title="Key", description="What to look up."),
        alive_at=Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Alive at",
            description="Only rows still alive at this time. Empty: as of the last update.",
        ),
    ) as dag:
        Probe(
            task_id="probe",
            index_name=_INDEX,
            key="{{ params.key }}",
            alive_at="{{ params.alive_at or '' }}",
        )
    return dag


def _purge(names: Sequence[str]) -> DAG:
    """### Purge

    Shows which files belong to no version that is kept any longer. Only if the box is ticked they
    are deleted (VACUUM), which ends time travel beyond `keep_versions_for`.
    """
    with _dag(
        "tidetable_purge",
        _purge,
        index=_index(names),
        delete=Param(
            False,
            type="boolean",
            title="Delete",
            description="Not ticked: only show what would be deleted.",
        ),
    ) as dag:
        Purge(task_id="purge", index_name=_INDEX, delete="{{ params.delete }}")
    return dag


# -- parts ---------------------------------------------------------------------------------------


def _dag(dag_id: str, told: Any, **params: Param) -> DAG:
    """A DAG without a schedule, documented by the docstring of the function that makes it."""
    lines = [line.removeprefix("    ") for line in (told.__doc__ or "").splitlines()]
    return DAG(
        dag_id,
        description=lines[0].removeprefix("### "),
        schedule=None,
        # Nothing starts it but a person, whose run would wait for ever in a paused DAG. Also, the
        # form would unpause and trigger it by two requests at once, and on SQLite one of those can
        # end in "database is locked".
        is_paused_upon_creation=False,
        start_date=_LONG_AGO,
        catchup=False,
        params=params,
        render_template_as_native_obj=False,
        default_args={"owner": "tidetable", **TRY_AGAIN},
        tags=["tidetable", "by hand"],
        doc_md="\n".join(lines),
    )


def _index(names: Sequence[str]) -> Param:
    return Param(names[0], type="string", enum=list(names), title="Index")


def _validate() -> Validate:
    # Anywhere is right: by hand people may stop before the slot that is due.
    return Validate(task_id="validate", index_name=_INDEX, due=False)
