"""Fetch what lets Spark read and write s3a:// paths, into .cache/jars beside the Delta jars.

hadoop-aws has to be of the very version of Hadoop that the installed pyspark brings.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pyspark

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import fetch_jars  # noqa: E402


def hadoop_version() -> str:
    """Of the client that pyspark brings along."""
    jars = Path(pyspark.__file__).parent / "jars"
    names = [path.name for path in jars.glob("hadoop-client-api-*.jar")]
    found = re.fullmatch(r"hadoop-client-api-(.+)\.jar", names[0]) if len(names) == 1 else None
    if found is None:
        sys.exit(f"{jars} has no hadoop-client-api jar, or several: {names}.")
    return found[1]


def main(folder: Path) -> None:
    package = f"org.apache.hadoop:hadoop-aws:{hadoop_version()}"
    jars = fetch_jars.resolve(package)
    if not any("hadoop-aws" in jar.name for jar in jars):
        sys.exit(f"Spark did not resolve {package}: it found {[jar.name for jar in jars]}.")
    folder.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        shutil.copy2(jar, folder)
    print(f"{len(jars)} jars of {package} in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".cache" / "jars")
