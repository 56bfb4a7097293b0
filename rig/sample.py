"""The sample of the repository: real flights, written where the shipped indexes look for them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tidetable.config import Index, project_root
from tidetable.core.errors import UserError
from tidetable.pipeline.catalog import read_catalog

if TYPE_CHECKING:
    import pandas as pd

_SCRIPT = Path("include") / "sample" / "flights.py"
FOLDER = Path("include") / "data" / "flights"


def has_sample(root: Path) -> bool:
    """Whether this project is the repository or a copy of it."""
    return (root / _SCRIPT).is_file()


def prepare_sample(root: Path, days: Sequence[date] | None = None) -> int:
    """Writes the days that are missing (None: of the whole year); returns how many those were."""
    return len(_module(root).write_flights(root / FOLDER, days))


def write_moved(
    root: Path, project: Path, days: Sequence[date], move: Callable[[pd.Series], pd.Series]
) -> list[date]:
    """Writes the flights of `root`'s sample at other times into `project`; the days written."""
    written: list[date] = _module(root).write_moved_flights(project / FOLDER, days, move)
    return written


def days_of(indexes: Sequence[Index], root: Path) -> list[date]:
    """The days of the sample that these indexes read, up to their `end`."""
    sample = _module(root)
    found: set[date] = set()
    for index in indexes:
        if index.end is None or not reads_sample(index, root):
            continue
        day = (index.start - index.longest_lifetime).date()
        while day <= index.end.date():
            found.add(day)
            day += timedelta(days=1)
    return sorted(day for day in found if sample.FIRST_DAY <= day <= sample.LAST_DAY)


def reads_sample(index: Index, root: Path) -> bool:
    """Whether its source is the sample of the project in `root`."""
    return str(index.source.path).startswith((str(root / FOLDER), str(FOLDER)))


def _module(root: Path) -> ModuleType:
    script = root / _SCRIPT
    spec = importlib.util.spec_from_file_location("sample_flights", script)
    if not script.is_file() or spec is None or spec.loader is None:
        raise UserError(
            f"{script} is missing: the flights are prepared with it. "
            "Run this in a complete copy of the project."
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Prepares what the indexes of the project read."""
    root = project_root()
    prepare_sample(root, days_of([one.index for one in read_catalog(root).entries.values()], root))


if __name__ == "__main__":
    main()
