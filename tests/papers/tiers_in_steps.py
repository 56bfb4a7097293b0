"""Tiers word for word as its definition has it, apart from the planner: every step is written.

A sweep writes a run of level 0; if that is the T-th of its level all T are read and written as one
of the next level, and so on. An update of ours writes the last of these runs only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

Rows = dict[int, int]
"""Live rows by expiration slot."""


class After(NamedTuple):
    """What one update wrote and left."""

    written: int
    files: int
    live: int
    stored: int


@dataclass
class Run:
    """A file of one group, or of the log."""

    level: int
    rows: Rows
    stored: int


def one_run(level: int, runs: list[Rows]) -> Run:
    rows = {slot: 0 for run in runs for slot in run}
    for run in runs:
        for slot, count in run.items():
            rows[slot] += count
    return Run(level, rows, sum(rows.values()))


def in_steps(period: int, groups: int, fan_in: int, updates: int) -> Iterator[After]:
    """Each update of an even stream: one row for each pair of slots."""
    log: list[Run] = []
    runs: list[list[Run]] = [[] for _ in range(groups)]
    for slot in range(1, updates + 1):
        group = (slot - 1) % groups
        log.append(one_run(0, [{slot + life: 1 for life in range(1, period + 1)}]))
        for run in (*log, *runs[group]):
            run.rows.pop(slot, None)
        taken = [
            {x: run.rows.pop(x) for x in list(run.rows) if (x - 1) % groups == group} for run in log
        ]
        log[-1].stored = sum(log[-1].rows.values())
        new = one_run(0, taken)
        written = log[-1].stored + new.stored
        own = [run for run in runs[group] if run.rows]
        while len(same := [run for run in own if run.level == new.level]) == fan_in - 1:
            own = [run for run in own if run.level != new.level]
            new = one_run(new.level + 1, [run.rows for run in (*same, new)])
            written += new.stored
        runs[group] = [*own, new]
        log = [run for run in log if run.rows]
        files = [run for each in (log, *runs) for run in each]
        live = sum(sum(run.rows.values()) for run in files)
        yield After(written, len(files), live, sum(run.stored for run in files))
