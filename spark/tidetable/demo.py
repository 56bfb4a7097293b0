"""The demonstration behind `make run`: a day of real flights through three indexes.

Prepares the sample, brings the indexes some slots further, one commit for each slot, and shows what
came of it: status, cells, one probe, and what each scheme wrote. It always ends by itself (so ONCE
changes nothing), and a later call goes on from where the tables stand.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Console, Group
from rich.measure import Measurement
from rich.padding import Padding
from rich.text import Text

from tidetable.cli import project_root, say, tell
from tidetable.core.config import Index, find_index, format_time, load_index
from tidetable.core.errors import TidetableError, UserError
from tidetable.delta.report import UpdateReport
from tidetable.delta.table import IndexTable

if TYPE_CHECKING:
    from tidetable.delta.read import View
    from tidetable.delta.status import Status

INDEXES = ("flights_rebuild", "flights_no_rebuild", "flights_sweep")
SLOTS = 12
GAP = 3
PROBED = "flights_sweep"
PROBE_COLUMNS = (
    "tail_number", "flight", "origin", "dest", "departed_at", "landed_at", "_expiration_slot",
)  # fmt: skip

Watch = Callable[["Stretch", UpdateReport | None], None]
"""Called when the updates of an index begin, with None, and after each of them."""


@dataclass
class Stretch:
    """The updates that this call applies to one index."""

    index: Index
    at: int | None
    """The slot at which the table stood; None if there was none."""

    target: int
    reports: list[UpdateReport] = field(default_factory=list)

    @property
    def commits(self) -> int:
        return self.target - (-1 if self.at is None else self.at)

    @property
    def written_per_inserted(self) -> float | None:
        """Rows written per row inserted, the load of slot 0 left out; None if none came in."""
        updates = [report for report in self.reports if report.slot > 0]
        inserted = sum(report.inserted for report in updates)
        rewritten = sum(report.rewritten_rows for report in updates)
        return (inserted + rewritten) / inserted if inserted else None


def run(root: Path, slots: int = SLOTS, console: Console | None = None) -> list[Stretch]:
    """The whole demonstration in the project at `root`; returns what was done to each index."""
    console = Console(highlight=False) if console is None else console
    console.print("[bold]Flights in the air[/]: a row lives from take-off to landing.")
    with _busy(console, "preparing the sample"):
        written = prepare_sample(root)
    if written:
        console.print(f"The sample: {written} days of flights, in include/data/flights.")
    stretches = [stretch(load_index(find_index(name, root), root), slots) for name in INDEXES]
    if any(one.commits for one in stretches):
        _tell_stretch(console, stretches)
        with _busy(console, "starting Spark"):
            from tidetable.delta.session import spark_session

            spark = spark_session(root)
        from tidetable.delta.update import Updater

        with _watching(console, stretches) as watch:
            for one in stretches:
                watch(one, None)
                for report in Updater(spark, one.index).catch_up(one.target):
                    one.reports.append(report)
                    watch(one, report)
    else:
        console.print("Nothing left to do: the tables stand at the `end` of their YAML files.")
        console.print("`make clean` removes them, and the next run starts over.")
    _conclude(console, stretches)
    return stretches


def prepare_sample(root: Path) -> int:
    """Writes the days of the sample that are missing; returns how many those were."""
    script = root / "include" / "sample" / "flights.py"
    spec = importlib.util.spec_from_file_location("sample_flights", script)
    if not script.is_file() or spec is None or spec.loader is None:
        raise UserError(
            f"{script} is missing: the demonstration prepares its flights with it. "
            "Run it in a complete copy of the project, with make run."
        )
    sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sample)
    return len(sample.write_flights(root / "include" / "data" / "flights"))


def stretch(index: Index, slots: int) -> Stretch:
    """The next slots of an index, as far as its `end` allows."""
    state = IndexTable(index).state()
    at = None if state is None else state.slot
    target = (at or 0) + slots
    if index.end is not None:
        target = min(target, max(index.timeline.ended_by(index.end), at or 0))
    return Stretch(index, at, target)


# -- while it runs -------------------------------------------------------------------------------


@contextmanager
def _busy(console: Console, what: str) -> Iterator[None]:
    if not console.is_terminal:
        console.print(f"{what} ...")
        yield
        return
    with console.status(what):
        yield


@contextmanager
def _watching(console: Console, stretches: Sequence[Stretch]) -> Iterator[Watch]:
    """Something to call after each update: bars on a terminal, otherwise a line each."""
    width = max(len(one.index.name) for one in stretches)
    if not console.is_terminal:

        def tell(one: Stretch, report: UpdateReport | None) -> None:
            if report is not None:
                console.print(_line(one, report, width), soft_wrap=True)

        yield tell
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(f"{{task.description:<{width}}}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Progress(*columns, console=console) as progress:
        tasks = {
            one.index.name: progress.add_task(
                one.index.name, total=max(1, one.commits), completed=not one.commits,
                start=False, told="",
            )
            for one in stretches
        }  # fmt: skip

        def watch(one: Stretch, report: UpdateReport | None) -> None:
            task = tasks[one.index.name]
            if report is None:
                progress.start_task(task)
                return
            progress.update(task, advance=1, told=_told(report))
            if report.slot >= one.target:
                progress.stop_task(task)

        yield watch


def _line(one: Stretch, report: UpdateReport, width: int) -> str:
    time_of_day = report.as_of[11:16]
    return (
        f"{one.index.name:<{width}}  slot {report.slot:>2}  {time_of_day}  "
        f"+{report.inserted:<3} -{report.expired:<3} in the air {report.live:>3}  "
        f"rewritten {report.rewritten_rows:>3}  {report.seconds:.1f} s"
    )


def _told(report: UpdateReport) -> str:
    return f"slot {report.slot}, {report.as_of[11:16]}: {report.live} in the air"


def _tell_stretch(console: Console, stretches: Sequence[Stretch]) -> None:
    if all(one.at is None for one in stretches):
        index = stretches[0].index
        minutes = index.update_every.total_seconds() / 60
        console.print(
            f"Slot 0 loads who is in the air at {format_time(index.start)}; then an update for "
            f"each {minutes:.0f} minutes of that day."
        )
        return
    for one in stretches:
        if one.commits:
            console.print(f"{one.index.name} goes on to slot {one.target}.")
        else:
            console.print(f"{one.index.name} stands at slot {one.at}, the last before its `end`.")


# -- at the end ----------------------------------------------------------------------------------


def _conclude(console: Console, stretches: Sequence[Stretch]) -> None:
    from tidetable import show
    from tidetable.delta.status import status

    found = [status(one.index) for one in stretches]
    console.print()
    console.print(show.status_table(found))
    console.print()
    console.print("[bold]Cells[/], and how many rows each holds:")
    console.print(pictures(console, found))
    _probe(console, next(one for one in found if one.index.name == PROBED))
    _compare(console, stretches, found)
    _suggest(console)


def pictures(console: Console, found: Sequence[Status]) -> Group:
    """The cells of the indexes, side by side where they fit."""
    from tidetable import show

    lines: list[list[Padding]] = []
    room = 0
    for one in found:
        drawn = Group(Text(one.index.name, "bold"), show.cells_picture(one.cells))
        needs = Measurement.get(console, console.options, drawn).maximum + GAP
        if needs > room:
            lines.append([])
            room = console.width
        lines[-1].append(Padding(drawn, (0, GAP, 1, 0), expand=False))
        room -= needs
    return Group(*(Columns(line) for line in lines))


def _probe(console: Console, found: Status) -> None:
    from tidetable import show
    from tidetable.delta import read
    from tidetable.delta.restriction import Restriction

    began = time.perf_counter()
    seen = read.view(found.index)
    key = _some_key(seen)
    if key is None:
        console.print(f"[bold]A probe[/]: nobody is in the air at {format_time(seen.as_of)}.\n")
        return
    wanted = Restriction(keys=(key,))
    rows = [row for batch in read.batches(seen, wanted) for row in read.rows(batch)]
    milliseconds = 1000 * (time.perf_counter() - began)
    console.print(
        f"[bold]A probe[/]: {key}, in the air at {format_time(seen.as_of)}. "
        f"Found through delta-rs, without a JVM, in {milliseconds:.0f} ms:"
    )
    columns = [name for name in PROBE_COLUMNS if name in seen.columns]
    console.print(show.rows_table(columns, rows))
    console.print()


def _some_key(seen: View) -> str | None:
    """The key of the row that has longest to live."""
    from deltalake import QueryBuilder

    from tidetable.delta.log import arrow
    from tidetable.delta.restriction import DATAFUSION

    key, expires = (DATAFUSION.column(name) for name in (seen.index.key, "_expiration_slot"))
    query = QueryBuilder().register("t", seen.log.table)
    found = arrow(query.execute(f"SELECT {key} AS k FROM t ORDER BY {expires} DESC, k LIMIT 1"))
    keys = found.read_all().column("k").to_pylist()
    return str(keys[0]) if keys else None


def _compare(console: Console, stretches: Sequence[Stretch], found: Sequence[Status]) -> None:
    told = [
        f"{one.index.name} {one.written_per_inserted:.2f}"
        for one in stretches
        if one.written_per_inserted is not None
    ]
    if told:
        files = ", ".join(f"{one.index.name} {one.files}" for one in found)
        console.print(f"[bold]Rows written per row inserted[/] in this run: {', '.join(told)}.")
        console.print(f"[bold]Files[/] that a scan opens now: {files}.\n")


def _suggest(console: Console) -> None:
    command = "tidetable" if shutil.which("tidetable") else ".venv/bin/tidetable"
    console.print("[bold]What to try next[/]")
    for what, arguments in (
        ("who lands when", "status flights_sweep"),
        ("the next update", "plan flights_sweep"),
        ("planes N1 to N2", "probe flights_sweep --from N1 --to N2"),
        ("two hours more", "update flights_sweep --slots 4"),
        ("theory", "simulate --scheme sweep --period 24 --groups 12"),
    ):
        console.print(f"  [dim]{what:<15}[/]  {command} {arguments}", soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point; the exit status is as that of the command `tidetable`."""
    parser = argparse.ArgumentParser(
        prog="python -m tidetable.demo", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--slots", type=int, default=SLOTS, metavar="N",
        help=f"how many slots further each index goes (default {SLOTS})",
    )  # fmt: skip
    slots = parser.parse_args(arguments).slots
    if slots < 1:
        parser.error(f"--slots must be at least 1, not {slots}")
    try:
        run(project_root(), slots)
    except KeyboardInterrupt:
        say("Stopped. What was committed stays; run it again to go on.")
        return 130
    except Exception as error:
        if os.environ.get("TIDETABLE_DEBUG") and not isinstance(error, TidetableError):
            raise
        return tell(error, as_json=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
