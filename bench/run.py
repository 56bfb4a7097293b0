"""Runs systems on a workload and measures them.

All tables of a workload stand side by side and take turns: each update is made in all of them
before the next one begins, in another order each time. So what else the machine does, and a JVM
that gets faster as it runs, falls on all of them alike. ClickHouse works in the background and
Iceberg has a JVM of its own, so each of them runs by itself, after the others.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.collector import Collector
from bench.data import Rows
from bench.measured import METHOD, Finished, Measured, UpdateFigures
from bench.systems.base import Found, Standing, System
from bench.systems.catalog import Entry
from bench.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ_ROUNDS = 2
"""Each system is read so often without Spark, with all others in between; by Spark once."""

KEYS_DELTA_RS = 6
KEYS_SPARK = 3
WARM_UP = Workload("warm_up", 12)
WARM_UP_BYTES_MAX = 100_000_000
WARM_UP_SHARE = 10
"""The tables of the warm-up hold one part in so many of what is measured afterwards."""

_IO = Path("/proc/self/io")

Step = Callable[[str], None]
Say = Callable[[str], None]


@dataclass
class Attempt:
    """A system at work, and what has been measured of it so far."""

    entry: Entry
    system: System
    folder: Path
    load_s: float = 0.0
    before: Standing = field(default_factory=lambda: Standing(0, 0, 0))
    updates: list[UpdateFigures] = field(default_factory=list)
    found: Found | None = None
    probes_ms: list[float] = field(default_factory=list)
    probes_at_once_ms: list[float] = field(default_factory=list)
    probes_spark_ms: list[float] = field(default_factory=list)
    probed_rows: list[float] = field(default_factory=list)
    probed_bytes: list[float] = field(default_factory=list)
    scans_s: list[float] = field(default_factory=list)
    scans_delta_rs_s: list[float] = field(default_factory=list)
    failed: str | None = None


class Runner:
    """Measures the pairs of one size that are not measured yet."""

    def __init__(
        self,
        spark: SparkSession,
        cache: Path,
        finished: Finished,
        run: str,
        step: Step = lambda _: None,
        say: Say = lambda _: None,
    ) -> None:
        self.spark = spark
        self.cache = cache
        self.finished = finished
        self.run = run
        self._step = step
        self._say = say
        self._collector = Collector(spark)
        self.failures: dict[tuple[str, str], str] = {}
        self.spent: dict[str, float] = {}
        """Seconds by what was done."""

    def warm_up(self, entries: list[Entry], updates: int, live_bytes: int) -> None:
        """Lets these do all that they do on small tables: no figure holds the JVM's start.

        In its first minutes the JVM's own compiler takes a third of two cores. `live_bytes` are
        those of the workloads that follow.
        """
        live_bytes = min(WARM_UP_BYTES_MAX, live_bytes // WARM_UP_SHARE)
        rows = Rows(replace(WARM_UP, updates=updates, live_bytes=live_bytes), self.cache)
        self._spending("warm-up", rows.make, self.spark)
        slots = list(range(1, updates + 1))
        self._take_turns(rows, entries, slots)

    def measure(self, workload: Workload, entries: list[Entry]) -> None:
        """Measures the entries on the workload and keeps what was found."""
        self._step(f"{workload.name}: rows")
        rows = Rows(workload, self.cache)
        self._spending("rows", rows.make, self.spark)
        slots = list(range(1, workload.updates + 1))
        self._take_turns(rows, [one for one in entries if one.takes_turns], slots, True)
        for entry in entries:
            if not entry.takes_turns:
                self._take_turns(rows, [entry], slots, True)

    # -- one workload ----------------------------------------------------------------------------

    def _take_turns(
        self, rows: Rows, entries: list[Entry], slots: list[int], keep: bool = False
    ) -> None:
        if not entries:
            return
        attempts = [self._prepared(rows, entry) for entry in entries]
        try:
            for attempt in attempts:
                self._try(attempt, rows, "load", self._load)
            for slot in slots:
                turn = slot % len(attempts)
                for attempt in attempts[turn:] + attempts[:turn]:
                    self._try(attempt, rows, f"update {slot}", self._update, slot)
            for attempt in attempts:
                self._try(attempt, rows, "check", self._check, slots[-1])
            for reading in range(READ_ROUNDS if keep else 1):
                for attempt in attempts:
                    self._try(attempt, rows, f"read {reading + 1}", self._read)
            for attempt in attempts:
                self._try(attempt, rows, "read by Spark", self._read_with_spark)
            for attempt in attempts:
                if keep and attempt.failed is None:
                    self._keep(attempt, rows)
        finally:
            for attempt in attempts:
                attempt.system.close()
                shutil.rmtree(attempt.folder, ignore_errors=True)

    def _prepared(self, rows: Rows, entry: Entry) -> Attempt:
        folder = self.cache / "tables" / rows.workload.name / entry.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return Attempt(entry, entry.make(self.spark, rows, folder), folder)

    def _try(
        self, attempt: Attempt, rows: Rows, what: str, act: Callable[..., None], *more: int
    ) -> None:
        """One that fails is left out from there on; the others go on."""
        if attempt.failed is not None:
            return
        name = rows.workload.name
        self._step(f"{name}: {attempt.entry.name}, {what}")
        kind = "warm-up" if name == WARM_UP.name else what.split()[0]
        try:
            self._spending(kind, act, attempt, rows, *more)
        except Exception as error:
            attempt.failed = f"{what}: {(str(error).splitlines() or [repr(error)])[0]}"
            self.failures[name, attempt.entry.name] = attempt.failed
            self._say(f"{name} {attempt.entry.name} failed at {attempt.failed}")

    def _spending(self, kind: str, act: Callable[..., None], *given: object) -> None:
        began = time.monotonic()
        try:
            act(*given)
        finally:
            self.spent[kind] = self.spent.get(kind, 0.0) + time.monotonic() - began

    def _settle(self) -> None:
        """What one system has left to write to disk, or to collect, must not fall on the next."""
        os.sync()
        self._collector.collect()

    # -- steps -----------------------------------------------------------------------------------

    def _load(self, attempt: Attempt, rows: Rows) -> None:
        began = time.monotonic()
        attempt.system.load()
        attempt.load_s = time.monotonic() - began
        attempt.before = attempt.system.standing()
        self._settle()

    def _update(self, attempt: Attempt, rows: Rows, slot: int) -> None:
        system = attempt.system
        system.wait(slot)
        collecting, began = self._collector.seconds, time.monotonic()
        system.update(slot)
        seconds = time.monotonic() - began
        collecting = self._collector.seconds - collecting
        now = system.standing()
        attempt.updates.append(
            UpdateFigures(
                slot=slot,
                seconds=round(seconds, 4),
                inserted_bytes=rows.bytes_of(slot),
                written_bytes=now.written - attempt.before.written,
                files=now.files,
                stored_bytes=now.bytes,
                expired_visible=now.expired_visible,
                collecting_s=round(collecting, 3) if attempt.entry.takes_turns else None,
            )
        )
        attempt.before = now
        system.tidy()
        if attempt.entry.kind != "clickhouse":  # its clock does not wait
            self._settle()

    def _check(self, attempt: Attempt, rows: Rows, slot: int) -> None:
        attempt.found = attempt.system.found(slot)

    def _read(self, attempt: Attempt, rows: Rows) -> None:
        system = attempt.system
        keys = rows.workload.probed_keys(KEYS_DELTA_RS)
        # The first of each is not counted: it finds files that nobody has read for a while.
        system.scan()
        attempt.scans_delta_rs_s.append(_timed(system.scan))
        system.probe(keys[0])
        for key in keys:
            read, began = bytes_read(), time.monotonic()
            found = system.probe(key)
            attempt.probes_ms.append(1000 * (time.monotonic() - began))
            if read is not None and system.reads_here:
                attempt.probed_bytes.append((bytes_read() or read) - read)
            attempt.probed_rows.append(found)
        if system.probe_at_once(keys[0]):
            for key in keys:
                attempt.probes_at_once_ms.append(1000 * _timed(partial(system.probe_at_once, key)))

    def _read_with_spark(self, attempt: Attempt, rows: Rows) -> None:
        system, keys = attempt.system, rows.workload.probed_keys(KEYS_SPARK)
        if not system.probe_spark(keys[0]):
            return
        for key in keys:
            attempt.probes_spark_ms.append(1000 * _timed(partial(system.probe_spark, key)))
        attempt.scans_s.append(_timed(system.scan_spark))

    def _keep(self, attempt: Attempt, rows: Rows) -> None:
        workload, found = rows.workload, attempt.found
        assert found is not None
        measured = Measured(
            workload=workload.name,
            system=attempt.entry.name,
            setting=attempt.entry.setting,
            digest=workload.digest,
            run=self.run,
            live_bytes=rows.live_bytes,
            load_s=round(attempt.load_s, 3),
            updates=attempt.updates,
            probe_ms_delta_rs=_median(attempt.probes_ms),
            probe_ms_at_once=_median(attempt.probes_at_once_ms),
            probe_ms_spark=_median(attempt.probes_spark_ms),
            probe_files=attempt.system.probe_files(workload.probed_keys(KEYS_DELTA_RS)),
            probe_bytes=_median(attempt.probed_bytes),
            probe_rows=_median(attempt.probed_rows),
            scan_s=_median(attempt.scans_s),
            scan_s_delta_rs=_median(attempt.scans_delta_rs_s),
            expired_visible=found.expired_visible,
            wrong=_wrong(found, rows),
            method=METHOD,
        )
        self.finished.keep(measured)
        self._say(
            f"{workload.name} {measured.system}: update {measured.update_s_median:.2f} s "
            f"(at most {measured.update_s_max:.2f}), "
            f"written {measured.written_per_inserted:.2f}, {measured.files} files, "
            f"probe {measured.probe_ms_delta_rs:.0f} ms"
            + (f"; WRONG: {measured.wrong}" if measured.wrong else "")
        )


def _wrong(found: Found, rows: Rows) -> str | None:
    expected = rows.expected
    if (found.live_rows, found.live_key_sum) == (expected.rows, expected.key_sum):
        return None
    return (
        f"{found.live_rows} live rows with key sum {found.live_key_sum}; "
        f"right are {expected.rows} and {expected.key_sum}"
    )


def _timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def bytes_read() -> int | None:
    """What this process has read from files so far, be it from a disk or from the cache.

    None where the system does not tell.
    """
    return int(_IO.read_text().split()[1]) if _IO.is_file() else None


def _median(values: list[float]) -> float | None:
    return round(median(values), 3) if values else None
