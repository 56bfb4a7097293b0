"""`make faults`: stories, kills, pairs of operations and hostile sources, with fresh seeds.

Every part is a command of its own, which is printed, as is the line that replays what went wrong:

    python -m tests.faults --minutes 60 --seed 7
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer

ROOT = Path(__file__).resolve().parents[2]
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
REPLAYS = re.compile(r"^(?:STORY|KILLS|  again:|FAILED) .*", re.MULTILINE)
DAMAGED_LOGS = "tests/faults/test_damaged_logs.py"
END_S = 300
"""A part that was told to end gets so long for what it has begun."""


@dataclass(frozen=True)
class Part:
    """A command that tries one kind of thing, and how its figures are read from what it says."""

    name: str
    share: float
    """Of the time that is left when it begins."""

    arguments: Callable[[int, float], list[str]]
    """For a seed and a number of minutes."""

    figures: re.Pattern[str]


def _stories(seed: int, minutes: float) -> list[str]:
    return ["tests.faults.story", f"--seed={seed}", "--stories=1000", f"--minutes={minutes:.1f}"]


def _kills(seed: int, minutes: float) -> list[str]:
    return ["tests.faults.killed", f"--seed={seed}", "--rounds=1000", f"--minutes={minutes:.1f}"]


def _pairs(seed: int, minutes: float) -> list[str]:
    return ["tests.faults.pairs", f"--seed={seed}", f"--minutes={minutes:.1f}"]


def _hostile(*_: float) -> list[str]:
    return ["pytest", "-q", "-p", "no:cacheprovider", "tests/hostile", DAMAGED_LOGS]


PARTS = (
    Part("hostile", 0.2, _hostile, re.compile(r"(\d+) passed")),
    Part("pairs", 0.4, _pairs, re.compile(r"^pairs: (\d+) tried.*", re.MULTILINE)),
    Part("stories", 0.5, _stories, re.compile(r"^(\d+) stories.*", re.MULTILINE)),
    Part("kills", 1.0, _kills, re.compile(r"^(\d+) kills.*", re.MULTILINE)),
)


@dataclass
class Outcome:
    """What came of one part."""

    command: str
    figures: str
    seconds: float
    failed: bool
    replays: list[str] = field(default_factory=list)


def run(part: Part, seed: int, minutes: float) -> Outcome:
    """Runs the part; what it says is passed on."""
    arguments = part.arguments(seed, minutes)
    command = f"python -m {' '.join(arguments)}"
    print(f"\n$ {command}", flush=True)
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={"TIDETABLE_JAVA_OPTIONS": JAVA_OPTIONS, "PYTHONPATH": "spark", **os.environ},
        start_new_session=True,
    )  # fmt: skip
    late = Timer(60 * minutes + END_S, lambda: os.killpg(process.pid, signal.SIGKILL))
    late.start()
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        print(line, end="", flush=True)
    status = process.wait()
    late.cancel()
    text = "".join(said)
    found = list(part.figures.finditer(text))
    figures = found[-1][0] if found else "no figures"
    if status == -signal.SIGKILL:
        figures += f", ended after {minutes:.0f} minutes"
    replays = list(dict.fromkeys(REPLAYS.findall(text))) if status else []
    return Outcome(command, figures, time.monotonic() - began, status != 0, replays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="otherwise by the clock")
    parser.add_argument("--only", choices=[part.name for part in PARTS], action="append")
    given = parser.parse_args()
    seed = int(time.time()) % 1_000_000 if given.seed is None else given.seed
    until = time.monotonic() + 60 * given.minutes
    print(f"make faults SEED={seed} MINUTES={given.minutes:g}", flush=True)
    outcomes: dict[str, Outcome] = {}
    for part in PARTS:
        if given.only and part.name not in given.only:
            continue
        left = max(0.0, until - time.monotonic()) / 60
        outcomes[part.name] = run(part, seed, left if given.only else part.share * left)
    print("\n| | tried | minutes | | command |\n|---|---|---|---|---|")
    for name, one in outcomes.items():
        how = "FAILED" if one.failed else "nothing lost"
        print(f"| {name} | {one.figures} | {one.seconds / 60:.1f} | {how} | `{one.command}` |")
    failed = [one for one in outcomes.values() if one.failed]
    for one in failed:
        print("\n".join(["", "To see it again:", *(one.replays or [one.command])]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
