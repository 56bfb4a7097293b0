"""Fetch the jars that Spark needs for Delta tables, once, into .cache/jars/.

Spark resolves them itself (`spark.jars.packages`), as it would at the start of every session; we
copy what it resolved, so that sessions start without looking for them and without a network.
The versions are those of the installed `pyspark` and `delta-spark`: they are pinned in one place.
"""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"
SCALA = "2.13"

# Delta asks for these, but pyspark brings its own, newer ones.
BROUGHT_BY_PYSPARK = (
    (ROOT / "spark" / "tidetable" / "engine" / "brought_by_pyspark.txt").read_text().split()
)


def delta_package() -> str:
    """The Maven coordinates of Delta for the installed Spark, e.g. delta-spark_4.2_2.13."""
    spark = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{spark}_{SCALA}:{version('delta-spark')}"


def resolve(package: str) -> list[Path]:
    """Let Spark download `package` and what it needs. No session is started, only its JVM."""
    conf = SparkConf(loadDefaults=False)
    conf.set("spark.jars.packages", package)
    conf.set("spark.jars.excludes", ",".join(BROUGHT_BY_PYSPARK))
    conf.set("spark.jars.ivy", str(CACHE / "ivy"))
    gateway = launch_gateway(conf)
    try:
        resolved = gateway.jvm.System.getProperty("spark.jars") or ""
    finally:
        gateway.shutdown()
    return [Path(unquote(urlparse(jar).path)) for jar in resolved.split(",") if jar]


def fetch(folder: Path) -> int:
    """Fill `folder` with the jars and return how many. Does nothing if they are there already."""
    package = delta_package()
    wanted = "\n".join([package, *(f"without {jar}" for jar in BROUGHT_BY_PYSPARK), ""])
    note = folder / "packages.txt"
    if note.exists() and note.read_text() == wanted:
        return len(list(folder.glob("*.jar")))

    jars = resolve(package)
    if not any(package.split(":")[1] in jar.name for jar in jars):
        sys.exit(f"Spark did not resolve {package}: it found {[jar.name for jar in jars]}.")
    unfinished = folder.with_name(folder.name + ".unfinished")
    for old in (unfinished, folder):
        shutil.rmtree(old, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for jar in jars:
        shutil.copy2(jar, unfinished)
    (unfinished / note.name).write_text(wanted)
    unfinished.rename(folder)
    return len(jars)


if __name__ == "__main__":
    print(f"{fetch(CACHE / 'jars')} jars of {delta_package()} in {CACHE / 'jars'}")
