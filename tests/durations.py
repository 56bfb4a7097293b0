"""What each test took, kept in .cache/durations and shown by file: where a slow run spent its time.

Wall time depends on what else the machine does. CPU time, with that of the JVMs and services that
belong to a test run, hardly does: two runs are compared by it.
"""

from __future__ import annotations

import csv
import os
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

SHOWN = 15
"""Files in the summary: those that took longest."""

_MARKS = ("spark",)
"""Tests with this mark have processes that go on from test to test; these are counted too."""

_CPU = "cpu_s"


@dataclass
class Spent:
    """What a test, or all tests of a file, took."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    tests: int = 0
    outcomes: set[str] = field(default_factory=set)


class Durations:
    """A plugin of pytest: workers measure, the main process keeps and shows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = _cpu_s(all_processes=False)
        self._tests: dict[str, Spent] = defaultdict(Spent)
        self._began = time.monotonic()

    # -- in a worker -------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
        report = yield
        if call.when == "teardown":
            wide = any(item.get_closest_marker(mark) for mark in _MARKS)
            now = _cpu_s(all_processes=wide)
            # Less than before: a program has ended that nobody waited for.
            report.user_properties.append((_CPU, max(0.0, now - self._before)))
            self._before = now
        return report

    # -- in the main process -----------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        spent = self._tests[report.nodeid]
        spent.wall_s += report.duration
        spent.cpu_s += sum(value for name, value in report.user_properties if name == _CPU)
        spent.tests = 1
        if report.when == "call" or report.outcome != "passed":
            spent.outcomes.add(report.outcome)

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        if hasattr(config, "workerinput") or not self._tests:
            return
        name = config.getoption("-m").replace(" ", "_") or "all"
        kept = self._folder / f"{name}.csv"
        self._keep(kept)
        files: dict[str, Spent] = defaultdict(Spent)
        for test, spent in self._tests.items():
            file = files[test.partition("::")[0]]
            file.wall_s += spent.wall_s
            file.cpu_s += spent.cpu_s
            file.tests += 1
        longest = sorted(files.items(), key=lambda item: -item[1].wall_s)[:SHOWN]
        if sum(spent.wall_s for _, spent in longest) < 10:
            return
        minutes = (time.monotonic() - self._began) / 60
        cpu = sum(spent.cpu_s for spent in files.values()) / 60
        terminalreporter.section(f"longest files; {minutes:.1f} minutes, {cpu:.1f} of CPU")
        for file_name, spent in longest:
            terminalreporter.line(
                f"{spent.wall_s:7.1f} s {spent.cpu_s:7.1f} s CPU {spent.tests:4} tests  {file_name}"
            )
        terminalreporter.line(f"each test: {kept.relative_to(config.rootpath)}")

    def _keep(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["test", "wall_s", "cpu_s", "outcome"])
            for test, spent in sorted(self._tests.items(), key=lambda item: -item[1].wall_s):
                outcome = "+".join(sorted(spent.outcomes))
                writer.writerow([test, f"{spent.wall_s:.3f}", f"{spent.cpu_s:.3f}", outcome])


def _cpu_s(*, all_processes: bool) -> float:
    """CPU time of this process and those that it has started and waited for; with
    `all_processes` also of those that still run."""
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    if not all_processes:
        return total
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
