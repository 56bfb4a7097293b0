"""What updates, probes and scans cost on this machine: measured on small tables of our own.

The tables lie beside the index's own, so that the storage is the same, and are updated by the very
code that updates real ones (trial.py). They are updated in rounds until two rounds take equally
long: a JVM that has just started gets quicker for a while, most of all with many rows.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tidetable import __version__
from tidetable.advisor import Calibration, Machine, trial
from tidetable.advisor.model import PROBED_BYTES
from tidetable.advisor.trial import ReadTimes, Trial, workplace
from tidetable.config import Index
from tidetable.engine.session import cores

FILE = "calibration.json"
Progress = Callable[[str], None]

MANY_GROUPS = 16
ROUNDS_MIN, ROUNDS_MAX = 3, 6
"""The first one is never counted."""

FEW_UPDATES = 2
"""So many updates of a few rows with each of three schemes are part of a round."""

AGREEING = 0.1
"""Two rounds that differ by less than this share are as good as it gets."""


def calibration_path(index: Index) -> Path:
    """Where the calibration of this index's storage is kept: beside its table if that is local."""
    local = index.table.removeprefix("file://")
    home = Path(os.environ.get("TIDETABLE_HOME", ".")) / ".tidetable"
    return (home if "://" in local else Path(local).parent) / FILE


def machine_of(spark: SparkSession) -> Machine:
    """What a calibration depends on."""
    packages = ("delta-spark", "deltalake")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return Machine(cores(spark), {"tidetable": __version__, "spark": spark.version, **versions})


def calibrated(
    spark: SparkSession,
    index: Index,
    say: Progress,
    *,
    path: Path | None = None,
    anew: bool = False,
) -> Calibration:
    """The saved calibration if it is of this machine and these versions, or a new one, saved.

    A file that the caller names is taken as it is: it may be of the machine that is to do the work.
    """
    place = calibration_path(index) if path is None else path
    if not anew:
        found = Calibration.read(place)
        if found is not None and (path is not None or found.machine == machine_of(spark)):
            return found
    made = calibrate(spark, index, say)
    try:
        made.save(place)
    except OSError as error:
        say(f"The calibration was not saved at {place}: {error}")
    return made


def calibrate(spark: SparkSession, index: Index, say: Progress) -> Calibration:
    """A short measured run; nothing of it stays."""
    with workplace(spark, index, f"{calibration_path(index)}") as folder:
        say("calibrating: making rows")
        tables = _Tables(spark, folder)
        rounds: list[Round] = []
        while len(rounds) < ROUNDS_MAX and not agree(rounds):
            say(f"calibrating: updates, round {len(rounds) + 1}")
            rounds.append(tables.round(len(rounds)))
        say("calibrating: reading")
        reads = tables.reads()
    return fitted(machine_of(spark), Round.least(rounds[-2:]), reads)


# -- what is measured ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """Seconds of updates: of a few rows with three schemes, and of many rows in one cell."""

    few: float
    few_in_many_cells: float
    few_with_vectors: float
    wide_new: float
    wide_again: float
    wide_gone: float
    narrow_new: float
    narrow_again: float
    narrow_gone: float

    @property
    def total(self) -> float:
        return sum(vars(self).values())

    @staticmethod
    def least(rounds: list[Round]) -> Round:
        """Each update at its quickest: whatever else the machine did has only made it longer."""
        return Round(*map(min, zip(*(vars(one).values() for one in rounds), strict=True)))


def agree(rounds: list[Round]) -> bool:
    """Whether another round would tell nothing new."""
    if len(rounds) < ROUNDS_MIN:
        return False
    before, last = (one.total for one in rounds[-2:])
    return abs(before - last) < AGREEING * before


@dataclass(frozen=True)
class Reads:
    """Tables as they stand, and how long it takes to read them."""

    few: ReadTimes
    few_with_vectors: ReadTimes
    wide: ReadTimes
    wide_in_many_cells: ReadTimes
    narrow: ReadTimes


class _Tables:
    """The tables that are updated and read."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        one = {"name": "sweep", "groups": 1}
        many = {"name": "sweep", "groups": MANY_GROUPS}
        vectors = {"name": "sweep", "groups": 4, "deletion_vectors": True}
        self._source = trial.Source(spark, folder)
        self._few = [
            Trial(spark, folder, f"few_{number}", trial.FEW, scheme)
            for number, scheme in enumerate((one, many, vectors))
        ]
        self._large = Trial(spark, folder, "large", trial.LARGE, one)
        self._standing = [
            Trial(spark, folder, f"standing_{number}", trial.STANDING, scheme)
            for number, scheme in enumerate((one, many))
        ]
        self._narrow: ReadTimes | None = None

    def round(self, number: int) -> Round:
        slots = self._source.add_round(number)
        few, large = [], []
        for place, slot in enumerate(slots):
            # In turns: a JVM gets faster all the time, which must not look like a difference.
            large.append(self._large.to(slot))
            if place == trial.NARROW_AGAIN:
                self._narrow = trial.read_times([self._large])[0]
            if place < FEW_UPDATES:  # a slot of their own: with vectors they take seconds
                few.append([one.to(FEW_UPDATES * number + place + 1) for one in self._few])
        return Round(*(min(times) for times in zip(*few, strict=True)), *large)

    def reads(self) -> Reads:
        self._source.add_standing()
        for one in self._standing:
            one.to(0)
        assert self._narrow is not None
        few, _, vectors = self._few
        few_s, vectors_s, wide_s, many_s = trial.read_times([few, vectors, *self._standing])
        return Reads(few_s, vectors_s, wide_s, many_s, self._narrow)


# -- what follows from it --------------------------------------------------------------------------


def fitted(machine: Machine, took: Round, reads: Reads) -> Calibration:
    """The constants with which the model tells all that was measured."""
    file_s = _positive((took.few_in_many_cells - took.few) / (MANY_GROUPS - 1))
    # Nothing is large any more in these, and the JVM was as quick as it was for the large ones.
    commit_s = min(took.few, took.wide_gone, took.narrow_gone)
    wide, narrow, few = reads.wide, reads.narrow, reads.few
    insert = _per_row_and_byte(wide, narrow, took.wide_new - commit_s, took.narrow_new - commit_s)
    rewrite = _per_row_and_byte(
        wide, narrow, took.wide_again - commit_s, took.narrow_again - commit_s
    )
    many = reads.wide_in_many_cells
    scan_file_s = _positive((many.scan_s - wide.scan_s) / max(1, many.files - wide.files))
    wide_scan_s, narrow_scan_s = (
        one.scan_s - few.scan_s - (one.files - 1) * scan_file_s for one in (wide, narrow)
    )
    scan = _per_row_and_byte(wide, narrow, wide_scan_s, narrow_scan_s)
    read_of_one = min(wide.bytes, PROBED_BYTES)
    probe_s_per_byte = _positive((wide.probe_s - few.probe_s) / read_of_one)
    # Not beside the few rows: their table has seen updates, and a longer log takes longer to open.
    opened = many.probe_s - wide.probe_s - (many.bytes - read_of_one) * probe_s_per_byte
    probe_file_s = _positive(opened / (MANY_GROUPS - 1))
    marked = reads.few_with_vectors
    expected = few.probe_s + (marked.files - 1) * probe_file_s
    return Calibration(
        machine=machine,
        commit_s=_positive(commit_s - file_s),
        vectors_s=_positive(took.few_with_vectors - took.few),
        insert_s_per_row=insert[0],
        insert_s_per_byte=insert[1],
        rewrite_s_per_row=rewrite[0],
        rewrite_s_per_byte=rewrite[1],
        file_s=file_s,
        probe_s=few.probe_s,
        probe_s_per_file=probe_file_s,
        probe_s_per_marked_file=_positive((marked.probe_s - expected) / max(1, marked.marked)),
        probe_s_per_byte=probe_s_per_byte,
        scan_s=few.scan_s,
        scan_s_per_row=scan[0],
        scan_s_per_byte=scan[1],
        scan_s_per_file=scan_file_s,
    )


def _per_row_and_byte(
    wide: ReadTimes, narrow: ReadTimes, wide_s: float, narrow_s: float
) -> tuple[float, float]:
    """Seconds per row and per byte such that both tables take as long as they did.

    Where one of the two would be negative, which only noise can make, all is put on the other.
    """
    wide_s, narrow_s = max(wide_s, 0.0), max(narrow_s, 0.0)
    determinant = wide.rows * narrow.bytes - narrow.rows * wide.bytes
    if determinant:
        per_row = (wide_s * narrow.bytes - narrow_s * wide.bytes) / determinant
        per_byte = (wide.rows * narrow_s - narrow.rows * wide_s) / determinant
        if per_row >= 0 and per_byte >= 0:
            return per_row, per_byte
        if per_row < 0:
            return 0.0, (wide_s + narrow_s) / (wide.bytes + narrow.bytes)
    return (wide_s + narrow_s) / (wide.rows + narrow.rows), 0.0


def _positive(seconds: float) -> float:
    return max(seconds, 0.0)
