"""A Spark session that suits small, frequent updates of Delta tables.

There are three ways to one: a JVM of our own (the command line), the JVM that spark-submit has
started, and a Spark Connect server (SPARK_REMOTE). What is done with it is the same.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tidetable.core.errors import TransientError, UserError
from tidetable.engine.jvm import (
    archived,
    delta_jars,
    delta_package,
    find_java,
    is_debugging,
    jars_of,
    quiet,
    spark_home,
    start_jvm,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = Path(".cache") / "spark.log"
"""What the JVM says, below the project's root; on the screen it would only be noise."""

_THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
CONNECT_PORT = 15002
_PARALLELISM = "spark.default.parallelism"

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # One commit that appends here and removes there (see commit.py).
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false",
    "spark.databricks.delta.replaceWhere.dataColumns.enabled": "true",
    # The default of 50 tasks to read a log of a few files costs seconds at each read.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Row groups small enough that a probe reads little and that their bounds serve as split points.
    "spark.hadoop.parquet.block.size": str(16 * 1024 * 1024),
    # A probe reads whole pages: with the default of 1 MB five times what it is asked for.
    "spark.hadoop.parquet.page.size": str(128 * 1024),
    "spark.sql.sources.partitionOverwriteMode": "static",
    # Text of users and of data is text: no `${...}` in it is a variable, a backslash in a literal
    # is what columns.sql_text takes it for, and a name in backticks is no regular expression.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    # What a task gets of new rows at a time, whatever a row takes (see parts.py).
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * 1024 * 1024),
    # Filters reach Parquet and Delta by way of Java: its older classes have no 10 October 1582.
    "spark.sql.datetime.java8API.enabled": "true",
}
"""What the code relies on, whichever master runs it."""

_START_SOON = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Half the work for a JVM that ends after a small update, but more for one with much to do."""

_LAST_LONG = "-XX:+UseParallelGC"
"""For a JVM that makes many updates, or large ones."""

_DELTA = SETTINGS["spark.sql.extensions"]
_ONLY_AT_START = ("spark.sql.extensions", "spark.sql.catalog", "spark.hadoop")

_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # Otherwise a task writes a file for each of a few partitions, and then all of them once more.
    "spark.shuffle.sort.bypassMergeThreshold": "1",
    # A JVM that updates several indexes has more programs than the 100 that Spark remembers: what
    # it forgets it writes and compiles anew, at every update.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Remembering the line of every DataFrame call costs a round trip to the JVM each.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
}


def spark_session(
    project_root: Path,
    app: str = "tidetable",
    extra: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> SparkSession:
    """The active session, or a new one with `extra` settings on top of ours.

    `brief` says that there is little to do, so that a JVM of our own had better start soon than
    be fast later.

    Inside spark-submit the master is given by whoever submitted; otherwise it is
    TIDETABLE_SPARK_MASTER or all cores of this machine. If SPARK_REMOTE names a Spark Connect
    server the session is one of its.
    """
    from pyspark.sql import SparkSession

    _hush()
    active = SparkSession.getActiveSession()
    if active is not None:
        return _configured(active)
    if remote := os.environ.get("SPARK_REMOTE"):
        return connect_session(remote)
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM
        settings = {"spark.app.name": app, **SETTINGS, **(extra or {})}
        return SparkSession.builder.config(map=_besides_what_is_given(settings)).getOrCreate()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Python of a task is this one, not whatever is first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    find_java()
    local = _local_settings(project_root, _START_SOON if brief else _LAST_LONG)
    settings = {"spark.app.name": app, **SETTINGS, **local, **(extra or {})}
    start_jvm(settings, project_root / LOG)
    return SparkSession.builder.config(map=settings).getOrCreate()


def _configured(session: SparkSession) -> SparkSession:
    """The session with those of our settings that can still be made."""
    with warnings.catch_warnings():
        # Of a setting that Spark calls deprecated, which must have our value nevertheless.
        warnings.simplefilter("ignore", UserWarning)
        for name, value in SETTINGS.items():
            if not name.startswith(_ONLY_AT_START):
                session.conf.set(name, value)
    return session


def _hush() -> None:
    """PySpark logs what goes wrong in SQL before it raises it; whoever catches it tells it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = not is_debugging()


def _local_settings(project_root: Path, tuning: str = _LAST_LONG) -> dict[str, str]:
    settings = {
        **_LOCAL_SETTINGS,
        "spark.master": os.environ.get("TIDETABLE_SPARK_MASTER", "local[*]"),
        "spark.driver.memory": os.environ.get("TIDETABLE_DRIVER_MEMORY", "2g"),
        "spark.sql.warehouse.dir": str(project_root / ".cache/warehouse"),
        **delta_jars(project_root),
    }
    options = [settings["spark.driver.extraJavaOptions"], _tuning(tuning), quiet()]
    settings["spark.driver.extraJavaOptions"] = " ".join([*options, archived(project_root)]).strip()
    return settings


def _tuning(usual: str) -> str:
    """Options for Java itself: what the user wants, or what suits most."""
    return os.environ.get("TIDETABLE_JAVA_OPTIONS", usual)


def cores(spark: SparkSession) -> int:
    """How many tasks can run at once."""
    if "SPARK_CONNECT_MODE_ENABLED" in os.environ:  # such a session has no context
        return _cores_of_server(spark)
    return max(1, int(spark.sparkContext.defaultParallelism))


@lru_cache(maxsize=4)
def _cores_of_server(spark: SparkSession) -> int:
    """Into as many parts Spark cuts what nobody has told it how to cut."""
    told = spark.conf.get(_PARALLELISM, None)
    if told is not None:  # our own server says it, which saves a job in every update
        return max(1, int(told))
    return max(1, spark.range(1000).selectExpr("spark_partition_id()").distinct().count())


# -- inside spark-submit ---------------------------------------------------------------------------


def submit_conf(
    project_root: Path, *, master: str = "local[*]", deploy_mode: str = "client"
) -> dict[str, str]:
    """What to give to spark-submit as --conf for a job, so that it starts quickly.

    A local master takes all of it from this machine. Any other gets the jars sent along, and no
    option that names a file here unless the driver runs here.
    """
    conf = dict(SETTINGS)
    conf["spark.ui.showConsoleProgress"] = "false"
    conf["spark.python.sql.dataFrameDebugging.enabled"] = "false"
    options = "-Duser.timezone=UTC"
    if deploy_mode == "client":
        options += " " + quiet()
    if master.startswith("local"):
        conf |= _LOCAL_SETTINGS
        conf |= delta_jars(project_root)
        conf["spark.driver.memory"] = os.environ.get("TIDETABLE_DRIVER_MEMORY", "2g")
        conf["spark.sql.warehouse.dir"] = str(project_root / ".cache/warehouse")
        conf["spark.pyspark.driver.python"] = conf["spark.pyspark.python"] = sys.executable
        options = " ".join([options, _tuning(_START_SOON), archived(project_root)]).strip()
    else:
        jars = jars_of(project_root)
        conf |= {"spark.jars": ",".join(map(str, jars))} if jars else delta_package()
    conf["spark.driver.extraJavaOptions"] = options
    return conf


def _besides_what_is_given(settings: Mapping[str, str]) -> dict[str, str]:
    """Our settings less those that whoever submitted has made; to extensions ours is added."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # before that a SparkConf knows nothing of what was given
    given = SparkConf()
    ours = {name: value for name, value in settings.items() if not given.contains(name)}
    extensions = str(given.get("spark.sql.extensions", ""))
    if extensions and _DELTA not in extensions:
        ours["spark.sql.extensions"] = f"{extensions},{_DELTA}"
    if str(given.get("spark.master", "")).startswith("local"):
        ours |= {
            name: value
            for name, value in _LOCAL_SETTINGS.items()
            if not given.contains(name) and not name.startswith("spark.driver")
        }
    try:
        SparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_DELTA)
    except Exception as error:
        raise UserError(
            "The application was submitted without Delta. Submit it with "
            f"--packages {delta_package()['spark.jars.packages']}, or with the settings of "
            "tidetable.engine.session.submit_conf."
        ) from error
    return ours


# -- Spark Connect ---------------------------------------------------------------------------------


def connect_session(url: str) -> SparkSession:
    """A session on a Spark Connect server such as sc://127.0.0.1:15002, with our settings.

    Once there is one, this process can have no session of a JVM of its own.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _hush()
    _check_it_listens(url)
    try:
        session = _configured(SparkSession.builder.remote(_sendable(url)).getOrCreate())
    except PySparkException as error:
        if "authentication token" not in str(error):
            raise
        raise UserError(
            f"The Spark Connect server at {_without_token(url)} wants a token, and this was none "
            "or another one. Write it as the password of Airflow's connection, or into "
            "SPARK_REMOTE as sc://HOST:PORT/;token=TOKEN."
        ) from error
    # The server may be anybody's: for a session's own writes this is spark.hadoop.parquet...
    for name in ("parquet.block.size", "parquet.page.size"):
        session.conf.set(name, SETTINGS[f"spark.hadoop.{name}"])
    session.conf.set("spark.sql.shuffle.partitions", _shuffle_partitions(session))
    if _DELTA not in str(session.conf.get("spark.sql.extensions", "")):
        raise UserError(
            f"The Spark Connect server at {_without_token(url)} runs without Delta. Start it with "
            f"spark.sql.extensions={_DELTA} and its jars; docs/operations.md says how."
        )
    return session


def connect_server_command(project_root: Path, port: int = CONNECT_PORT) -> list[str]:
    """The command that starts a Spark Connect server for this machine only.

    It runs until it is ended. What it says goes to stderr and stdout: send them to a file. Start it
    with `connect_server_environment`.
    """
    settings = {
        "spark.app.name": "tidetable connect",
        **SETTINGS,
        **_local_settings(project_root),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # A client that was killed leaves its session, and what it has persisted, behind.
        "spark.connect.session.manager.defaultSessionTimeout": "15m",
    }
    if cores_here := _cores_of(settings["spark.master"]):
        settings[_PARALLELISM] = str(cores_here)
    submit = spark_home() / "bin" / "spark-submit"
    command = [str(submit), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    return [*command, "spark-internal"]


def _cores_of(master: str) -> int | None:
    """How many tasks a local master runs at once; None if it is not local."""
    number = re.match(r"local\[(\d+)", master)
    if number is not None:
        return int(number[1])
    return {"local": 1, "local[*]": os.cpu_count()}.get(master)


def connect_server_environment() -> dict[str, str]:
    """What has to be in the environment of `connect_server_command`, besides what is there."""
    find_java()
    wanted = {
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    if home := os.environ.get("JAVA_HOME"):
        wanted["JAVA_HOME"] = home
    return wanted


def _check_it_listens(url: str) -> None:
    """A client would go on trying for minutes."""
    place = urlsplit(url.replace("sc://", "tcp://", 1))
    if not url.startswith("sc://") or place.hostname is None:
        raise UserError(
            f"SPARK_REMOTE is {url!r}; it has to be the address of a Spark Connect server, such as "
            f"sc://127.0.0.1:{CONNECT_PORT}."
        )
    try:
        with socket.create_connection((place.hostname, place.port or CONNECT_PORT), timeout=10):
            pass
    except OSError as error:
        raise TransientError(
            f"No Spark Connect server answers at {_without_token(url)}: {error}. Start it, or "
            "write `engine: submit` in the YAML."
        ) from error


def _sendable(url: str) -> str:
    """The address with its token as PySpark sends it.

    PySpark insists on TLS once there is a token, except for the name `localhost`. To this machine,
    and where `use_ssl=false` says so, the token goes as the header that it becomes anyway.
    """
    address, _, rest = url.partition("/;")
    parameters = dict(part.partition("=")[::2] for part in rest.split(";") if part)
    host = urlsplit(address.replace("sc://", "tcp://", 1)).hostname
    tls = parameters.get("use_ssl", str(host not in _THIS_MACHINE)).lower() != "false"
    if tls or "token" not in parameters:
        return url
    parameters["authorization"] = f"Bearer%20{parameters.pop('token')}"
    return f"{address}/;" + ";".join(f"{name}={value}" for name, value in parameters.items())


def _without_token(url: str) -> str:
    return url.split("/;")[0]


def _shuffle_partitions(session: SparkSession) -> str:
    """Few for a server on one machine, whoever started it; otherwise its own number."""
    if str(session.conf.get("spark.master", "")).startswith("local"):
        return _LOCAL_SETTINGS["spark.sql.shuffle.partitions"]
    return str(session.conf.get("spark.sql.shuffle.partitions", "200"))
