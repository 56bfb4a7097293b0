"""Great Expectations, imported in half the time.

It imports all engines and all statistics it may ever need: PySpark, SQLAlchemy, SciPy, Altair. A
validation runs in a process of its own after every update and needs none of them, so they are kept
out while Great Expectations is imported. What the process has already imported stays as it is, and
whoever wants all of Great Expectations imports it first.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tidetable.core.extras import require

_ABSENT = frozenset({"pyspark", "sqlalchemy", "google", "grpc"})
"""Great Expectations knows how to do without them."""

_EMPTY = frozenset({"scipy", "altair"})
"""It does not know how to do without these, but needs them for a few expectations only."""

_LOCK = threading.Lock()


def great_expectations() -> Any:
    """The module, imported without what a validation of figures does not need."""
    require("great_expectations", "A quality report")
    # Read when it is imported: nothing is to be sent to anybody.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with _LOCK:
        if "great_expectations" in sys.modules:
            return sys.modules["great_expectations"]
        keeper = _KeepOut(
            absent=frozenset(name for name in _ABSENT if name not in sys.modules),
            empty=frozenset(name for name in _EMPTY if name not in sys.modules),
        )
        sys.meta_path.insert(0, keeper)
        try:
            return importlib.import_module("great_expectations")
        finally:
            sys.meta_path.remove(keeper)
            for name in keeper.made:
                sys.modules.pop(name, None)


class _Empty(ModuleType):
    """Stands for a module that nobody is going to use."""

    __path__ = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self.__name__} was left out when Great Expectations was imported for a validation; "
            "import great_expectations before tidetable.quality is used to have all of it"
        )


class _KeepOut(MetaPathFinder, Loader):
    """Finds nothing for some packages and empty modules for others, in this thread only."""

    def __init__(self, absent: frozenset[str], empty: frozenset[str]) -> None:
        self.absent = absent
        self.empty = empty
        self.made: list[str] = []
        self._thread = threading.get_ident()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if threading.get_ident() != self._thread:
            return None
        package = fullname.partition(".")[0]
        if package in self.absent:
            raise ModuleNotFoundError(f"{fullname} is kept out", name=fullname)
        return ModuleSpec(fullname, self, is_package=True) if package in self.empty else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.made.append(spec.name)
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass
