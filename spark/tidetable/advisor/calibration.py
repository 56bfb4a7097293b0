"""What things cost on this machine, in seconds: measured once, kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tidetable.core.errors import UserError

FORMAT = 1


@dataclass(frozen=True)
class Machine:
    """Where a calibration holds: other cores or other versions take another time."""

    cores: int
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Calibration:
    """The constants of the cost model. All in seconds; bytes are those of files in the table."""

    machine: Machine

    commit_s: float
    """An update with next to no rows, all of it: reading, counting, committing."""

    vectors_s: float
    """More if rows are removed in place, by deletion vector."""

    insert_s_per_row: float
    insert_s_per_byte: float
    rewrite_s_per_row: float
    rewrite_s_per_byte: float
    file_s: float
    """For each file that an update writes."""

    probe_s: float
    """A probe through delta-rs of a table with one file."""

    probe_s_per_file: float
    probe_s_per_marked_file: float
    """More for a file with a deletion vector."""

    probe_s_per_byte: float
    scan_s: float
    scan_s_per_row: float
    scan_s_per_byte: float
    scan_s_per_file: float

    def dumps(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"

    @staticmethod
    def loads(text: str, where: str = "the calibration") -> Calibration:
        """UserError if it is not a calibration, or one of another version of this program."""
        try:
            data: dict[str, Any] = json.loads(text)
            if data.pop("format") != FORMAT:
                raise ValueError(f"not of format {FORMAT}")
            machine = data.pop("machine")
            wanted = {one.name for one in fields(Calibration)} - {"machine"}
            if set(data) != wanted:
                raise ValueError(f"the constants must be {', '.join(sorted(wanted))}")
            constants = {name: float(value) for name, value in data.items()}
            if min(constants.values()) < 0:
                raise ValueError("a constant is below 0")
            return Calibration(
                Machine(int(machine["cores"]), dict(machine["versions"])), **constants
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(
                f"{where} is not a calibration that can be used: {error}. "
                "Make it anew with --recalibrate."
            ) from error

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whoever reads it meanwhile finds the old one or the new one, never half of one.
        part = path.with_name(path.name + ".part")
        part.write_text(self.dumps())
        part.replace(path)

    @staticmethod
    def read(path: Path) -> Calibration | None:
        """The saved calibration; None if there is none."""
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(
                f"The calibration {path} cannot be read: {error.strerror}. Name another file with "
                "--calibration, or make this one readable."
            ) from error
        return Calibration.loads(text, str(path))
