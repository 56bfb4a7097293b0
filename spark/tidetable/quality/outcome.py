"""What a validation found."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tidetable.core.errors import TidetableError

NOT_OF_THE_ROWS = frozenset({"fresh", "bad_rows", "balance", "files", "folders", "volume"})
"""Checks that may fail though the table holds what it should."""


@dataclass(frozen=True)
class Finding:
    """One check that did not hold."""

    name: str
    """Of the check; the same in every report."""

    sentence: str
    """What must hold and what was found instead, for people."""

    observed: str
    """Only what was found."""

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Skipped:
    """One check that had nothing to look at."""

    name: str
    why: str


def tally(checked: int, skipped: int, failed: int = 0, warnings: int = 0) -> str:
    """How many checks hold, and how many had nothing to look at, in words."""
    held = checked - skipped - failed - warnings
    told = f"{held} of {checked} checks hold"
    return told + (f", {skipped} had nothing to look at" if skipped else "")


@dataclass(frozen=True)
class Outcome:
    """The result of one validation of one index."""

    index: str
    slot: int
    success: bool
    """Whether all checks hold that are more than a warning."""

    failed: list[Finding]
    warnings: list[Finding]
    checked: int
    """How many expectations the suite has; those that had nothing to look at are among them."""

    report: Path
    """The page of this validation."""

    skipped: list[Skipped] = field(default_factory=list)
    """The checks that had nothing to look at; the report says why."""

    figures: dict[str, Any] = field(default_factory=dict)
    """What the checks looked at, apart from the single cells."""

    @property
    def tally(self) -> str:
        return tally(self.checked, len(self.skipped), len(self.failed), len(self.warnings))

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"report": str(self.report)}

    def require(self, argument: str | None = None) -> Outcome:
        """Itself; raises QualityFailed if it is no success.

        `argument` is how the index was given to the command, for the advice; else its name.
        """
        if not self.success:
            raise QualityFailed(self, argument)
        return self


_LOST = (
    "The source no longer has rows that it had when they were read. If they are to be there, put "
    "them back; if not, the table is wrong."
)


class QualityFailed(TidetableError):
    """The table is not what it must be. A retry finds the same: somebody has to mend it."""

    code = "quality_failed"

    def __init__(self, outcome: Outcome, argument: str | None = None) -> None:
        self.outcome = outcome
        self.findings = list(outcome.failed)
        number = len(self.findings)
        what = " ".join(finding.sentence for finding in self.findings)
        names = {finding.name for finding in self.findings}
        super().__init__(
            f"{number} of {outcome.checked} checks of {outcome.index!r} failed at slot "
            f"{outcome.slot}. {what} {advice(argument or outcome.index, outcome.figures, names)} "
            f"The report is {outcome.report}."
        )


def advice(index: str, figures: Mapping[str, Any], failed: Collection[str]) -> str:
    """What to do about the checks that failed."""
    wrong = set(failed) - NOT_OF_THE_ROWS
    slot, first = figures.get("slot"), figures.get("replay_from")
    if wrong and "replay_from" not in figures:  # a report of the version before
        return f"The table is wrong. tidetable validate {index} says from which slot to replay it."
    if wrong and first is None:
        return (
            "The table is wrong from its first load on: remove it, and the next update makes it "
            "again."
        )
    if wrong:
        lost = (figures.get("against_source") or {}).get("lost_by_source")
        return (
            f"{_LOST if lost and wrong == {'against_source'} else 'The table is wrong.'} Mend it "
            f"before the next update: tidetable replay {index} --from {first}"
        )
    hints = {
        "fresh": f"Run tidetable update {index} to bring it up to date.",
        "bad_rows": "Correct the source, or raise quality.bad_rows_max in the YAML.",
        "folders": "Look for the folders: correct source.path, or put them back and replay the "
        f"slot (tidetable replay {index} --from {slot}).",
        "volume": "Look whether the source still gets all its rows; if it does, change "
        "quality.volume in the YAML, or let it only warn (on_failure: warn).",
        "balance": "Choose another scheme for this stream, raise quality.imbalance_max, or let it "
        "only warn (quality.on_failure: warn).",
        "files": f"Merge them: tidetable rebuild {index}, or raise quality.files_per_cell_max.",
    }
    return " ".join(hint for name, hint in hints.items() if name in failed)
