"""The machine and the versions that figures come from."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("pyspark", "delta-spark", "deltalake", "pyarrow", "chdb", "chdb-core", "polars")


def machine(spark: SparkSession) -> dict[str, str]:
    """What a reader has to know to place the figures, as name and value."""
    context = spark.sparkContext
    java = context._jvm.java.lang.System.getProperty("java.version")  # type: ignore[union-attr]
    facts = {
        "cores": str(context.defaultParallelism),
        "memory of the JVM": str(spark.conf.get("spark.driver.memory")),
        "java": str(java),
        "codec": str(spark.conf.get("spark.sql.parquet.compression.codec")),
        "row group": f"{int(str(spark.conf.get('spark.hadoop.parquet.block.size'))) >> 20} MB",
    }
    return here() | facts


def here() -> dict[str, str]:
    """The part of it that no session has to tell."""
    facts = {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    return facts | versions()


def in_words(facts: Mapping[str, str]) -> str:
    """The facts in one line of a page."""
    return "Machine: " + "; ".join(f"{name} {value}" for name, value in facts.items()) + "."


def versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
