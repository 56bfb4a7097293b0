"""Runs the examples of the pages in a fresh copy of the project and pastes what they print.

    .venv/bin/python docs/examples.py

For whoever has changed what a command prints. Needs the sample
(include/sample/flights.py) and takes a minute.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from tidetable.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/commands.md", "docs/schemes.md")
WIDTH = "100"
PLACE = "/path/to/tidetable"


def printed(command: str, home: Path) -> str:
    """The command and what it prints, without the place of this machine's folder."""
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    print(f"{result.exit_code}  {command}", flush=True)
    lines = result.output.replace(str(home), PLACE).strip("\n").splitlines()
    return "\n".join([f"$ {command}", *(line.rstrip() for line in lines), ""])


def refreshed(page: str, home: Path) -> str:
    def block(found: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (tidetable .*)$", found[1], flags=re.MULTILINE)
        return "```console\n" + "\n".join(printed(one, home) for one in commands) + "```"

    return re.sub(r"^```console\n(.*?)^```$", block, page, flags=re.MULTILINE | re.DOTALL)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        shutil.copytree(ROOT / "include" / "indexes", home / "include" / "indexes")
        (home / "include" / "data").symlink_to(ROOT / "include" / "data")
        (home / ".cache").symlink_to(ROOT / ".cache")
        os.environ |= {"TIDETABLE_HOME": str(home), "COLUMNS": WIDTH}
        for name in PAGES:
            page = ROOT / name
            page.write_text(refreshed(page.read_text(), home))


if __name__ == "__main__":
    main()
