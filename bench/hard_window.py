"""What a hard window costs without deletion vectors, and what the ways around would give.

    .venv/bin/python -m bench.hard_window

A hard window: after every update the table holds no expired row, so rows that expire must be in
files that are rewritten or dropped by that very update. As in open_questions.py nothing is
measured: lifetimes are uniform, the figures are a model's and the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mean

from bench.open_questions import Figures, Run, merged, simulated, swept, table
from tidetable.core.schemes import Rebuild, Sweep, Tiers
from tidetable.core.simulate import simulate

Rows = dict[int, int]
"""Rows by expiration slot."""


def main() -> None:
    for period in (36, 144):
        print(f"\n## Groups that wait together, p = {period}\n")
        print(table("without deletion vectors", waiting_together(period)))
    for period in (36, 144, 720):
        print(f"\n## Groups of unequal width, p = {period}\n")
        print(table("without deletion vectors", unequal_widths(period)))
    print("\n## A soft table under a view that filters\n")
    print(table("lifetimes uniform", soft_tables()))
    print("\n## Merges cut into key ranges, one at each update\n")
    print(table("p = 720", sliced_merges()))


def arriving(slot: int, period: int) -> Rows:
    return {slot + life: 1 for life in range(1, period + 1)}


@dataclass
class Seen:
    """What the updates of a model did; its figures leave out the time until it is steady."""

    period: int
    written: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    dead: list[float] = field(default_factory=list)

    def note(self, written: int, files: int, dead: float = 0.0) -> None:
        self.written.append(written)
        self.files.append(files)
        self.dead.append(dead)

    @property
    def figures(self) -> Figures:
        steady = slice(2 * self.period, None)
        return (
            mean(self.written[steady]) / self.period,
            max(self.written[steady]) / self.period,
            mean(self.files[steady]),
            max(self.files[steady]),
            mean(self.dead[steady]),
        )


# -- groups that wait together ---------------------------------------------------------------------


def waiting_together(period: int) -> Iterator[tuple[str, Figures]]:
    for groups in (4, 5, 6, 8):
        yield f"Sweep({groups},1)", simulated(Sweep(period, groups), prune=False)
    for groups, together in ((8, 2), (8, 4), (8, 8), (9, 3), (12, 3), (12, 4), (12, 12)):
        label = f"Sweep({groups},1), {together} groups to a file of new rows"
        yield label, shared(period, groups, together)


def shared(period: int, groups: int, together: int) -> Figures:
    """Sweep whose new rows wait in one file for `together` neighbouring groups.

    When the first of these is swept, the rows of the others leave the shared files too and wait,
    one file a group, for their own sweep, which follows at once. From then on rows of a group
    that has had its turn go to a shared file again.
    """
    base: list[Rows] = [{} for _ in range(groups)]
    alone: list[list[Rows]] = [[] for _ in range(groups)]
    common: list[list[Rows]] = [[] for _ in range(groups // together)]
    seen = Seen(period)
    for slot in range(1, 6 * period + 1):
        swept = (slot - 1) % groups
        unit = swept // together
        written = 0
        arrived = arriving(slot, period)
        new = [_of(group, groups, arrived) for group in range(groups)]
        if swept % together == 0:
            for group in range(swept + 1, swept + together):
                rows = merged(0, [_of(group, groups, part) for part in common[unit]])
                alone[group].append(rows.rows)
                written += rows.live
            alone[swept] += [_of(swept, groups, part) for part in common[unit]]
            common[unit] = []
        whole = merged(0, [base[swept], *alone[swept], new[swept]])
        whole.rows.pop(slot, None)
        base[swept], alone[swept] = whole.rows, []
        written += whole.live
        for one in range(len(common)):
            members = range(one * together, (one + 1) * together)
            waiting = [group for group in members if one == unit and group > swept]
            for group in waiting:
                alone[group].append(new[group])
            rest = [new[g] for g in members if g not in waiting and g != swept]
            if rest:
                common[one].append(merged(0, rest).rows)
            written += sum(sum(new[g].values()) for g in members if g != swept)
        parts = [*base, *(x for each in alone for x in each), *(x for each in common for x in each)]
        seen.note(written, sum(1 for part in parts if part))
    return seen.figures


def _of(group: int, groups: int, rows: Rows) -> Rows:
    return {x: number for x, number in rows.items() if (x - 1) % groups == group}


# -- groups of unequal width -----------------------------------------------------------------------


def unequal_widths(period: int) -> Iterator[tuple[str, Figures]]:
    for groups in {36: (4, 6, 8), 144: (4, 8, 12), 720: (8, 12, 18)}[period]:
        scheme = Sweep(period, groups)
        yield scheme.label, simulated(scheme, prune=False)
    yield "Rebuild 4x4", simulated(Rebuild(period, 4, 4), prune=False)
    for base in (2, 3, 4, 6):
        for fan_in in (2, 4):
            yield f"Wheel({base}), {fan_in} runs merged", wheel(period, base, fan_in)


def wheel(period: int, base: int, fan_in: int) -> Figures:
    """A timing wheel: groups `base` ** level slots wide, narrow near expiry, wide far away.

    When a wide group is the next to expire its rows are written into narrower ones; a group that
    is one slot wide is dropped. New rows are added to each group as a run, and `fan_in` runs of
    one level of a group are merged, as those of Tiers are.
    """
    groups: dict[tuple[int, int], list[Run]] = {}
    seen = Seen(period)
    for slot in range(1, 5 * period + 1):
        moved: list[Rows] = [arriving(slot, period)]
        for level, block in list(groups):
            if slot // base**level == block:  # the slot has come to it
                moved += [run.rows for run in groups.pop((level, block))]
        new: dict[tuple[int, int], Rows] = {}
        for rows in moved:
            for x, number in rows.items():
                if x > slot:
                    into = new.setdefault(_bucket(x, slot, base), {})
                    into[x] = into.get(x, 0) + number
        written = sum(
            swept(groups.setdefault(group, []), [rows], fan_in, None).stored
            for group, rows in new.items()
        )
        seen.note(written, sum(map(len, groups.values())))
    return seen.figures


def _bucket(expires: int, now: int, base: int) -> tuple[int, int]:
    """(level, block): the widest aligned block with the slot in it that is wholly to come."""
    level = 0
    while expires // base ** (level + 1) != now // base ** (level + 1):
        level += 1
    return level, expires // base**level


# -- soft tables -----------------------------------------------------------------------------------


def soft_tables() -> Iterator[tuple[str, Figures]]:
    for period in (36, 144, 720):
        for ages, slots in (((), 1), ((0.25, 0.5, 0.75), 4), ((0.25, 0.5, 0.75), period // 12)):
            told = "appended, never merged" if not ages else f"{slots} slots merged, then"
            told += " at a quarter, half and three quarters of the window" if ages else ""
            yield f"p = {period}: {told}", soft(period, ages, slots)


def soft(period: int, ages: tuple[float, ...], slots: int) -> Figures:
    """Rows are appended, and expired ones stay until their file is written again at these ages.

    `slots` slots are merged into one file at the first age. Readers filter by the expiration time.
    """
    young: list[Run] = []
    runs: list[tuple[int, Run]] = []
    steps = [round(age * period) for age in ages]
    seen = Seen(period)
    for slot in range(1, 6 * period + 1):
        new = arriving(slot, period)
        written = sum(new.values())
        young.append(merged(0, [new]))
        for run in (*young, *(run for _, run in runs)):
            run.rows.pop(slot, None)
        if steps and slot % slots == 0 and len(young) >= steps[0] + slots:
            one = merged(1, [run.rows for run in young[:slots]])
            young = young[slots:]
            runs.append((slot, one))
            written += one.live
        kept = []
        for born, run in runs:
            age = slot - born + steps[0] if steps else 0
            if run.level < len(steps) and age >= steps[run.level]:
                run = merged(run.level + 1, [run.rows])
                written += run.live
            if run.rows:
                kept.append((born, run))
        runs = kept
        young = [run for run in young if run.rows]
        stored = [*young, *(run for _, run in runs)]
        live, total = sum(run.live for run in stored), sum(run.stored for run in stored)
        seen.note(written, len(stored), 1 - live / total)
    return seen.figures


# -- merges in slices ------------------------------------------------------------------------------


def sliced_merges() -> Iterator[tuple[str, Figures]]:
    for groups, fan_in in ((4, 4), (1, 4), (1, 8)):
        scheme = Tiers(720, groups, fan_in)
        yield scheme.label, simulated(scheme, prune=False)
        yield f"{scheme.label}, merges in slices", sliced(scheme)


def sliced(scheme: Tiers) -> Figures:
    """Tiers whose merges are cut into key ranges, of which each update replaces one.

    A merge into level L has the updates until its group's next one of that level, T ** L sweeps
    later. Until the turn of a key range has come it still has the runs that are being merged. The
    run of level 0 is written at once, since its rows have to leave the log.
    """
    found = simulate(scheme)
    inserted = scheme.period
    last = len(found.updates)
    runs = []
    for update in found.updates:
        group = scheme.e.part_of(update.slot)
        sweep = scheme.sweeps(group, update.slot)
        waiting = sum(scheme.e.part_of(x) != group for x in arriving(update.slot, inserted))
        runs.append((scheme.level(sweep, sweep), update.written - waiting, waiting))
    lowest = mean(size for level, size, _ in runs if level == 0)
    written, open_runs = [0.0] * last, [0.0] * last
    for at, (level, size, waiting) in enumerate(runs):
        written[at] += waiting + lowest
        length = scheme.groups * scheme.fan_in**level
        for step in range(length if level else 0):
            # One cycle is like the next: what begins near its end goes on at its beginning.
            written[(at + step) % last] += size / length
            left = 1 - step / length
            open_runs[(at + step) % last] += left * (scheme.fan_in - 1) * level
    files = [update.files + more for update, more in zip(found.updates, open_runs, strict=True)]
    return (
        mean(written) / inserted,
        max(written) / inserted,
        mean(files),
        max(files),
        found.dead_avg,
    )


if __name__ == "__main__":
    main()
