"""One verb of the command line, run on Spark by an Airflow task.

`engine: submit` submits it as an application of its own to whatever master the connection names;
`engine: connect` runs the same command in the process of the task, as a client of a Spark Connect
server. What it did is read from the table of updates, so it does not matter where the driver ran.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidetable.config import Engine, Index, project_root
from tidetable.pipeline.catalog import load_entry
from tidetable.pipeline.connect_client import run_command
from tidetable.pipeline.endings import no_pointless_retry
from tidetable.pipeline.links import PageLink

if TYPE_CHECKING:
    from airflow.sdk import Context

_JOBS = Path(__file__).resolve().parents[1] / "jobs"
_USER_ERROR = 2
"""The exit status that says: the same call fails again until somebody changes something."""


class Killed(BaseException):
    """Airflow wants the task to end. No handler of errors is to take it for one of the update's;
    Airflow itself counts it as a failure, which it may try again."""


class SparkJob(SparkSubmitOperator):
    """Runs `spark/tidetable/jobs/VERB.py INDEX ARGUMENTS` and returns the updates that it made.

    Several arguments may come from one template: an empty one is left out, so that a form's empty
    field is no argument.
    """

    template_fields: Sequence[str] = (
        *SparkSubmitOperator.template_fields,
        "index_name",
        "arguments",
    )
    template_fields_renderers = {"arguments": "json"}  # noqa: RUF012 - as Airflow declares it
    operator_extra_links = (PageLink(),)
    ui_color = "#d6eef0"

    def __init__(
        self, *, verb: str, index_name: str, arguments: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(name=f"tidetable {verb}", **kwargs)
        self.verb = verb
        self.index_name = index_name
        self.arguments = list(arguments)
        self._is_client = False

    @no_pointless_retry
    def execute(self, context: Context) -> list[dict[str, Any]]:  # type: ignore[override]
        """Runs the job on the engine that the index asks for."""
        index = load_entry(self.index_name)
        root = project_root()
        arguments = [index.name, *(one for one in self.arguments if one), "--json"]
        before = _version(index)
        if index.engine is Engine.CONNECT:
            self._connect(index, root, arguments)
        else:
            self._submit(index, root, arguments, context)
        done = _updates_since(index, before)
        if not done:
            self.log.info("Nothing was to be done.")
        for update in done:
            self._tell(update)
        return done

    # -- engines -----------------------------------------------------------------------------------

    def _submit(self, index: Index, root: Path, arguments: list[str], context: Context) -> None:
        from tidetable.engine.jvm import find_java
        from tidetable.engine.session import submit_conf

        # A connection that is missing is an error here; the operator would fall back to YARN.
        self._conn_id = index.connection or "spark_default"
        connection = BaseHook.get_connection(self._conn_id)
        mode = str(connection.extra_dejson.get("deploy-mode", "client"))
        conf = submit_conf(root, master=connection.host or "", deploy_mode=mode)
        self.application = str(_JOBS / f"{self.verb}.py")
        self.application_args = arguments
        self.conf = conf
        self.env_vars = {"TIDETABLE_HOME": str(root)}
        find_java()
        _find_spark_submit()
        try:
            super().execute(context)
        except AirflowException as error:
            if f"Error code is: {_USER_ERROR}." in str(error):
                raise AirflowFailException(
                    f"tidetable {self.verb} says that a retry cannot help; the log above says why."
                ) from error
            raise

    def _connect(self, index: Index, root: Path, arguments: list[str]) -> None:
        url = SparkConnectHook(index.connection or "spark_connect_default").get_connection_url()
        self.log.info("on the Spark Connect server %s", url.split(";")[0])
        self._is_client = True
        try:
            status = run_command([self.verb, *arguments], url, root, self.log.info)
        finally:
            self._is_client = False
        if status == _USER_ERROR:
            raise AirflowFailException(
                f"tidetable {self.verb} says that a retry cannot help; the log above says why."
            )
        if status:
            raise AirflowException(f"tidetable {self.verb} ended with exit status {status}.")

    def on_kill(self) -> None:
        """Ends the client as well; what it had not committed has not happened."""
        if self._is_client:
            # Airflow calls this from a signal's handler, and would let the command go on.
            raise Killed(f"tidetable {self.verb} was killed.")
        if self._hook is not None:
            super().on_kill()

    # -- words -------------------------------------------------------------------------------------

    def _tell(self, update: dict[str, Any]) -> None:
        self.log.info(
            "slot %(slot)s (%(kind)s, version %(version)s): %(inserted)s inserted, %(expired)s "
            "expired, %(dead_on_arrival)s dead on arrival, %(quarantined)s quarantined, %(live)s "
            "live; %(rewritten_rows)s rows rewritten, %(written_bytes)s bytes written",
            update,
        )
        for touch in update["touched"]:
            self.log.info("  cell (%(g)s,%(e)s): %(action)s (%(why)s)", touch)


def _find_spark_submit() -> None:
    """The one of this environment if there is no other: it is looked for on the PATH only."""
    if shutil.which("spark-submit") is None:
        own = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), own])


def _version(index: Index) -> int:
    from tidetable.table.state import IndexTable

    log = IndexTable(index).log()
    return -1 if log is None else log.version


def _updates_since(index: Index, version: int) -> list[dict[str, Any]]:
    from tidetable.table.history import Updates

    return [row.as_json() for row in Updates(index).last(200) if row.version > version]
