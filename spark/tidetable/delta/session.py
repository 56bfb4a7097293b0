"""A Spark session that suits small, frequent updates of Delta tables."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = Path(".cache") / "jars"
"""Where `make setup` puts the Delta jars, below the project's root."""

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # One commit that appends here and removes there (see executor.py).
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false",
    "spark.databricks.delta.replaceWhere.dataColumns.enabled": "true",
    # The default of 50 tasks to read a log of a few files costs seconds at each read.
    "spark.databricks.delta.snapshotPartitions": "2",
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
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseParallelGC",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.log.level": "ERROR",
}


def spark_session(project_root: Path, app: str = "tidetable") -> SparkSession:
    """The active session, or a new one.

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
    builder = SparkSession.builder.appName(app)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    master = os.environ.get("TIDETABLE_SPARK_MASTER", "local[*]")
    if "SPARK_ENV_LOADED" not in os.environ:  # not started by spark-submit
        builder = builder.master(master)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        _find_java()
        memory = os.environ.get("TIDETABLE_DRIVER_MEMORY", "2g")
        builder = builder.config("spark.driver.memory", memory)
        builder = builder.config("spark.sql.warehouse.dir", str(project_root / ".cache/warehouse"))
        for name, value in _LOCAL_SETTINGS.items():
            builder = builder.config(name, value)
        builder = _with_delta_jars(builder, project_root)
    return builder.getOrCreate()


def _find_java() -> None:
    """The Java that set-up found, for whoever calls the command without `make`."""
    installed = Path(sys.prefix) / "java"
    if "JAVA_HOME" not in os.environ and installed.exists():
        os.environ["JAVA_HOME"] = str(installed)


def _with_delta_jars(builder: SparkSession.Builder, project_root: Path) -> SparkSession.Builder:
    jars = sorted((project_root / JARS).glob("*.jar"))
    if jars:
        # On the class path rather than as spark.jars: nothing is copied at each start.
        path = ":".join(str(jar) for jar in jars)
        return builder.config("spark.driver.extraClassPath", path).config(
            "spark.executor.extraClassPath", path
        )
    spark_minor = ".".join(version("pyspark").split(".")[:2])
    return builder.config(
        "spark.jars.packages", f"io.delta:delta-spark_{spark_minor}_2.13:{version('delta-spark')}"
    )


def cores(spark: SparkSession) -> int:
    """How many tasks can run at once."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect has no context
        return os.cpu_count() or 1
