"""The command `tidetable`: what can be done to an index, and what can be asked of it.

A module for each group of commands; root.py holds what all of them share. Only what needs Spark
imports it: a probe does not wait for a JVM.
"""

# isort: off
# In the order in which --help lists the commands.
from tidetable.cli import daily
from tidetable.cli import repair
from tidetable.cli import init
from tidetable.cli import planning
# isort: on

from tidetable.cli.root import app, main

__all__ = ["app", "daily", "init", "main", "planning", "repair"]
