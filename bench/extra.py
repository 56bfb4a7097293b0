"""What only the benchmark needs, installed when missing: chdb, Polars, Iceberg's environment."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

TIMEOUT_S = 600

ICEBERG = Path(".cache") / "bench" / "iceberg"
"""The environment for Iceberg, below the project's root: its newest runtime is for Spark 4.1."""

_STAMP = "made-of.txt"


PACKAGES = Path(".cache") / "bench" / "packages"
"""Packages beside those of the project, below its root."""

NAMES = {"chdb": "ClickHouse", "polars": "Polars", "iceberg": "Iceberg"}
"""What systems may need (`Entry.needs`), for people."""


@cache
def why_not(root: Path, need: str) -> str | None:
    """Makes it there, installing it if need be; the reason if that is not possible."""
    return _why_no_iceberg(root) if need == "iceberg" else _why_no_package(root, need)


def is_there(root: Path, need: str) -> bool:
    """Whether it is there already; installs nothing."""
    if need == "iceberg":
        return (root / ICEBERG / _STAMP).is_file()
    _look_into(root / PACKAGES)
    return importlib.util.find_spec(need) is not None


def _look_into(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _why_no_package(root: Path, name: str) -> str | None:
    folder = root / PACKAGES
    _look_into(folder)
    failed = _import_error(name)
    if failed is None:
        return None
    wanted = ["--no-deps", "--target", str(folder), "-r", str(root / "requirements-bench.txt")]
    for command in _installers(root, sys.executable):
        failed = _failure([*command, *wanted])
        importlib.invalidate_caches()
        if failed is None and (failed := _import_error(name)) is None:
            return None
    return failed


def _why_no_iceberg(root: Path) -> str | None:
    """Makes an environment for it. Its jar comes with the first session."""
    folder, wanted = root / ICEBERG, root / "requirements-iceberg.txt"
    stamp = folder / _STAMP
    if stamp.is_file() and stamp.read_text() == wanted.read_text():
        return None
    shutil.rmtree(folder, ignore_errors=True)
    failed = _failure([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    if failed is not None:
        return failed
    for command in _installers(root, str(folder / "bin" / "python")):
        failed = _failure([*command, "-r", str(wanted)])
        if failed is None:
            stamp.write_text(wanted.read_text())
            return None
    return failed


def _import_error(name: str) -> str | None:
    try:
        importlib.import_module(name)
    except ImportError as error:
        return str(error)
    return None


def _failure(command: Sequence[str]) -> str | None:
    """Runs it; the last it said if it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["it failed"])[-1]


def _installers(root: Path, python: str) -> list[list[str]]:
    """Commands that install into the environment of that Python: uv's, or else pip's."""
    uv = shutil.which("uv") or str(root / ".tools" / "bin" / "uv")
    return [
        [uv, "pip", "install", "--python", python],
        [sys.executable, "-m", "pip", "--python", python, "install"],
    ]
