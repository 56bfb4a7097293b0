"""Folders that a source with time placeholders should have, and has not. No JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from tidetable.config import Index

FOLDERS_NAMED = 5
"""So many missing folders are named."""

FOLDERS_LOOKED_FOR = 100
"""So many are looked for before there is a table."""


def folders_of(
    index: Index, missing: Sequence[str], first: int, last: int
) -> dict[str, Any] | None:
    """How many folders the source should have for slots first..last, and which it has not.

    None if its path does not go by time. What came before slot 1 nobody expects to be there still,
    nor the folder of which a slot has only the first moment.
    """
    timeline, first = index.timeline, max(first, 1)
    if not index.source.has_placeholders or last < first:
        return None
    until = timeline.end_of(last) - timedelta(microseconds=1)
    expected = index.source.expected_paths_for(timeline.begin_of(first), until)
    gone = set(missing)
    return _told(expected, [path for path in expected if path in gone])


def folders_to_begin_with(index: Index, ended: int) -> list[str]:
    """Where rows of the first load or the first updates would be, up to slot `ended`."""
    if not index.source.has_placeholders:
        return []
    timeline, period = index.timeline, index.period
    last = max(0, min(ended, period))
    paths = index.source.paths_for(timeline.begin_of(1 - period), timeline.end_of(last))
    # The later ones: a source need not be older than its index.
    return paths[-FOLDERS_LOOKED_FOR:]


def none_there(expected: Sequence[str]) -> dict[str, Any]:
    """The same as `folders_of`, of folders none of which is there."""
    return _told(expected, expected)


def _told(expected: Sequence[str], missing: Sequence[str]) -> dict[str, Any]:
    named = list(missing[:FOLDERS_NAMED])
    return {"expected": len(expected), "missing": len(missing), "named": named}


def folders_in_words(folders: Mapping[str, Any]) -> str:
    """Which are missing: 'A is missing', 'all 2 are missing: A, B', '1 of 24 is missing: A'."""
    expected, missing = folders["expected"], folders["missing"]
    named = ", ".join(folders["named"]) + (", ..." if missing > len(folders["named"]) else "")
    if expected == missing == 1:
        return f"{named} is missing"
    if expected == missing:
        return f"all {expected} are missing: {named}"
    return f"{missing} of {expected} {'is' if missing == 1 else 'are'} missing: {named}"
