"""The DAG by which people do something to an index: update, rebuild, replay, probe, maintain.

One for each index, and not one for each action with the index in a form: Airflow's rights are per
DAG, so whoever may trigger a DAG that takes any index reaches every index.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.branch import BaseBranchOperator
from airflow.sdk import DAG, Param

from tidetable.pipeline.catalog import Entry
from tidetable.pipeline.dag import TRY_AGAIN
from tidetable.pipeline.dag_ids import by_hand_dag_id, dag_id
from tidetable.pipeline.spark_job import SparkJob
from tidetable.pipeline.tasks import Maintain, Probe, Validate

if TYPE_CHECKING:
    from airflow.sdk import Context

ACTIONS = ("update", "rebuild", "replay", "probe", "maintain")
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_DOC = """\
### {name}, by hand

Trigger it, and choose what is to be done to this index alone; its schedule goes on beside it. Who may
trigger this DAG may do all of these to `{name}`, and nothing to any other index. Who may only read
`{dag_id}` sees the index, and cannot change it.

| action | fields | |
|---|---|---|
| update | until, fold | Every slot that ends by a time, in order, one commit each (or all in one), then a validation. Without a time: all that have ended. |
| rebuild | | Every cell written again, sorted and in as few files as possible, in one commit; the rows stay the same. |
| replay | from slot, from source, dry run | Restores the state before the slot and applies the slots since then again, from the source. Mends a table that something else has changed. |
| probe | key, alive at, rows in log | How many live rows a key has. The rows themselves are on the page of the index (button *Index page*): a log would keep them after they have expired. |
| maintain | delete, dry run | Checkpoints and clean-up now, due or not. Shows which files no kept version has; deletes them only if the box is ticked. |
"""  # noqa: E501 - a table has no shorter lines


class Choose(BaseBranchOperator):
    """The task that the form asks for; the others are skipped."""

    def choose_branch(self, context: Context) -> str:
        return str(context["params"]["action"])


def by_hand_dag(entry: Entry) -> DAG:
    """The form of one index."""
    name = entry.index.name
    with DAG(
        by_hand_dag_id(name),
        description=f"{name}: update, rebuild, replay, probe or maintain it now",
        schedule=None,
        # Nothing starts it but a person, whose run would wait for ever in a paused DAG. Also, the
        # form would unpause and trigger it by two requests at once, and on SQLite one of those can
        # end in "database is locked".
        is_paused_upon_creation=False,
        start_date=_LONG_AGO,
        catchup=False,
        params=_params(),
        render_template_as_native_obj=False,
        default_args={"owner": "tidetable", **TRY_AGAIN},
        tags=["tidetable", "by hand"],
        doc_md=_DOC.format(name=name, dag_id=dag_id(name)),
    ) as dag:
        choose = Choose(task_id="choose")
        # Anywhere is right: by hand people may stop before the slot that is due.
        validate = Validate(
            task_id="validate", index_name=name, due=False,
            trigger_rule="none_failed_min_one_success",
        )  # fmt: skip
        choose >> [_update(name), _rebuild(name), _replay(name)] >> validate
        choose >> [_probe(name), _maintain(name)]
    return dag


def _params() -> dict[str, Param]:
    return {
        "action": Param("update", type="string", enum=list(ACTIONS), title="Action",
                        description="What is to be done; the fields below belong to one each."),
        "until": _time("update: until", "Every slot that ends by this time. Empty: all that have "
                       "ended."),
        "fold": _box("update: fold", "All missing slots in one commit, after a long pause."),
        "from_slot": Param(1, type="integer", minimum=1, title="replay: from slot",
                           description="The first slot to apply again, as the page names it."),
        "from_source": _box("replay: from source", "Load that state from the source instead of "
                            "putting an old version back: for a log that is damaged."),
        "dry_run": _box("replay, maintain: dry run", "Only say what would be done, in the log of "
                        "the task."),
        "key": Param("", type="string", title="probe: key",
                     description="What to look up. Airflow keeps it with the run."),
        "alive_at": _time("probe: alive at", "Only rows still alive at this time. Empty: as of the "
                          "last update."),
        "rows_in_log": _box("probe: rows in log", "The rows go into the log of the task, and stay "
                            "there after they have expired."),
        "delete": _box("maintain: delete", "Delete the files that no kept version needs. Not "
                       "ticked: only show them."),
    }  # fmt: skip


def _time(title: str, told: str) -> Param:
    return Param(None, type=["null", "string"], format="date-time", title=title, description=told)


def _box(title: str, told: str) -> Param:
    return Param(False, type="boolean", title=title, description=told)


def _update(name: str) -> SparkJob:
    until = "{{ params.until or dag_run.run_after.isoformat() }}"
    return _job(name, "update", "--until", until, "{{ '--fold' if params.fold else '' }}")


def _rebuild(name: str) -> SparkJob:
    return _job(name, "rebuild")


def _replay(name: str) -> SparkJob:
    flags = [
        "{{ '--from-source' if params.from_source else '' }}",
        "{{ '--dry-run' if params.dry_run else '' }}",
    ]
    return _job(name, "replay", "--from", "{{ params.from_slot }}", *flags)


def _job(name: str, verb: str, *arguments: str) -> SparkJob:
    return SparkJob(task_id=verb, verb=verb, index_name=name, arguments=list(arguments))


def _probe(name: str) -> Probe:
    return Probe(
        task_id="probe",
        index_name=name,
        key="{{ params.key }}",
        alive_at="{{ params.alive_at or '' }}",
        rows_in_log="{{ params.rows_in_log }}",
    )


def _maintain(name: str) -> Maintain:
    return Maintain(
        task_id="maintain",
        index_name=name,
        force=True,
        delete="{{ params.delete }}",
        dry_run="{{ params.dry_run }}",
    )
