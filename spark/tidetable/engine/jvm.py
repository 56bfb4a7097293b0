"""The JVM that Spark runs in: which Java, which jars, and what it says when it does not start."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tidetable.config.project import repository
from tidetable.core.errors import TidetableError, TransientError, UserError

JARS = Path(".cache") / "jars"
"""Where `make setup` puts the Delta jars, below the project's root."""

ARCHIVE = Path(".cache") / "spark.jsa"
"""Where archive.py puts Spark's classes as a JVM has them in memory."""

_LOG_BYTES_MAX = 4 * 1024 * 1024
_BROUGHT_BY_PYSPARK = Path(__file__).with_name("brought_by_pyspark.txt")
"""What Delta asks for and pyspark has in newer versions, as Maven coordinates."""

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


def find_java() -> None:
    """The Java that set-up found, for whoever calls the command without `make`."""
    installed = Path(sys.prefix) / "java"
    if "JAVA_HOME" not in os.environ and installed.exists():
        os.environ["JAVA_HOME"] = str(installed)
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java" if home is None else str(Path(home) / "bin" / "java")):
        place = "on the PATH" if home is None else f"in {home} (JAVA_HOME)"
        setup = "run `make setup`, which finds or installs one" if repository() else "install one"
        raise UserError(
            f"There is no Java {place}, and Spark needs 17 or newer: {setup}, or let JAVA_HOME "
            "name one."
        )


def _places(project_root: Path) -> list[Path]:
    """A project elsewhere (TIDETABLE_HOME) uses what the repository of this code has set up."""
    here = repository()
    return [project_root] if here is None else [project_root, here]


def jars_of(project_root: Path) -> list[Path]:
    """The Delta jars that `make setup` has fetched; none if it has not."""
    places = _places(project_root)
    return next((found for root in places if (found := sorted((root / JARS).glob("*.jar")))), [])


def archived(project_root: Path) -> str:
    """Java's options for the archive of classes; it says nothing of one that does not fit."""
    found = next(
        (root / ARCHIVE for root in _places(project_root) if (root / ARCHIVE).exists()), None
    )
    if found is None:
        return ""
    return f'"-XX:SharedArchiveFile={found}" -Xshare:auto -Xlog:disable -Xlog:all=error:stderr'


def delta_jars(project_root: Path) -> dict[str, str]:
    """Settings that put Delta on the class path of a JVM of this machine."""
    jars = jars_of(project_root)
    if not jars:
        return delta_package()
    # On the class path rather than as spark.jars: nothing is copied at each start.
    path = ":".join(str(jar) for jar in jars)
    return {"spark.driver.extraClassPath": path, "spark.executor.extraClassPath": path}


def delta_package() -> dict[str, str]:
    """Settings that let Spark fetch Delta itself."""
    spark_minor = ".".join(version("pyspark").split(".")[:2])
    package = f"io.delta:delta-spark_{spark_minor}_2.13:{version('delta-spark')}"
    brought = _BROUGHT_BY_PYSPARK.read_text().split()
    return {"spark.jars.packages": package, "spark.jars.excludes": ",".join(brought)}


def spark_home() -> Path:
    """Where the pip package has put Spark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


_FETCHED_BY_SPARK = (
    "Spark fetches them when it starts, from Maven's registry, and could not. Let "
    "conf/spark-defaults.conf (SPARK_CONF_DIR) name one that it reaches (spark.jars.repositories) "
    "or a folder that has them (spark.jars.ivy), or put the jars into .cache/jars of the project"
)

# -- starting it -----------------------------------------------------------------------------------


def start_jvm(settings: Mapping[str, str], log: Path) -> None:
    """Starts the JVM with its output in `log`, if this process has none yet.

    PySpark would let it write to our screen, and into what a program reads from us.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or is_debugging():
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
            raise not_started(error, log, began) from error


def not_started(error: Exception, log: Path, began: int) -> TidetableError:
    with log.open("rb") as file:
        file.seek(began)
        said = file.read().decode(errors="replace").strip()
    telling = [line for line in said.splitlines() if not line.lstrip().startswith("at ")]
    tail = "\n".join(f"  {line}" for line in telling[-8:])
    where = f"The end of {log}:\n{tail}" if tail else f"Its log, {log}, is empty: {error}"
    if "UnsupportedClassVersionError" in said:
        return UserError(f"This Java is too old for Spark, which needs 17 or newer. {where}")
    if "unresolved dependency" in said or "Server access error" in said:
        fetched = "`make setup` fetches them" if repository() else _FETCHED_BY_SPARK
        return UserError(f"The Delta jars are missing: {fetched}. {where}")
    return TransientError(
        "Spark did not start. Is there enough memory (TIDETABLE_DRIVER_MEMORY)? "
        f"TIDETABLE_DEBUG=1 shows all it says. {where}"
    )


def is_debugging() -> bool:
    """Whether somebody wants to see all that Spark says."""
    return bool(os.environ.get("TIDETABLE_DEBUG"))


def quiet() -> str:
    """Java's options for a JVM that says only what went wrong; TIDETABLE_DEBUG lets it talk."""
    return "" if is_debugging() else f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
