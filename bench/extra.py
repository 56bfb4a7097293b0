"""The package that only the benchmark needs (chdb), installed when it is missing."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 600


def why_no_chdb(root: Path) -> str | None:
    """Makes chdb importable, installing it if need be; the reason if that is not possible."""
    folder = root / ".cache" / "bench" / "packages"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    failed = _import_error()
    if failed is None:
        return None
    for command in _installers(root, folder):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            failed = str(error)
            continue
        importlib.invalidate_caches()
        if done.returncode == 0 and (failed := _import_error()) is None:
            return None
        failed = (done.stderr.strip().splitlines() or [failed or "it failed"])[-1]
    return failed


def _import_error() -> str | None:
    try:
        importlib.import_module("chdb")
    except ImportError as error:
        return str(error)
    return None


def _installers(root: Path, folder: Path) -> list[list[str]]:
    wanted = ["--no-deps", "--target", str(folder), "-r", str(root / "requirements-bench.txt")]
    uv = shutil.which("uv") or str(root / ".tools" / "bin" / "uv")
    return [
        [uv, "pip", "install", "--python", sys.executable, *wanted],
        [sys.executable, "-m", "pip", "install", *wanted],
    ]
