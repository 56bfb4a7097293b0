"""What an update says of itself once it is done."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class UpdateReport:
    """What one commit did; the fields of `tidetable update --json`."""

    slot: int
    as_of: str
    inserted: int
    expired: int
    dead_on_arrival: int
    quarantined: int
    live: int
    rewritten_rows: int
    """Rows written that were in the table before."""

    written_bytes: int
    cells: int
    """How many cells were touched."""

    seconds: float
    version: int
    late: int = 0
    """Rows that turned up after their slot had been handled."""

    missing: int = 0
    """Rows that past slots had when they were handled and no longer have."""

    misplaced: int = 0
    """Rows seen in a folder of the source that their time does not belong to; not taken."""

    reasons: dict[str, int] = field(default_factory=dict)
    """Quarantined rows by reason."""

    touched: list[dict[str, Any]] = field(default_factory=list)
    """The touched cells: g, e, what was done (rewrite, append, ...) and why."""

    checks: dict[str, int] | None = None
    """What the check of all rows counted, if this update made one (quality.check_rows_every)."""

    predicted_s: float | None = None
    """What the advisor said that an average update would take; None if it did not choose."""

    folders: dict[str, Any] | None = None
    """How many folders `source.path` names for these slots (`expected`), how many of them are not
    there (`missing`) and the first of these (`named`); None if it has no time placeholder."""

    against_source: dict[str, Any] | None = None
    """What a comparison with the source found, if there was one (quality.against_source_every)."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
