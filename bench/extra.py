"""What only the benchmark needs, installed when it is missing: chdb, and Iceberg's environment."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TIMEOUT_S = 600

ICEBERG = Path(".cache") / "bench" / "iceberg"
"""The environment for Iceberg, below the project's root: its newest runtime is for Spark 4.1."""


def why_no_chdb(root: Path) -> str | None:
    """Makes chdb importable, installing it if need be; the reason if that is not possible."""
    folder = root / ".cache" / "bench" / "packages"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    failed = _import_error()
    if failed is None:
        return None
    wanted = ["--no-deps", "--target", str(folder), "-r", str(root / "requirements-bench.txt")]
    for command in _installers(root, sys.executable):
        failed = _failure([*command, *wanted])
        importlib.invalidate_caches()
        if failed is None and (failed := _import_error()) is None:
            return None
    return failed


def why_no_iceberg(root: Path) -> str | None:
    """Makes the environment for Iceberg if need be; the reason if that is not possible.

    Its jar comes with the first session.
    """
    folder, wanted = root / ICEBERG, root / "requirements-iceberg.txt"
    stamp = folder / "made-of.txt"
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


def _import_error() -> str | None:
    try:
        importlib.import_module("chdb")
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
