"""The command `tidetable`: what can be done to an index, and what can be asked of it.

A module for each group of commands; root.py holds what all of them share. Only what needs Spark
imports it: a probe does not wait for a JVM.
"""

from tidetable.cli import daily, planning, repair
from tidetable.cli.root import app, main

__all__ = ["app", "daily", "main", "planning", "repair"]

# As --help and docs/commands.md list them.
_ORDER = (
    "check", "plan", "update", "replay", "rebuild", "probe", "scan", "status", "history",
    "quarantine", "validate",
    "maintain", "purge", "simulate", "advise",
)  # fmt: skip
app.registered_commands.sort(key=lambda one: _ORDER.index(one.callback.__name__))  # type: ignore[union-attr]
