"""Runs a whole pipeline on this machine: starts it, says where to look, shows how far it is.

`embedded.py` (make run) and `cluster.py` (make cluster) say what it consists of.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.columns import Columns
from rich.console import Console, Group
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from rig.airflow_api import AirflowApi
from rig.catching_up import CatchUp, Outcome, catch_ups, nothing_left, timing
from rig.home import Airflow
from rig.sample import days_of, has_sample, prepare_sample
from rig.services import Service, Services, Stopped, stopping_on_signals
from tidetable.config import Index
from tidetable.core.errors import TidetableError, UserError
from tidetable.pipeline.catalog import read_catalog
from tidetable.quality import reports_home
from tidetable.table.history_row import UpdateRow

LOOK_EVERY_S = 2.0
ASK_EVERY_S = 5.0
GAP = 3
LOG_WIDTH_MAX = 400


@dataclass(frozen=True)
class Options:
    """What the caller of `make` chooses."""

    once: bool = False
    """Ends by itself when every index that has an `end` stands there."""

    port: int | None = None
    limit_s: float = 1800.0
    """How long `once` may take."""


@dataclass(frozen=True)
class Pipeline:
    """What runs, and what people should know about it."""

    name: str
    """Of the make target."""

    airflow: Airflow
    first: Sequence[Service]
    """Started before Airflow: Spark, a database."""

    before_airflow: Sequence[str] = ()
    """Those of `first` that Airflow itself waits for."""

    prepare: Callable[[Services], None] = lambda services: None
    """Called when those are up."""

    hints: Sequence[tuple[str, str]] = ()
    """More places to look: what it is, and where."""


@dataclass
class Show:
    """Says on the console what happens."""

    console: Console
    began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """A line for what is being done, with the seconds it took."""
        began = time.monotonic()
        if self.console.is_terminal:
            with self.console.status(what):
                yield
        else:
            yield
        self.say(f"[green]✓[/] {what} [dim]({time.monotonic() - began:.0f} s)[/]")

    @property
    def elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


def run(pipeline: Pipeline, options: Options, console: Console | None = None) -> int:
    """Starts it, watches it, stops it; the exit status."""
    show = Show(Console(highlight=False) if console is None else console)
    project = pipeline.airflow.project
    catalog = read_catalog(project)
    for mistake in catalog.mistakes:
        show.say(f"[red]{escape(str(mistake))}[/]")
    indexes = [entry.index for entry in catalog.entries.values()]
    waiting = catch_ups(indexes)
    if options.once and not waiting:
        raise UserError(
            f"No index in {project / 'include' / 'indexes'} has an `end` after its first slot: "
            "ONCE=1 would wait for ever. Give one an `end`, or leave ONCE away."
        )
    _prepare_sample(show, indexes, project)
    if options.once and not catalog.mistakes and nothing_left(waiting, project):
        show.say(
            "Nothing left to do: every index stands at its `end`, and its last report is good."
        )
        _show_tables(show, waiting)
        return 0
    with stopping_on_signals():
        try:
            return _run(pipeline, options, show, waiting, failed=bool(catalog.mistakes))
        except (KeyboardInterrupt, Stopped) as ended:
            show.say("Stopped. What was committed stays; start it again to go on.")
            if not options.once:
                return 0
            return 130 if isinstance(ended, KeyboardInterrupt) else 143


def _run(
    pipeline: Pipeline, options: Options, show: Show, waiting: list[CatchUp], *, failed: bool
) -> int:
    airflow = pipeline.airflow
    folder = airflow.home / "services"

    def told(event: str, name: str) -> None:
        # The API server waits for open pages, the triggerer for nothing at all: no news.
        if event == "killing" and name not in ("api-server", "triggerer"):
            show.say(f"[yellow]{name} did not end in time and is killed[/]")
        elif event == "stopping" and name == "scheduler":
            show.say("Stopping. A task that runs may finish; Ctrl-C again does not wait for it.")

    with Services(folder, told=told) as services:
        _start(pipeline, show, services)
        api = AirflowApi(airflow.url, airflow.password())
        _tell_where(pipeline, show, folder)
        watcher = Watcher(show, services, api, airflow.project, waiting)
        watcher.watch(options)
        good = not failed and all(one.outcome is Outcome.DONE for one in waiting)
        if waiting:
            _conclude(show, api, waiting, airflow.project)
        if options.once:
            return 0 if good else 1
        show.say("\nEverything keeps running: [bold]Ctrl-C[/] stops it.")
        while True:
            services.sleep(3600)


# -- starting --------------------------------------------------------------------------------------


def _prepare_sample(show: Show, indexes: Sequence[Index], project: Path) -> None:
    if not has_sample(project):
        return
    with show.step("the sample: real flights of 2013, in include/data/flights"):
        prepare_sample(project, days_of(indexes, project))


def _start(pipeline: Pipeline, show: Show, services: Services) -> None:
    airflow = pipeline.airflow
    for service in pipeline.first:
        services.start(service)
    if pipeline.before_airflow:
        with show.step(" and ".join(pipeline.before_airflow)):
            services.wait_ready(*pipeline.before_airflow)
    pipeline.prepare(services)
    migration = airflow.migration()
    if migration is not None:
        with show.step("Airflow's metadata database"):
            services.run(migration)
            airflow.note_migrated()
    programs = airflow.services()
    with show.step("Airflow: " + ", ".join(service.name for service in programs)):
        for service in programs:
            services.start(service)
        services.wait_ready(*(service.name for service in programs))
    rest = [one.name for one in pipeline.first if one.name not in pipeline.before_airflow]
    if rest:
        with show.step(" and ".join(rest)):
            services.wait_ready(*rest)


def _tell_where(pipeline: Pipeline, show: Show, folder: Path) -> None:
    airflow = pipeline.airflow
    show.say("")
    lines = [
        *_ways_in(airflow, show),
        *pipeline.hints,
        ("quality reports", f"{reports_home(airflow.project)}/NAME/site/index.html"),
        ("logs", f"{folder} (programs), {airflow.logs} (tasks)"),
    ]
    width = max(len(what) for what, _ in lines)
    for what, where in lines:
        show.say(f"  [dim]{what:<{width}}[/]  {where}")
    show.say("")


def _ways_in(airflow: Airflow, show: Show) -> list[tuple[str, str]]:
    """Secrets only for somebody who looks: what is not a terminal may be a log that others read."""
    places = [("pictures of the indexes", f"{airflow.url}/tidetable/"), ("Airflow", airflow.url)]
    if not show.console.is_terminal:
        return [*places, ("log in as", f"admin, password in {airflow.passwords}")]
    return [
        ("open this, it logs you in (once)", airflow.login_link()),
        *places,
        ("log in as", f"admin, password {airflow.password()}"),
    ]


# -- while it runs ---------------------------------------------------------------------------------


class Watcher:
    """Shows how the indexes get on: bars on a terminal, otherwise a line for each update."""

    def __init__(
        self,
        show: Show,
        services: Services,
        api: AirflowApi,
        project: Path,
        waiting: Sequence[CatchUp],
    ) -> None:
        self._show = show
        self._services = services
        self._api = api
        self._project = project
        self._waiting = waiting
        self._pictured: set[str] = set()

    def watch(self, options: Options) -> None:
        """Until every index is done, or has failed, or the time is over."""
        began = asked = time.monotonic()
        self._look(_silent)  # what an earlier run did is no news
        for one in self._waiting:
            if one.slot is not None:
                self._pictured.add(one.index.name)
                self._show.say(f"{one.index.name} goes on from slot {one.slot}.")
        with self._reporting() as tell:
            while going := [one for one in self._waiting if one.outcome is Outcome.GOING]:
                self._services.sleep(LOOK_EVERY_S)
                self._look(tell)
                if time.monotonic() - asked >= ASK_EVERY_S:
                    for one in going:
                        one.ask(self._api, self._project)
                    asked = time.monotonic()
                if options.once and time.monotonic() - began > options.limit_s:
                    self._give_up(going, options.limit_s)
                    return

    def _look(self, tell: Callable[[CatchUp, UpdateRow], None]) -> None:
        for one in self._waiting:
            with suppress(TidetableError):  # a table that is wrong is told by its DAG
                for row in one.look():
                    tell(one, row)

    def _give_up(self, going: Sequence[CatchUp], limit_s: float) -> None:
        errors = self._api.import_errors()
        for one in going:
            one.outcome = Outcome.FAILED
            one.why = (
                f"it is not done after {limit_s / 60:.0f} minutes: the table stands at "
                f"{'no slot' if one.slot is None else f'slot {one.slot}'} of {one.last_slot}, "
                f"{one.finished_runs} runs have finished. Start again to go on, or allow more time "
                "with --limit"
            )
            if errors:
                one.why += "; Airflow cannot read:\n" + "\n".join(errors)

    @contextmanager
    def _reporting(self) -> Iterator[Callable[[CatchUp, UpdateRow], None]]:
        if not self._waiting:
            yield _silent
        elif not self._show.console.is_terminal:
            yield self._line
        else:
            with self._bars() as tell:
                yield tell

    def _line(self, one: CatchUp, row: UpdateRow) -> None:
        took = "" if row.seconds is None else f"  {row.seconds:.1f} s"
        self._show.say(
            f"{one.index.name:<{self._width}}  slot {row.slot:>2} of {one.last_slot}  "
            f"{row.as_of:%H:%M}  +{row.inserted:<3} -{row.expired:<3} live {row.live:>4}{took}"
        )
        self._tell_first(one)

    def _tell_first(self, one: CatchUp) -> None:
        if one.index.name not in self._pictured:
            self._pictured.add(one.index.name)
            if len(self._pictured) == 1:
                self._show.say(f"[green]The first picture is there, after {self._show.elapsed}.[/]")

    @property
    def _width(self) -> int:
        return max(len(one.index.name) for one in self._waiting)

    @contextmanager
    def _bars(self) -> Iterator[Callable[[CatchUp, UpdateRow], None]]:
        columns = (
            TextColumn(f"{{task.description:<{self._width}}}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[told]}"),
        )
        with Progress(*columns, console=self._show.console) as progress:
            tasks = {
                one.index.name: progress.add_task(
                    one.index.name, total=one.last_slot, completed=max(0, one.slot or 0), told=""
                )
                for one in self._waiting
            }

            def tell(one: CatchUp, row: UpdateRow) -> None:
                told = f"slot {row.slot}, {row.as_of:%H:%M}: {row.live} live rows"
                progress.update(tasks[one.index.name], completed=row.slot, told=told)
                self._tell_first(one)

            yield tell


def _silent(one: CatchUp, row: UpdateRow) -> None:
    pass


# -- at the end ------------------------------------------------------------------------------------


def _conclude(show: Show, api: AirflowApi, waiting: Sequence[CatchUp], project: Path) -> None:
    _show_tables(show, waiting)
    measured = [(one, timing(api, one)) for one in waiting]
    show.say("[bold]Seconds per update[/], all its tasks; the first also loads slot 0:")
    for one, found in measured:
        if found is not None:
            show.say(
                f"  {one.index.name:<24} first {found.first_s:5.1f}   then median "
                f"{found.median_s:5.1f}   longest {found.longest_s:5.1f}   {found.runs} runs"
            )
    for one in waiting:
        if one.outcome is Outcome.DONE:
            continue
        show.say(f"\n[red]{one.index.name}: {escape(one.why)}.[/]")
        for failure in one.failures:
            show.say(
                f"The task [bold]{failure.task_id}[/] of {failure.run_id} failed. Its log ends:"
            )
            for line in failure.log:
                show.say(f"    {escape(line[:LOG_WIDTH_MAX])}")
    if all(one.outcome is Outcome.DONE for one in waiting):
        show.say(
            f"[green]Caught up after {show.elapsed}:[/] all runs succeeded, the tables stand at "
            "their ends, the last quality reports are good."
        )


def _show_tables(show: Show, waiting: Sequence[CatchUp]) -> None:
    from tidetable.output.show import cells_picture, status_table
    from tidetable.table.status import status

    found = []
    for one in waiting:
        with suppress(TidetableError):
            found.append(status(one.index))
    if not found:
        return
    console = show.console
    console.print()
    console.print(status_table(found))
    console.print()
    lines: list[list[Padding]] = []
    room = 0
    for each in found:
        drawn = Group(Text(each.index.name, "bold"), cells_picture(each.cells))
        needs = Measurement.get(console, console.options, drawn).maximum + GAP
        if needs > room:
            lines.append([])
            room = console.width
        lines[-1].append(Padding(drawn, (0, GAP, 1, 0), expand=False))
        room -= needs
    console.print(Group(*(Columns(line) for line in lines)))


# -- the command -----------------------------------------------------------------------------------


def options_of(program: str, about: str, arguments: Sequence[str] | None) -> Options:
    """From the command line, or from ONCE, PORT and LIMIT in the environment."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about.splitlines()[0])
    parser.add_argument(
        "--once", action="store_true", default=os.environ.get("ONCE", "") not in ("", "0"),
        help="end when every index that has an `end` stands there; exit status 0 or 1 (ONCE=1)",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=os.environ.get("PORT") or None, metavar="N",
        help="of Airflow; otherwise 8080, or a free one if that is taken (PORT=N)",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=float, default=os.environ.get("LIMIT") or 30, metavar="MINUTES",
        help="how long --once may take (LIMIT=MINUTES; default 30)",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    return Options(once=given.once, port=given.port, limit_s=60 * given.limit)


def main(make: Callable[[Options], Pipeline], options: Options) -> int:
    """Runs it; errors become sentences, as everywhere."""
    from tidetable.cli.output import ConsoleOutput

    try:
        return run(make(options), options)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("TIDETABLE_DEBUG") and not isinstance(error, TidetableError):
            raise
        sys.stdout.flush()
        return ConsoleOutput().error(error)
