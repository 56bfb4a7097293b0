"""What is measured of one system on one workload, and where finished pairs are kept."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

METHOD = 2
"""Goes up when what is measured changes; what was measured otherwise is measured again.

2: ours with the defaults of a user (all rows checked, late rows looked for), and every sort of
system warmed up in every run.
"""


@dataclass(frozen=True)
class UpdateFigures:
    """One update."""

    slot: int
    seconds: float
    inserted_bytes: int
    written_bytes: int
    files: int
    stored_bytes: int
    expired_visible: int | None = None
    collecting_s: float | None = None
    """Of its seconds, those in which the JVM only collected garbage; None if in another JVM."""


@dataclass(frozen=True)
class Measured:
    """All figures of a finished pair. Times of reads are the median over several keys."""

    workload: str
    system: str
    setting: str
    digest: str
    """Of the rows; a pair that was measured on other rows is not taken for finished."""

    run: str
    """When the run began that measured it; a ratio counts only within one run."""

    live_bytes: int
    load_s: float
    updates: list[UpdateFigures] = field(default_factory=list)
    probe_ms_delta_rs: float | None = None
    probe_ms_at_once: float | None = None
    """With several files at a time, as `tidetable probe` reads."""

    probe_ms_spark: float | None = None
    probe_files: float | None = None
    probe_bytes: float | None = None
    probe_rows: float | None = None
    scan_s: float | None = None
    scan_s_delta_rs: float | None = None
    expired_visible: int | None = None
    wrong: str | None = None
    """What is wrong with the rows it showed, if anything."""

    method: int | None = None
    """`METHOD` when it was measured; None: before there was a number."""

    @property
    def seconds(self) -> list[float]:
        return [update.seconds for update in self.updates]

    @property
    def update_s_median(self) -> float:
        return median(self.seconds)

    @property
    def update_s_mean(self) -> float:
        return mean(self.seconds)

    @property
    def update_s_max(self) -> float:
        return max(self.seconds)

    @property
    def update_max_of_median(self) -> float:
        """How many times the usual update the largest one takes."""
        return self.update_s_max / self.update_s_median

    @property
    def written_per_inserted(self) -> float:
        inserted = sum(update.inserted_bytes for update in self.updates)
        return sum(update.written_bytes for update in self.updates) / inserted

    @property
    def files(self) -> int:
        return self.updates[-1].files

    @property
    def files_max(self) -> int:
        return max(update.files for update in self.updates)

    @property
    def stored_per_live(self) -> float:
        return self.updates[-1].stored_bytes / self.live_bytes

    @property
    def expired_visible_max(self) -> int | None:
        """The most that was seen after any update, where that was counted."""
        seen = [u.expired_visible for u in self.updates if u.expired_visible is not None]
        return max(seen, default=self.expired_visible)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Measured:
        updates = [UpdateFigures(**update) for update in data.pop("updates")]
        return cls(**data, updates=updates)


class Finished:
    """Pairs that have been measured, each in a file of its own, so that a run can go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, workload: str, system: str) -> Path:
        return self.folder / f"{workload}.{system}.json"

    def get(self, workload: str, system: str) -> Measured | None:
        file = self._file(workload, system)
        return Measured.from_json(json.loads(file.read_text())) if file.is_file() else None

    def is_finished(self, workload: str, system: str, digest: str, setting: str) -> bool:
        """Whether this very pair has been measured: the same rows, setting and method."""
        found = self.get(workload, system)
        return found is not None and (found.digest, found.setting, found.method) == (
            digest,
            setting,
            METHOD,
        )

    def keep(self, measured: Measured) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._file(measured.workload, measured.system)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(measured), indent=1) + "\n")
        part.rename(file)

    def all(self) -> list[Measured]:
        return [
            Measured.from_json(json.loads(file.read_text()))
            for file in sorted(self.folder.glob("*.json"))
        ]
