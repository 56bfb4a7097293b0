"""An archive of the classes that Spark loads, made once: a JVM that gets it starts sooner.

    python -m tidetable.engine.archive [PROJECT]

Java (17 or newer) writes it when a first application ends, which here is an update of two rows. A
later JVM that finds it unfit, because of another Java or other jars, goes on without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tidetable.engine.jvm import ARCHIVE, archived, find_java, jars_of, spark_home
from tidetable.engine.session import submit_conf

_JOB = Path(__file__).resolve().parents[1] / "jobs" / "update.py"
_WITHIN_S = 300


def make_archive(project_root: Path) -> bool:
    """Makes the archive below `.cache`; False if it is there already, or could not be made."""
    archive = project_root / ARCHIVE
    stamp = archive.with_suffix(".txt")
    find_java()
    wanted = _made_of(project_root)
    if archive.exists() and stamp.exists() and stamp.read_text() == wanted:
        return False
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        unfinished = Path(folder) / archive.name
        _run_an_update(project_root, Path(folder), unfinished)
        if not unfinished.exists():
            return False
        archive.unlink(missing_ok=True)
        unfinished.replace(archive)
    stamp.write_text(wanted)
    return True


def _made_of(project_root: Path) -> str:
    """What the archive belongs to."""
    java = Path(os.environ.get("JAVA_HOME", "")).resolve()
    jars = [f"{jar} {jar.stat().st_mtime_ns}" for jar in jars_of(project_root)]
    return "\n".join([f"java {java}", f"pyspark {version('pyspark')} {spark_home()}", *jars, ""])


def _run_an_update(project_root: Path, folder: Path, archive: Path) -> None:
    conf = submit_conf(project_root)
    # Without the archive that may be there: Java does not read one and write another.
    options = conf["spark.driver.extraJavaOptions"].replace(archived(project_root), "")
    options += f' "-XX:ArchiveClassesAtExit={archive}" -Xlog:disable -Xlog:all=error:stderr'
    conf["spark.driver.extraJavaOptions"] = options
    settings = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    index, until = _small_index(folder)
    subprocess.run(
        [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", *settings,
         str(_JOB), str(index), "--until", until.isoformat(), "--json"],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "TIDETABLE_HOME": str(folder)},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        timeout=_WITHIN_S,
        check=True,
    )  # fmt: skip


def _small_index(folder: Path) -> tuple[Path, datetime]:
    """An index over two rows, one of them bad, and the time up to which to update it."""
    start = datetime(2020, 1, 1, tzinfo=UTC)
    hour = timedelta(hours=1)
    came, goes = start + hour / 2, start + 3 * hour
    source = folder / "source"
    source.mkdir()
    moment = pa.timestamp("us", "UTC")
    types = [("key", pa.string()), ("came", moment), ("goes", moment)]
    rows = [{"key": "a", "came": came, "goes": goes}, {"key": "b", "came": came, "goes": start}]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(types)), source / "rows.parquet")
    index = folder / "small.yaml"
    described = {
        "name": "small",
        "source": {"path": str(source), "format": "parquet", "arrived_at": "came"},
        "key": "key",
        "inserted_at": "came",
        "expires_at": "goes",
        "update_every": "1h",
        "longest_lifetime": "4h",
        "start": start.isoformat(),
        "table": str(folder / "table"),
        "scheme": {"name": "sweep", "groups": 2},
        "quality": {"bad_rows_max": "100%", "check_rows_every": 1},
    }
    index.write_text(yaml.safe_dump(described))
    return index, start + 2 * hour


if __name__ == "__main__":
    here = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd()
    try:
        print("made" if make_archive(here.resolve()) else "there was nothing to do")
    except (subprocess.SubprocessError, OSError) as error:
        sys.exit(f"The archive of classes was not made; Spark starts without it: {error}")
