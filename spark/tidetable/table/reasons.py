"""Why a row goes into quarantine, and which of its columns is to blame."""

from __future__ import annotations

from enum import StrEnum

from tidetable.config import Index


class Reason(StrEnum):
    """As the quarantine and the notes store it; WRONG_TYPE is followed by the column."""

    NO_ARRIVAL = "no readable arrival time"
    NO_RECORD = "not readable as a record"
    WRONG_TYPE = "wrong type: "
    NO_KEY = "no key"
    NO_INSERTION = "no readable insertion time"
    NO_EXPIRATION = "no readable expiration time"
    EXPIRES_FIRST = "expires before it was inserted"
    INSERTED_LATER = "inserted after it arrived"
    OUTLIVES = "outlives the longest lifetime"
    LATE = "arrived late"


def blamed_column(index: Index, reason: str) -> str | None:
    """The column that a row with this reason is bad in; None if it is the whole row."""
    if reason.startswith(Reason.WRONG_TYPE):
        return reason.removeprefix(Reason.WRONG_TYPE)
    # With a lifetime there is no such column: the time it is added to stands for the sum.
    expires = index.inserted_at if index.expires_at is None else index.expires_at
    columns: dict[str, str] = {
        Reason.NO_ARRIVAL: index.source.arrived_at,
        Reason.NO_KEY: index.key,
        Reason.NO_INSERTION: index.inserted_at,
        Reason.NO_EXPIRATION: expires,
        Reason.EXPIRES_FIRST: expires,
        Reason.INSERTED_LATER: index.inserted_at,
        Reason.OUTLIVES: expires,
        Reason.LATE: index.source.arrived_at,
    }
    return columns.get(reason)
