"""What import-linter (`make lint`) does not see: when a module imports, not only what."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "spark" / "tidetable"
NO_ENGINE_AT_THE_TOP = ("quality", "page", "pipeline", "cli", "output")


@pytest.mark.parametrize("floor", NO_ENGINE_AT_THE_TOP)
def test_only_a_task_starts_the_engine(floor: str) -> None:
    """Airflow imports these in every process, and a probe has no time for PySpark."""
    files = [*(PACKAGE / floor).rglob("*.py"), *PACKAGE.glob(f"{floor}.py")]
    assert files
    found = {
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in files
        for name in imported_at_the_top(ast.parse(file.read_text()).body)
        if name.startswith(("pyspark", "tidetable.engine"))
    }
    assert not found


def imported_at_the_top(body: Iterable[ast.stmt]) -> Iterator[str]:
    """What importing the module imports: not what its functions or type checkers do."""
    for statement in body:
        match statement:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{name.name}" for name in names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case ast.If() | ast.Try() | ast.With() | ast.ClassDef():
                yield from imported_at_the_top(statement.body)
