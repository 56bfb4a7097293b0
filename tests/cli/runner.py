"""Runs the command inside this process, so that all tests share one JVM."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from tidetable.cli import app


@dataclass(frozen=True)
class Outcome:
    """What a call of the command left behind."""

    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """What a program reads with --json: one object per line and nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def sentence(self) -> str:
        """What went wrong, wherever the terminal broke the line."""
        return " ".join(self.err.split())


def tidetable(*arguments: object, **environment: str) -> Outcome:
    """`tidetable ARGUMENTS`, as a person or a program would call it."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], env={**environment})
    return Outcome(result.exit_code, result.stdout, result.stderr)
