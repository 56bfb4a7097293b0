"""Which scheme suits which lifetimes, and what merging on dead rows gives: tables as Markdown.

    .venv/bin/python bench/open_questions.py

Nothing is measured here: the figures are the simulator's, and the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import mean

from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers
from tidetable.core.simulate import Arrivals, simulate

HEAD = "| written avg | written max | files avg | files max | dead |"
RULE = "|---|---:|---:|---:|---:|---:|"


def main() -> None:
    print("## A window of 720 slots, lifetimes uniform\n")
    print(table("p = 720", long_windows()))
    for period in (36, 144):
        for name, lifetimes in workloads(period).items():
            print(f"\n## p = {period}, {name}\n")
            print(table(f"p = {period}", by_lifetimes(period, lifetimes)))
    print("\n## Tiers that also merge a group once too many of its rows are dead\n")
    print(table("lifetimes uniform", on_dead_rows()))
    print("\n## Sweeps that leave alone files in which nothing expires, unless they are small\n")
    print(table("p = 144, without deletion vectors", leaving_alone()))


Figures = tuple[float, float, float, float, float]


def table(head: str, rows: Iterator[tuple[str, Figures]]) -> str:
    lines = [f"| {head} {HEAD}", RULE]
    for name, (avg, most, files, files_max, dead) in rows:
        lines.append(
            f"| {name} | {avg:.2f} | {most:.2f} | {files:.1f} | {files_max:.0f} | {dead:.2f} |"
        )
    return "\n".join(lines)


def simulated(scheme: Scheme, arrivals: Arrivals | None = None, *, prune: bool) -> Figures:
    found = simulate(scheme, arrivals, prune=prune)
    return (
        found.written_avg, found.written_max, found.files_avg, found.files_max, found.dead_avg,
    )  # fmt: skip


# -- long windows ----------------------------------------------------------------------------------


def long_windows() -> Iterator[tuple[str, Figures]]:
    for scheme in (
        Sweep(720, 24, 1, deletion_vectors=True),
        Tiers(720, 4, 4),
        Tiers(720, 1, 4),
        Tiers(720, 1, 8),
        Sweep(720, 27, 2, deletion_vectors=True),
        Sweep(720, 27, 4, deletion_vectors=True),
        *(Sweep(720, 27, 4, deletion_vectors=True, merge_log=c) for c in (4, 8, 12, 16)),
        Sweep(720, 24, 4, deletion_vectors=True, merge_log=8),
        Sweep(720, 30, 4, deletion_vectors=True, merge_log=10),
        Sweep(720, 24, 6, deletion_vectors=True, merge_log=12),
    ):
        yield scheme.label, simulated(scheme, prune=False)


# -- lifetimes -------------------------------------------------------------------------------------


def workloads(period: int) -> Mapping[str, Mapping[int, int]]:
    """Lifetime in slots -> rows per slot."""
    return {
        "all lifetimes equal": {period: 100},
        "half of the rows live a slot, half the whole window": {1: 50, period: 50},
        "heavy tail: lifetimes fall off as their 1.5th power": {
            life: rows for life in range(1, period + 1) if (rows := round(1000 / life**1.5))
        },
    }


def by_lifetimes(period: int, lifetimes: Mapping[int, int]) -> Iterator[tuple[str, Figures]]:
    def arrivals(slot: int) -> Mapping[int, int]:
        return {slot + life: rows for life, rows in lifetimes.items()}

    for scheme in (
        Rebuild(period, 4, 4),
        NoRebuild(period, 4, 4),
        Sweep(period, 8),
        Sweep(period, 8, deletion_vectors=True),
        Sweep(period, 4, 2, deletion_vectors=True),
        Sweep(period, 8, 4, deletion_vectors=True, merge_log=6),
        Tiers(period, 4, 4),
        Rebuild.by_insertion(period, 4),
        Sweep(period, period),
    ):
        yield scheme.label, simulated(scheme, arrivals, prune=True)


# -- merging on dead rows --------------------------------------------------------------------------


@dataclass
class Run:
    """A sorted file: its level, its live rows by expiration slot, and how many it began with."""

    level: int
    rows: dict[int, int]
    stored: int

    @property
    def live(self) -> int:
        return sum(self.rows.values())


def on_dead_rows() -> Iterator[tuple[str, Figures]]:
    for period, groups, fan_in in ((144, 4, 4), (720, 4, 4), (720, 1, 8)):
        for limit in (None, 0.5, 0.4, 0.3, 0.2):
            label = f"p = {period}, Tiers({groups},{fan_in})"
            if limit is not None:
                label += f", a group of which {limit:.0%} are dead"
            yield label, dead_driven(period, groups, fan_in, limit)


def dead_driven(period: int, groups: int, fan_in: int, limit: float | None) -> Figures:
    """Tiers, but a sweep merges all runs of its group if more than `limit` of their rows are dead.

    Such a rule looks at the data, so it is no scheme: those plan from slot numbers alone. The
    merged run counts as one of the highest level that the group has.
    """
    log: list[Run] = []
    runs: list[list[Run]] = [[] for _ in range(groups)]
    written, files, dead = [], [], []
    for slot in range(1, 6 * period + 1):
        group = (slot - 1) % groups
        log.append(merged(0, [{slot + life: 1 for life in range(1, period + 1)}]))
        for run in (*log, *runs[group]):
            run.rows.pop(slot, None)
        taken = [
            {x: run.rows.pop(x) for x in list(run.rows) if (x - 1) % groups == group} for run in log
        ]
        log[-1].stored = log[-1].live
        runs[group] = [run for run in runs[group] if run.rows]
        new = swept(runs[group], taken, fan_in, limit)
        log = [run for run in log if run.rows]
        written.append((log[-1].stored if groups > 1 else 0) + new.stored)
        stored = [run for each in (log, *runs) for run in each]
        files.append(len(stored))
        dead.append(1 - sum(run.live for run in stored) / sum(run.stored for run in stored))
    steady = slice(2 * period, None)
    return (
        mean(written[steady]) / period,
        max(written[steady]) / period,
        mean(files[steady]),
        max(files[steady]),
        mean(dead[steady]),
    )


def swept(runs: list[Run], taken: list[dict[int, int]], fan_in: int, limit: float | None) -> Run:
    """Adds the run that the sweep writes to those of its group, and takes out what it replaces."""
    live, stored = sum(run.live for run in runs), sum(run.stored for run in runs)
    if limit is not None and stored and 1 - live / stored > limit:
        level, old = max(run.level for run in runs), list(runs)
    else:
        level, old = 0, []
        while len(same := [run for run in runs if run.level == level]) >= fan_in - 1:
            old += same
            level += 1
    new = merged(level, [*(run.rows for run in old), *taken])
    runs[:] = [*(run for run in runs if run not in old), new]
    return new


# -- leaving files alone ---------------------------------------------------------------------------


def leaving_alone() -> Iterator[tuple[str, Figures]]:
    period = 144
    uniform = dict.fromkeys(range(1, period + 1), 10)
    for name, lifetimes in {"uniform": uniform, **workloads(period)}.items():
        yield f"{name}: Sweep(16,1)", selective(period, 16, lifetimes, 1.0)
        for small in (1.0, 0.25, 0.1, 0.0):
            label = f"{name}: Sweep(8,1)"
            if small < 1:
                label += f", merging files up to {small:.0%} of their group"
            yield label, selective(period, 8, lifetimes, small)


def selective(period: int, groups: int, lifetimes: Mapping[int, int], small: float) -> Figures:
    """Sweep without deletion vectors; a file is rewritten only if a row expires or it is small.

    A file is small if it has at most this share of its group's rows; with 1 that is each of them.
    """
    arriving = sum(lifetimes.values())
    runs: list[list[Run]] = [[] for _ in range(groups)]
    written, files = [], []
    for slot in range(1, 5 * period + 1):
        swept_group = (slot - 1) % groups
        new: dict[int, dict[int, int]] = {}
        for life, rows in lifetimes.items():
            new.setdefault((slot + life - 1) % groups, {})[slot + life] = rows
        write = 0
        for group, rows in new.items():
            if group != swept_group:
                runs[group].append(merged(0, [rows]))
                write += runs[group][-1].stored
        own = [run for run in runs[swept_group] if set(run.rows) != {slot}]
        limit = small * sum(run.live for run in own)
        again = [run for run in own if slot in run.rows or run.live <= limit]
        if len(again) > 1 or any(slot in run.rows for run in again) or swept_group in new:
            one = merged(0, [new.get(swept_group, {}), *(run.rows for run in again)])
            one.rows.pop(slot, None)
            write += one.live
            own = [*(run for run in own if run not in again), one]
        runs[swept_group] = own
        written.append(write)
        files.append(sum(map(len, runs)))
    steady = slice(2 * period, None)
    return (
        mean(written[steady]) / arriving,
        max(written[steady]) / arriving,
        mean(files[steady]),
        max(files[steady]),
        0.0,
    )


def merged(level: int, parts: list[dict[int, int]]) -> Run:
    rows: dict[int, int] = {}
    for part in parts:
        for slot, count in part.items():
            rows[slot] = rows.get(slot, 0) + count
    return Run(level, rows, sum(rows.values()))


if __name__ == "__main__":
    main()
