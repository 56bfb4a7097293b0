"""All indexes of a project: the good ones, and what is wrong with the others.

This is all that happens when Airflow parses the DAGs: YAML is read, nothing else is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidetable.config import ConfigError, Index, Mistake, index_files, load_index, project_root


@dataclass(frozen=True)
class Entry:
    """One index and the file that describes it, relative to the project."""

    file: str
    index: Index


@dataclass(frozen=True)
class Catalog:
    """What include/indexes holds."""

    root: Path
    entries: dict[str, Entry]
    """By name, in order."""

    mistakes: list[ConfigError]
    """One for each file that cannot be used."""


def read_catalog(root: Path | None = None) -> Catalog:
    """Reads every index file; a broken one does not hide the others."""
    root = project_root() if root is None else root
    entries: dict[str, Entry] = {}
    mistakes: list[ConfigError] = []
    for path in index_files(root):
        file = str(path.relative_to(root))
        try:
            index = load_index(path, root)
        except ConfigError as error:
            mistakes.append(error)
            continue
        if index.name != path.stem:
            # Commands find an index by its file, Airflow by its name: they have to be the same.
            message = (
                f"the file is called {path.stem}; give both the same name, so that command line "
                "and Airflow mean the same index"
            )
            mistakes.append(ConfigError(file, [Mistake(None, "name", message)]))
        elif index.name in entries:
            message = f"{entries[index.name].file} describes the same index; remove one of the two"
            mistakes.append(ConfigError(file, [Mistake(None, "name", message)]))
        else:
            entries[index.name] = Entry(file, index)
    return Catalog(root, dict(sorted(entries.items())), mistakes)


def load_entry(name: str, root: Path | None = None) -> Index:
    """The index of that name, as its file is now."""
    root = project_root() if root is None else root
    found = [path for path in index_files(root) if path.stem == name]
    if not found:
        names = ", ".join(path.stem for path in index_files(root)) or "none"
        raise ConfigError(name, [Mistake(None, "", f"no such index; there are: {names}")])
    return load_index(found[0], root)
