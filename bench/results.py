"""The results of a size: one page, two CSV files and plots, from all pairs that are finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.floor import told_floors
from bench.goals import Outcome, outcomes
from bench.measured import Finished, Measured
from bench.noise import told as told_noise
from bench.picture import MARKED, trade_off, update_by_update
from bench.sizes import Choice
from bench.systems.catalog import DEFAULT, SYSTEMS
from bench.tables import figure, figures_table, markdown, write_csv, write_updates_csv
from bench.wins import wins
from bench.workload import Workload

RUN = "run of "
"""Begins the names of those facts that tell how long a run took."""

GOALS_FROM = 1_000_000_000
"""The goals are set for so many live bytes and up; below, the fixed cost of a commit hides them."""


def write_results(
    choice: Choice, finished: Finished, machine: Mapping[str, str], folder: Path
) -> list[Path]:
    """Writes what is known now; the files that were written."""
    by_workload = _current(choice, finished)
    every = [one for found in by_workload.values() for one in found]
    folder.mkdir(parents=True, exist_ok=True)
    label = choice.label
    files = [folder / f"{label}.md", folder / f"{label}.csv", folder / f"{label}-updates.csv"]
    write_csv(files[1], every)
    write_updates_csv(files[2], every)
    for name, found in by_workload.items():
        pictures = _pictures(folder, label, choice.workload(name), found)
        for file, text in pictures.items():
            file.write_text(text)
            files.append(file)
    files[0].write_text(page(choice, by_workload, machine))
    return files


def _current(choice: Choice, finished: Finished) -> dict[str, list[Measured]]:
    """What was measured on the rows and with the settings of today, in the catalogue's order."""
    names = dict.fromkeys([*choice.size.systems, *sorted({one.workload for one in finished.all()})])
    found = {}
    for name in names:
        digest = choice.workload(name).digest
        here = [
            one
            for system, entry in SYSTEMS.items()
            if finished.is_finished(name, system, digest, entry.setting)
            and (one := finished.get(name, system)) is not None
        ]
        if here:
            found[name] = here
    return found


def _pictures(
    folder: Path, label: str, workload: Workload, found: Sequence[Measured]
) -> dict[Path, str]:
    title = f"{workload.name}, {found[0].live_bytes / 1e6:,.0f} MB live"
    drawn = {}
    if len(found) > 1:
        drawn[folder / f"{label}-{workload.name}-trade-off.svg"] = trade_off(found, title)
    if any(one.system in MARKED for one in found):
        file = folder / f"{label}-{workload.name}-updates.svg"
        drawn[file] = update_by_update(found, title)
    return drawn


def page(
    choice: Choice, by_workload: Mapping[str, Sequence[Measured]], machine: Mapping[str, str]
) -> str:
    """The page in Markdown."""
    lines = [
        f"# Results: {choice.label}",
        "",
        "Made by `make bench SIZE=" + choice.size.name + "`. What is measured and how to read it: "
        "[benchmark.md](../../docs/benchmark.md).",
        *_missing(choice, by_workload),
        "",
        "## Goals",
        "",
        *_goals(choice, by_workload),
    ]
    for name, found in by_workload.items():
        lines += ["", f"## {name}", "", *_workload(choice, choice.workload(name), found)]
    lines += ["", "## Systems", "", *_systems(by_workload)]
    lines += ["", "## Machine and versions", "", *_machine(machine, by_workload)]
    return "\n".join(lines) + "\n"


def _missing(choice: Choice, by_workload: Mapping[str, Sequence[Measured]]) -> list[str]:
    """What of the size has not been measured, if anything."""
    wanted = {(name, one) for name, systems in choice.size.systems.items() for one in systems}
    there = {(name, one.system) for name, found in by_workload.items() for one in found}
    if not (missing := wanted - there):
        return []
    return [
        f"Only a part of it has been measured: {len(wanted & there)} of the {len(wanted)} pairs of "
        f"workload and system; {len(missing)} {'is' if len(missing) == 1 else 'are'} missing.",
    ]


def all_outcomes(
    choice: Choice, by_workload: Mapping[str, Sequence[Measured]]
) -> list[tuple[str, Outcome]]:
    """The goals on every workload, each with the workload's name."""
    return [
        (name, one)
        for name, found in by_workload.items()
        for one in outcomes(choice.workload(name), {one.system: one for one in found})
    ]


def told_goals(choice: Choice, finished: Finished) -> list[str]:
    """For the end of a run: the goals, and what an update takes of its floor."""
    by_workload = _current(choice, finished)
    lines = [
        f"{name}: {one.goal}: {figure(one.value)}, {_sign(one)} {one.limit:g}: {one.told}"
        for name, one in all_outcomes(choice, by_workload)
    ]
    floors = [
        f"{name}: {told}" for name, found in by_workload.items() for told in told_floors(found)
    ]
    return [line.replace("*", "").replace("`", "") for line in [*lines, *floors]]


def _sign(one: Outcome) -> str:
    return "≥" if one.at_least else "≤"


def _goals(choice: Choice, by_workload: Mapping[str, Sequence[Measured]]) -> list[str]:
    rows = [
        [one.goal, name, f"{_sign(one)} {one.limit:g}", figure(one.value), one.told]
        for name, one in all_outcomes(choice, by_workload)
    ]
    lines = ["For the default scheme, as ratios within one run."]
    if choice.size.live_bytes < GOALS_FROM:
        lines.append(
            "They are set for 1 GB live and up, but for that of update / limit at 1 MB: at this "
            "size the fixed cost of a commit, which all have in common, is most of an update. Here "
            "the others are for information."
        )
    return [*lines, "", *markdown(("goal", "workload", "limit", "ratio", ""), rows)]


def _workload(choice: Choice, workload: Workload, found: Sequence[Measured]) -> list[str]:
    live = found[0].live_bytes
    lines = [
        f"{workload.told}. {live / 1e6:,.0f} MB live after {workload.updates} updates of about "
        f"{found[0].updates[0].inserted_bytes / 1e6:,.1f} MB.",
        "",
        *figures_table(found),
    ]
    if floors := told_floors(found):
        lines += ["", f"Against the floor under an update, medians: {'; '.join(floors)}."]
    if len({one.run for one in found}) > 1:
        lines += ["", _told_runs(found)]
    if any(one.system == DEFAULT for one in found) and (noise := told_noise(found, DEFAULT)):
        lines += ["", noise]
    for one in found:
        if one.wrong:
            lines += ["", f"`{one.system}` shows wrong rows: {one.wrong}."]
    ahead = wins(found)
    lines += ["", "Where another one is ahead of the default, by how many times, and why:", ""]
    lines += [f"- {win.told}" for win in ahead] or ["- nowhere by more than 5 %"]
    stem = f"{choice.label}-{workload.name}"
    if len(found) > 1:
        lines += ["", f"![What an update costs against what a probe costs]({stem}-trade-off.svg)"]
    if any(one.system in MARKED for one in found):
        lines += ["", f"![Seconds of every update]({stem}-updates.svg)"]
    return lines


def _told_runs(found: Sequence[Measured]) -> str:
    """Which rows of a table may be compared."""
    runs: dict[str, list[str]] = {}
    for one in found:
        runs.setdefault(one.run, []).append(f"`{one.system}`")
    told = "; ".join(f"{run}: {', '.join(systems)}" for run, systems in sorted(runs.items()))
    return f"Measured in several runs, and seconds are to be compared within one only. {told}."


def _systems(by_workload: Mapping[str, Sequence[Measured]]) -> list[str]:
    met = {one.system for found in by_workload.values() for one in found}
    rows = [[f"`{name}`", entry.setting] for name, entry in SYSTEMS.items() if name in met]
    table = [f"| {name} | {setting} |" for name, setting in rows]
    return ["| system | setting |", "|---|---|", *table]


def _machine(
    machine: Mapping[str, str], by_workload: Mapping[str, Sequence[Measured]]
) -> list[str]:
    runs = sorted({one.run for found in by_workload.values() for one in found})
    lines = [
        f"| {name} | {value} |"
        for name, value in machine.items()
        if not name.startswith(RUN) or name.removeprefix(RUN) in runs
    ]
    told = f"Measured in the run that began {runs[0]} UTC." if len(runs) == 1 else (
        f"Measured in {len(runs)} runs, which began {', '.join(runs)} UTC; ratios among the goals "
        "are taken within one of them only. The machine is that of the last one."
    )  # fmt: skip
    return [told if runs else "Nothing is measured yet.", "", "| | |", "|---|---|", *lines]
