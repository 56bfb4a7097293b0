"""The tables beside an index's own, of updates and of quarantined rows: whether they are ours.

Their places follow from the index's (`place.py`), so anything may lie there. Whose a table is, its
properties say. It is asked before anything is written, dropped, merged or deleted there, and before
the index itself is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from tidetable.config import Index
from tidetable.core.errors import TransientError, UserError
from tidetable.table.garbage import newest_checkpoint
from tidetable.table.history_row import SCHEMA as UPDATES
from tidetable.table.log import Log, open_log
from tidetable.table.place import (
    LOG_FOLDER,
    PROPERTY_INDEX,
    PROPERTY_KIND,
    local_folder,
    quarantine_path,
    updates_path,
)
from tidetable.table.storage import reader_uri

QUARANTINE = pa.schema(
    [
        ("slot", pa.int64()),
        ("reason", pa.string()),
        ("arrived_at", pa.timestamp("us", "UTC")),
        ("row", pa.string()),
    ]
)
QUARANTINE_PROPERTIES = {
    # Statistics of the rows would keep their first letters in the log.
    "delta.dataSkippingStatsColumns": "slot,arrived_at",
}
_ADOPTIONS_MAX = 5


class Kind(StrEnum):
    """What a table beside an index is for."""

    UPDATES = "updates"
    QUARANTINE = "quarantine"

    @property
    def words(self) -> str:
        return "table of updates" if self is Kind.UPDATES else "quarantine"

    @property
    def schema(self) -> pa.Schema:
        return UPDATES if self is Kind.UPDATES else QUARANTINE

    def path(self, index: Index) -> str:
        return updates_path(index) if self is Kind.UPDATES else quarantine_path(index)

    def fences(self, index: Index) -> str:
        """How the ids of our transactions in such a table begin."""
        return f"{index.name}#" if self is Kind.UPDATES else f"{index.name}@quarantine#"


def open_beside(index: Index, kind: Kind) -> Log | None:
    """The log of that table; None if there is none, UserError if it is not this index's."""
    log = open_log(kind.path(index))
    if log is None or _says_it_is_ours(log, index, kind) or _was_ours(log, index, kind):
        return log
    raise UserError(
        f"{log.path} is {_whose(log)}; the {kind.words} of the index {index.name!r} belongs "
        "there. Move it away, or choose another place in the YAML (table:). Nothing was "
        "changed."
    )


def check_places(index: Index) -> None:
    """UserError if something that is not ours lies where the tables beside the index belong."""
    for kind in Kind:
        path = kind.path(index)
        folder = local_folder(path)
        if open_beside(index, kind) is None and folder is not None and folder.is_dir():
            _check_is_free(index, kind)


def own_table(index: Index, kind: Kind, properties: Mapping[str, str]) -> Log:
    """The log of that table, which is made, or marked as ours, if need be. To be written to."""
    for _ in range(_ADOPTIONS_MAX):
        log = open_beside(index, kind)
        try:
            if log is None:
                _make(index, kind, properties)
            elif _says_it_is_ours(log, index, kind):
                return log
            else:  # of a version of this program that did not mark them
                marks = {**properties, **_owner(index, kind)}
                log.table.alter.set_table_properties(marks, raise_if_not_exists=False)
        except DeltaError:
            if open_log(kind.path(index)) is None:
                raise  # otherwise another writer was first
    raise TransientError(
        f"Other writers of {kind.path(index)} committed first, {_ADOPTIONS_MAX} times in a row. "
        "Run it again."
    )


def _make(index: Index, kind: Kind, properties: Mapping[str, str]) -> None:
    folder = local_folder(kind.path(index))
    if folder is not None and folder.is_dir():
        _check_is_free(index, kind)
    DeltaTable.create(
        reader_uri(kind.path(index)),
        Schema.from_arrow(kind.schema),
        mode="ignore",
        configuration={**properties, **_owner(index, kind)},
        raise_if_key_not_exists=False,
    )


def _check_is_free(index: Index, kind: Kind) -> None:
    folder = local_folder(kind.path(index))
    assert folder is not None
    # With a log and nothing else in it, another writer is about to make the table.
    if any(entry.name != LOG_FOLDER for entry in folder.iterdir()):
        raise UserError(
            f"{folder} is a folder that is not empty and no table of Tidetable; the {kind.words} "
            f"of the index {index.name!r} belongs there. Move it away, or choose another place in "
            "the YAML (table:). Nothing was changed."
        )


# -- whose it is -----------------------------------------------------------------------------------


def _owner(index: Index, kind: Kind) -> dict[str, str]:
    return {PROPERTY_INDEX: index.name, PROPERTY_KIND: str(kind)}


def _says_it_is_ours(log: Log, index: Index, kind: Kind) -> bool:
    return all(log.properties.get(name) == said for name, said in _owner(index, kind).items())


def _whose(log: Log) -> str:
    owner, kind = log.properties.get(PROPERTY_INDEX), log.properties.get(PROPERTY_KIND)
    if owner is None:
        return "a Delta table that Tidetable did not make"
    return f"the {Kind(kind).words if kind in set(Kind) else 'table'} of the index {owner!r}"


def _was_ours(log: Log, index: Index, kind: Kind) -> bool:
    """Whether a version of this program that did not mark its tables has made it for this index.

    Such a table has our columns (the older, the fewer) and transactions with our names, or
    nothing has been written to it yet.
    """
    if PROPERTY_INDEX in log.properties:
        return False
    ours = {field.name: field.type for field in Schema.from_arrow(kind.schema).fields}
    found = {field.name: field.type for field in log.table.schema().fields}
    least = set(list(ours)[:4])
    if not least <= set(found) or any(ours.get(name) != type_ for name, type_ in found.items()):
        return False
    is_new = log.version == 0 and not log.table.file_uris()
    return is_new or _has_transaction(log, kind.fences(index))


def _has_transaction(log: Log, beginning: str) -> bool:
    """Whether a writer whose id begins so has committed to the table, as far as the log tells."""
    for version in range(log.version, -1, -1):
        try:
            actions = log.actions(version)
        except FileNotFoundError:
            break
        if any(one["txn"]["appId"].startswith(beginning) for one in actions if one.get("txn")):
            return True
    checkpoint = newest_checkpoint(log)
    for part in () if checkpoint is None else checkpoint[1]:
        with log.storage.open_input_file(f"{LOG_FOLDER}/{part}") as file:
            stored = pq.read_table(file, columns=["txn"]).column("txn").to_pylist()
        if any(one and str(one.get("appId")).startswith(beginning) for one in stored):
            return True
    return False
