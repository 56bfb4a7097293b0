"""What every system can be asked to do, whatever it is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import Rows
from bench.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Standing:
    """What a system keeps after an update, and all that it has written so far."""

    files: int
    bytes: int
    written: int
    expired_visible: int | None = None
    """Only where it may be more than none and is cheap to count after each update."""


@dataclass(frozen=True)
class Found:
    """What a plain read shows, held against the time as of which it was made."""

    rows: int
    live_rows: int
    live_key_sum: int

    @property
    def expired_visible(self) -> int:
        return self.rows - self.live_rows


class System(ABC):
    """One way to keep a table of live rows, at work on one workload in one folder."""

    reads_here = True
    """Whether what it reads without Spark is read by this very process, which can count it then."""

    def __init__(self, spark: SparkSession, rows: Rows, folder: Path) -> None:
        self.spark = spark
        self.rows = rows
        self.folder = folder

    @property
    def workload(self) -> Workload:
        return self.rows.workload

    @abstractmethod
    def load(self) -> None:
        """Makes the table and loads what is alive at the start."""

    def wait(self, slot: int) -> None:  # noqa: B027  most need not wait
        """Waits until update `slot` may begin; not part of its time."""

    @abstractmethod
    def update(self, slot: int) -> None:
        """Takes what arrived in the slot and lets go what expired in it."""

    def tidy(self) -> None:  # noqa: B027  most have nothing to tidy
        """Frees the disk of what no reader of the newest state needs; not part of any time."""

    @abstractmethod
    def standing(self) -> Standing: ...

    @abstractmethod
    def found(self, slot: int) -> Found:
        """Reads all rows as anybody would."""

    @abstractmethod
    def probe(self, key: int) -> int:
        """Fetches the rows of a key without Spark; their number."""

    def probe_at_once(self, key: int) -> bool:
        """The same with several files at a time, as `tidetable probe` does; False if it cannot."""
        return False

    def probe_files(self, keys: list[int]) -> float | None:
        """Files that a probe of a key has to open, on average; None if that is unknown."""
        return None

    @abstractmethod
    def scan(self) -> int:
        """Reads the large column of all rows without Spark; the sum of its lengths."""

    def probe_spark(self, key: int) -> bool:
        """Fetches the rows of a key through Spark; False if it cannot be read so."""
        return False

    def scan_spark(self) -> bool:
        return False

    def close(self) -> None:  # noqa: B027  most hold nothing open
        """Lets go what is held open."""
