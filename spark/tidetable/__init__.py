"""Tidetable: Delta tables whose rows expire.

The functions are those of `tidetable.api`, documented in docs/api.md. They are imported when they
are first used, and what needs Spark, Airflow or Great Expectations imports it then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidetable.api import (
        check,
        count,
        load,
        maintain,
        plan,
        probe,
        rebuild,
        replay,
        scan,
        session,
        simulate,
        status,
        update,
        validate,
    )

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "check",
    "count",
    "load",
    "maintain",
    "plan",
    "probe",
    "rebuild",
    "replay",
    "scan",
    "session",
    "simulate",
    "status",
    "update",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("tidetable.api"), name)


def __dir__() -> list[str]:
    return __all__
