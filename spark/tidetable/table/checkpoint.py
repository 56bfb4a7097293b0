"""Checkpoints of a table's log, so that nobody has to read all of it."""

from __future__ import annotations

import logging

from deltalake import DeltaTable

from tidetable.table.log import Log
from tidetable.table.steps import Step, reached
from tidetable.table.storage import reader_uri

_INTERVAL = "delta.checkpointInterval"
_CLEANS_UP = "delta.enableExpiredLogCleanup"
_LOGGER = logging.getLogger(__name__)


def checkpoint_if_due(log: Log, version: int) -> None:
    """Makes the checkpoint that the table's own interval asks for at this version of ours.

    It is a convenience: should it fail, the commit before it counts all the same.
    """
    every = int(log.properties.get(_INTERVAL, "10"))
    if version % every:
        return
    try:
        table = DeltaTable(reader_uri(log.path))
        table.create_checkpoint()
        reached(Step.CHECKPOINTED)
        if log.properties.get(_CLEANS_UP, "true") == "true":
            table.cleanup_metadata()
    except Exception as error:
        _LOGGER.warning("No checkpoint of %s at version %d: %s", log.path, version, error)
