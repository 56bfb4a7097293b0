"""Packages that only some uses need: what to install where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from tidetable.core.errors import UserError

EXTRAS = {
    "airflow": "airflow",
    "great_expectations": "quality",
    "pandas": "quality",
    "pyspark": "spark",
}
"""The extra of this package that brings a module."""


class MissingExtra(UserError, ImportError):
    """A module that an extra brings is not installed."""

    code = "missing_extra"


def require(module: str, purpose: str) -> None:
    """Says which extra to install if `module` is missing; imports nothing."""
    if find_spec(module) is None:
        extra = EXTRAS[module]
        raise MissingExtra(
            f"{purpose} needs {module}, which is not installed. "
            f"Install it: pip install 'tidetable[{extra}]'"
        )
