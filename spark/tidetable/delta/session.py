"""A Spark session that suits small, frequent updates of Delta tables."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tidetable.core.errors import TidetableError, TransientError, UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = Path(".cache") / "jars"
"""Where `make setup` puts the Delta jars, below the project's root."""

LOG = Path(".cache") / "spark.log"
"""What the JVM says, below the project's root; on the screen it would only be noise."""

_LOG_BYTES_MAX = 4 * 1024 * 1024
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # One commit that appends here and removes there (see executor.py).
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false",
    "spark.databricks.delta.replaceWhere.dataColumns.enabled": "true",
    # The default of 50 tasks to read a log of a few files costs seconds at each read.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Row groups small enough that a probe reads little and that their bounds serve as split points.
    "spark.hadoop.parquet.block.size": str(16 * 1024 * 1024),
    "spark.sql.sources.partitionOverwriteMode": "static",
}
"""What the code relies on, whichever master runs it."""

_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # Remembering the line of every DataFrame call costs a round trip to the JVM each.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseParallelGC",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
}


def spark_session(
    project_root: Path, app: str = "tidetable", extra: Mapping[str, str] | None = None
) -> SparkSession:
    """The active session, or a new one with `extra` settings on top of ours.

    Inside spark-submit the master is given by whoever submitted; otherwise it is
    TIDETABLE_SPARK_MASTER or all cores of this machine.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        for name, value in SETTINGS.items():
            if not name.startswith(("spark.sql.extensions", "spark.sql.catalog", "spark.hadoop")):
                active.conf.set(name, value)
        return active
    settings = {"spark.app.name": app, **SETTINGS}
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started the JVM
    if not submitted:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        _find_java()
        settings |= _local_settings(project_root)
    settings |= extra or {}
    if not submitted:
        _start_jvm(settings, project_root / LOG)
    return SparkSession.builder.config(map=settings).getOrCreate()


def _local_settings(project_root: Path) -> dict[str, str]:
    settings = {
        **_LOCAL_SETTINGS,
        "spark.master": os.environ.get("TIDETABLE_SPARK_MASTER", "local[*]"),
        "spark.driver.memory": os.environ.get("TIDETABLE_DRIVER_MEMORY", "2g"),
        "spark.sql.warehouse.dir": str(project_root / ".cache/warehouse"),
        **_delta_jars(project_root),
    }
    if not _is_debugging():
        options = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
        settings["spark.driver.extraJavaOptions"] += " " + options
    return settings


def _find_java() -> None:
    """The Java that set-up found, for whoever calls the command without `make`."""
    installed = Path(sys.prefix) / "java"
    if "JAVA_HOME" not in os.environ and installed.exists():
        os.environ["JAVA_HOME"] = str(installed)
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java" if home is None else str(Path(home) / "bin" / "java")):
        place = "on the PATH" if home is None else f"in {home} (JAVA_HOME)"
        raise UserError(
            f"There is no Java {place}, and Spark needs 17 or newer. "
            "Run `make setup`, which finds or installs one; or let JAVA_HOME name one."
        )


def _delta_jars(project_root: Path) -> dict[str, str]:
    # A project elsewhere (TIDETABLE_HOME) uses the jars of the repository that this code is in.
    places = (project_root, Path(__file__).resolve().parents[3])
    jars = next((found for root in places if (found := sorted((root / JARS).glob("*.jar")))), [])
    if jars:
        # On the class path rather than as spark.jars: nothing is copied at each start.
        path = ":".join(str(jar) for jar in jars)
        return {"spark.driver.extraClassPath": path, "spark.executor.extraClassPath": path}
    spark_minor = ".".join(version("pyspark").split(".")[:2])
    package = f"io.delta:delta-spark_{spark_minor}_2.13:{version('delta-spark')}"
    return {"spark.jars.packages": package}


# -- the JVM ---------------------------------------------------------------------------------------


def _start_jvm(settings: Mapping[str, str], log: Path) -> None:
    """Starts the JVM with its output in `log`, if this process has none yet.

    PySpark would let it write to our screen, and into what a program reads from us.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or _is_debugging():
        return
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        full = log.exists() and log.stat().st_size > _LOG_BYTES_MAX
        file = log.open("wb" if full else "ab")
    except OSError:
        return  # nowhere to write: rather noise than no Spark
    with file:
        began = file.tell()
        conf = SparkConf().setAll(list(settings.items()))
        try:
            gateway = launch_gateway(conf, {"stdout": file, "stderr": file})
            SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            raise _not_started(error, log, began) from error


def _not_started(error: Exception, log: Path, began: int) -> TidetableError:
    with log.open("rb") as file:
        file.seek(began)
        said = file.read().decode(errors="replace").strip()
    telling = [line for line in said.splitlines() if not line.lstrip().startswith("at ")]
    tail = "\n".join(f"  {line}" for line in telling[-8:])
    where = f"The end of {log}:\n{tail}" if tail else f"Its log, {log}, is empty: {error}"
    if "UnsupportedClassVersionError" in said:
        return UserError(f"This Java is too old for Spark: `make setup` finds 17 or newer. {where}")
    if "unresolved dependency" in said or "Server access error" in said:
        return UserError(f"The Delta jars are missing: `make setup` fetches them. {where}")
    return TransientError(
        "Spark did not start. Is there enough memory (TIDETABLE_DRIVER_MEMORY)? "
        f"TIDETABLE_DEBUG=1 shows all it says. {where}"
    )


def _is_debugging() -> bool:
    return bool(os.environ.get("TIDETABLE_DEBUG"))


def cores(spark: SparkSession) -> int:
    """How many tasks can run at once."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect has no context
        return os.cpu_count() or 1
