"""A project folder of its own for one test: include/indexes with one index over a small source."""

from __future__ import annotations

from pathlib import Path

from tests.workspace import Workspace


class Project(Workspace):
    """A workspace whose index lies where Airflow looks for indexes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.indexes.mkdir(parents=True, exist_ok=True)

    @property
    def indexes(self) -> Path:
        return self.folder / "include" / "indexes"

    @property
    def yaml(self) -> Path:
        return self.indexes / "things.yaml"

    @property
    def reports(self) -> Path:
        return self.folder / ".tidetable" / "_reports"
