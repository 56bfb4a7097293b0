"""The tasks of an index's DAG that need no JVM: plan, validate, maintain, probe.

They are thin: what they call is in tidetable.delta and tidetable.quality and serves the command
line as well. Everything heavy is imported when a task runs, never while a DAG is parsed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
)

from tidetable.config import format_time, parse_time
from tidetable.core.errors import TidetableError
from tidetable.output.characters import visible
from tidetable.pipeline.catalog import load_entry, project_root
from tidetable.pipeline.dag_ids import by_hand_dag_id
from tidetable.pipeline.endings import in_airflow, no_pointless_retry
from tidetable.pipeline.links import PageLink, ReportsLink

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidetable.config import Index
    from tidetable.quality import Outcome

LOOK_AGAIN = timedelta(seconds=30)
"""So often a run that was stopped by a failed validation looks whether the table was mended."""


class IndexTask(BaseOperator):
    """A task about one index."""

    template_fields: Sequence[str] = ("index_name",)
    operator_extra_links: Collection[BaseOperatorLink] = (PageLink(),)
    ui_color = "#e8f4ea"

    def __init__(self, *, index_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.index_name = index_name

    def index(self) -> Index:
        """As its file is now; a mistake in it fails the task at once, with file and line."""
        try:
            return load_entry(self.index_name)
        except TidetableError as error:
            raise AirflowFailException(error.told(in_airflow)) from None


class PlanUpdate(IndexTask):
    """Which slot is due, what is missing, which cells will be touched and why.

    Waits for the source's grace, and for somebody to mend a table that the last validation has
    found wrong: an update on top of it would only bury the fault.
    """

    template_fields = ("index_name", "until")

    def __init__(self, *, until: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.until = until

    @no_pointless_retry
    def execute(self, context: Context) -> dict[str, Any]:
        from tidetable.pipeline.preparation import prepare
        from tidetable.table.damage import DamagedTable

        index = self.index()
        until = until_of(context, self.until)
        self._wait_for_grace(index, until)
        self._wait_until_mended(index)
        try:
            found = prepare(index, until)
        except DamagedTable as error:
            # The report says in detail what is wrong, and makes the next runs wait. There can be
            # none if the log has no note left.
            with suppress(TidetableError):
                check(index, None, context)
            raise AirflowFailException(error.told(in_airflow)) from None
        except TidetableError as error:
            if error.retry_can_help:
                raise
            raise AirflowFailException(error.told(in_airflow)) from None
        for sentence in found.sentences():
            self.log.info(sentence)
        return found.as_json()

    def _wait_for_grace(self, index: Index, until: datetime) -> None:
        if not index.source.grace:
            return
        ready = min(until, index.end or until) + index.source.grace
        if datetime.now(UTC) < ready:
            self.log.info("The source is complete at %s: waiting.", format_time(ready))
            raise AirflowRescheduleException(ready)

    def _wait_until_mended(self, index: Index) -> None:
        from tidetable.quality import latest, reports_home
        from tidetable.table.state import IndexTable

        last = latest(reports_home(project_root()), index.name)
        log = IndexTable(index).log()
        if last is None or last["success"] or log is None or last["version"] != log.rows_version:
            return
        self.log.warning(
            "The validation of slot %s failed, and the table is still as it was then: %s. No "
            "update before it is mended, for instance by a replay with the DAG %s. Looking again "
            "in %s s.",
            last["slot"],
            "; ".join(str(finding) for finding in last["failed"]),
            by_hand_dag_id(index.name),
            int(LOOK_AGAIN.total_seconds()),
        )
        raise AirflowRescheduleException(datetime.now(UTC) + LOOK_AGAIN)


class Validate(IndexTask):
    """The quality report: fails if the table is not what it must be, and so stops what follows.

    If all is well the index's asset is updated, with the figures of the last update.
    """

    template_fields = ("index_name", "until")
    operator_extra_links = (PageLink(), ReportsLink())

    def __init__(self, *, until: str = "", due: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.until = until
        self.due = due
        """Whether the table has to stand at the slot of this run's interval, or anywhere."""

    @no_pointless_retry
    def execute(self, context: Context) -> dict[str, Any]:
        from tidetable.pipeline.metrics import emit
        from tidetable.pipeline.preparation import slot_due
        from tidetable.table.history import Updates

        index = self.index()
        due = slot_due(index, until_of(context, self.until)) if self.due else None
        outcome = check(index, due, context)
        for finding in outcome.warnings:
            self.log.warning("%s: %s", finding.name, finding.sentence)
        for finding in outcome.failed:
            self.log.error("%s: %s", finding.name, finding.sentence)
        if not outcome.success:
            raise AirflowFailException(
                f"{len(outcome.failed)} of {outcome.checked} checks failed, no further update "
                f"until the table is mended: {'; '.join(one.sentence for one in outcome.failed)}"
            )
        self.log.info("Slot %s: %s.", outcome.slot, outcome.tally)
        last = Updates(index).last(1)
        figures = {"slot": outcome.slot, **(last[0].figures() if last else {})}
        emit(index.name, figures)
        for asset in self.outlets:
            context["outlet_events"][asset].extra.update(figures)
        return {
            "success": True,
            "slot": outcome.slot,
            "checked": outcome.checked,
            "warnings": [finding.sentence for finding in outcome.warnings],
            "figures": figures,
        }


class Maintain(IndexTask):
    """Checkpoints, files that no version needs, old rows: when due; else it succeeds and says so.

    Not a skip: in Airflow's grid that is how a run looks in which something was left out.
    """

    template_fields = ("index_name", "delete", "dry_run")

    def __init__(
        self,
        *,
        force: bool = False,
        delete: str | bool = True,
        dry_run: str | bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.force = force
        """Whether a person asks for all of it, due or not."""

        self.delete = delete
        self.dry_run = dry_run

    @no_pointless_retry
    def execute(self, context: Context) -> dict[str, Any]:
        from tidetable.output.show import maintenance_lines
        from tidetable.table.upkeep import maintain, outstanding

        index = self.index()
        if _ticked(self.dry_run):
            done = outstanding(index)
        else:
            done = maintain(index, force=self.force, purging=_ticked(self.delete))
        for line in maintenance_lines(done, to_purge="tick `delete` to delete them"):
            self.log.info("%s", visible(line))
        if not done["done"]:
            self.log.info("Nothing was done.")
        return {name: value for name, value in done.items() if name != "paths"}


class Probe(IndexTask):
    """How many live rows a key has; the rows only if asked for, and then in the log alone.

    Airflow keeps results (XCom) and logs for as long as its owner likes: rows that were to expire
    would live on there. The page shows them and keeps nothing.
    """

    template_fields = ("index_name", "key", "alive_at", "rows_in_log")

    def __init__(
        self, *, key: str, alive_at: str = "", rows_in_log: str | bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.key = key
        self.alive_at = alive_at
        self.rows_in_log = rows_in_log

    @no_pointless_retry
    def execute(self, context: Context) -> dict[str, Any]:
        from tidetable.pipeline.probing import probe

        if not self.key:
            raise AirflowFailException("key: no key was given; write one into the form.")
        try:
            when = parse_time(self.alive_at) if self.alive_at else None
        except ValueError as error:
            raise AirflowFailException(f"alive_at: {error}") from None
        try:
            found = probe(self.index(), self.key, when)
        except TidetableError as error:
            raise AirflowFailException(error.told(in_airflow)) from None
        rows = len(found["rows"])
        more = " (there are more)" if found["cut"] else ""
        told = "1 live row" if rows == 1 else f"{rows} live rows"
        self.log.info("%s%s as of %s (slot %s)", told, more, found["as_of"], found["slot"])
        if _ticked(self.rows_in_log):
            self._tell(found)
        elif rows:
            self.log.info(
                "They are on the page of the index (button Index page), which keeps nothing. Tick "
                "`rows in log` to have them here, for as long as Airflow keeps this log."
            )
        return {"live_rows": rows, **{name: found[name] for name in ("slot", "as_of", "cut")}}

    def _tell(self, found: dict[str, Any]) -> None:
        names = [column["name"] for column in found["columns"]]
        width = max(map(len, names), default=0)
        for number, values in enumerate(found["rows"], start=1):
            self.log.info("row %s", number)
            for name, value in zip(names, values, strict=True):
                self.log.info("  %s", visible(f"{name.ljust(width)} = {value}"))


# -- what they share -----------------------------------------------------------------------------


def _ticked(box: str | bool) -> bool:
    """Templates make text of a form's box."""
    return str(box).lower() == "true"


def until_of(context: Context, given: str = "") -> datetime:
    """The time up to which a run goes: what a form says, else the end of its data interval.

    A run by hand without a logical date has no interval: then the time for which it was asked.
    """
    if given:
        try:
            return parse_time(given)
        except ValueError as error:
            raise AirflowFailException(f"until: {error}") from None
    end = context.get("data_interval_end") or context["dag_run"].run_after
    assert end is not None
    return datetime.fromtimestamp(end.timestamp(), UTC)


def check(index: Index, due: int | None, context: Context) -> Outcome:
    """The quality report of this run."""
    from tidetable.quality import reports_home, validate

    run = context["dag_run"].run_id
    return validate(index, due_slot=due, reports=reports_home(project_root()), run_name=run)
