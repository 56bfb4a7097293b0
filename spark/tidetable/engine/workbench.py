"""A private Delta table over some files of a version: Spark works there, and we commit.

What Spark's Delta is needed for (deletion vectors, constraints, whatever else a table may ask of
its writers) it does in a table of its own that begins with these files, by their full paths, and
the same rules. Nothing of that can be seen in the table itself. What came of it is then moved over
and committed on top of the version it began with, or not at all (see append.py).

So Spark reads exactly the version that was planned on, and works out the state of a few files
instead of that of the whole table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame, SparkSession

from tidetable.core.cell import Cell
from tidetable.table.actions import Action, Contents, contents
from tidetable.table.append import append_version, commit_info
from tidetable.table.garbage import vector_file
from tidetable.table.log import Log
from tidetable.table.place import INCOMING
from tidetable.table.storage import is_on_file_system, move_file, reader_uri, remove_folder

_NOT_TAKEN_OVER = ("tidetable.", "delta.autoOptimize", "delta.checkpoint")
"""Properties of the table that the private one does without: whose it is, and what Spark would do
to it after its commit."""

_OF_FILES = frozenset({"add", "remove", "cdc"})
_OF_THE_COMMIT = frozenset({"commitInfo", "txn", "protocol"})


@dataclass(frozen=True)
class Outcome:
    """What Spark did, as actions on the table itself, and the files it wrote for it."""

    actions: list[dict[str, Any]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Below the table; to be deleted if there will be no commit."""


class Workbench:
    """The private table. It is made when it is first needed, and goes with the block."""

    def __init__(self, log: Log, cells: Collection[Cell] | None) -> None:
        """None: over all files of the version."""
        self.log = log
        self._cells = cells
        self._run = uuid.uuid4().hex

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *_: object) -> None:
        if "path" in self.__dict__:
            remove_folder(self.log.path, f"{INCOMING}/{self._run}")

    @cached_property
    def began_with(self) -> Contents:
        """The files of the cells, and the table's rules."""
        return contents(self.log, self._cells)

    @cached_property
    def path(self) -> str:
        """Where the private table is; asking makes it."""
        path = f"{self.log.path.rstrip('/')}/{INCOMING}/{self._run}"
        append_version(path, 0, self._beginning())
        return path

    def rows(self, spark: SparkSession) -> DataFrame:
        """All rows of the cells, as they were in the version that was planned on."""
        return spark.read.format("delta").load(self.path)

    def written(self, rows: DataFrame, leaving: str | None) -> Outcome:
        """Writes these rows and removes those for which the predicate holds, in the private table.

        The files lie in their places afterwards, but are no part of the table yet.
        """
        writer = rows.write.format("delta")
        if leaving is None:
            writer.mode("append").save(self.path)
        else:
            writer.mode("overwrite").option("replaceWhere", leaving).save(self.path)
        return self.brought_over()

    # -- there -----------------------------------------------------------------------------------

    def _beginning(self) -> Iterator[Action]:
        begun = self.began_with
        said = begun.metadata.get("configuration") or {}
        metadata = {
            **begun.metadata,
            "id": str(uuid.uuid4()),
            "configuration": {
                name: value for name, value in said.items() if not name.startswith(_NOT_TAKEN_OVER)
            },
        }
        yield commit_info("WRITE", -1, metadata=metadata)
        yield {"protocol": begun.protocol}
        yield {"metaData": metadata}
        for domain in begun.domains.values():
            yield {"domainMetadata": domain}
        for added in begun.files.values():
            yield {"add": self._in_full(added)}

    def _in_full(self, added: Mapping[str, Any]) -> dict[str, Any]:
        """An add action that names its files by their full paths."""
        full = {**added, "path": self._full(added["path"]), "dataChange": False}
        vector = vector_file(added)
        if vector is not None:
            name = self._full(quote(vector))
            said = added["deletionVector"]
            full["deletionVector"] = {**said, "storageType": "p", "pathOrInlineDv": name}
        return full

    @cached_property
    def _root(self) -> str:
        """The table's folder as Hadoop writes it: file:/folder, s3a://bucket/folder."""
        path = self.log.path.rstrip("/")
        if is_on_file_system(path):
            return "file:" + quote(reader_uri(path))
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{quote(rest)}"

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}"

    # -- and back --------------------------------------------------------------------------------

    def brought_over(self) -> Outcome:
        """What the first version that Spark has made there is on the table itself."""
        there = f"{INCOMING}/{self._run}"
        try:
            with self.log.storage.open_input_file(f"{there}/_delta_log/{1:020d}.json") as file:
                said = [json.loads(line) for line in file.read().decode().splitlines() if line]
        except FileNotFoundError:
            return Outcome()  # for rows that are none Spark makes no version
        outcome = Outcome()
        vectors: set[str] = set()
        for action in said:
            (kind, stated), *_ = action.items()
            if kind in _OF_THE_COMMIT:
                continue
            if kind in _OF_FILES:
                stated = self._below(stated)
                if stated["path"] not in self.began_with.files:
                    outcome.files.append(unquote(stated["path"]))
                vector = vector_file(stated)
                if kind == "add" and vector is not None and vector not in self._vectors:
                    vectors.add(vector)
            outcome.actions.append({kind: stated})
        outcome.files.extend(sorted(vectors))
        for path in outcome.files:
            move_file(self.log.path, f"{there}/{path}", path)
        return outcome

    def _below(self, stated: Mapping[str, Any]) -> dict[str, Any]:
        """The action with paths below the table, and the vectors as the table itself names them."""
        path = stated["path"]
        if not path.startswith(f"{self._root}/"):
            return dict(stated)
        own = path[len(self._root) + 1 :]
        below = {**stated, "path": own}
        vector = stated.get("deletionVector")
        if vector is not None and vector["storageType"] == "p":
            below["deletionVector"] = self.began_with.files[own]["deletionVector"]
        return below

    @cached_property
    def _vectors(self) -> frozenset[str]:
        """The files of the deletion vectors that the table has already."""
        found = (vector_file(added) for added in self.began_with.files.values())
        return frozenset(one for one in found if one is not None)
