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
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from rich.columns import Columns
from rich.console import Console, Group
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from rig.airflow_api import AirflowApi, AirflowUnreachable
from rig.catching_up import CatchUp, Outcome, nothing_left, timing, to_now, to_the_end
from rig.home import Airflow
from rig.live import FOLDER, Live, forget
from rig.sample import FOLDER as SAMPLE
from rig.sample import days_of, has_sample, prepare_sample
from rig.services import Service, Services, Stopped, stopping_on_signals
from tidetable.config import Index, format_duration
from tidetable.core.errors import TidetableError, UserError
from tidetable.pipeline.catalog import Catalog, read_catalog
from tidetable.pipeline.dag import dag_id
from tidetable.quality import reports_home
from tidetable.table.history_row import UpdateRow

LOOK_EVERY_S = 2.0
ASK_EVERY_S = 5.0
FEED_EVERY_S = 600.0
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

    live: Live | None = None
    """The sample, if it is moved to today."""

    head_start: Service | None = None
    """Ends by itself: makes the first tables while Airflow starts."""

    when_idle: Sequence[Service] = ()
    """They end by themselves: what may wait until all has caught up."""


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
    waiting = to_the_end(indexes) if options.once else to_now(indexes, datetime.now(UTC))
    if options.once and not waiting:
        raise UserError(
            f"No index in {project / 'include' / 'indexes'} has an `end` after its first slot: "
            "ONCE=1 would wait for ever. Give one an `end`, or leave ONCE away."
        )
    if options.once and not catalog.mistakes and nothing_left(waiting, project):
        show.say(
            "Nothing left to do: every index stands at its `end`, and its last report is good."
        )
        _show_tables(show, waiting)
        return 0
    with stopping_on_signals():
        try:
            return _run(pipeline, options, show, waiting, catalog)
        except (KeyboardInterrupt, Stopped) as ended:
            show.say("Stopped. What was committed stays; start it again to go on.")
            if not options.once:
                return 0
            return 130 if isinstance(ended, KeyboardInterrupt) else 143


def _run(
    pipeline: Pipeline, options: Options, show: Show, waiting: list[CatchUp], catalog: Catalog
) -> int:
    airflow = pipeline.airflow
    folder = airflow.home / "services"

    # The API server waits for open pages, the triggerer for nothing at all: no news.
    killed = {"api-server", "triggerer"}

    def told(event: str, name: str) -> None:
        if event == "killing" and name not in killed:
            killed.add(name)
            show.say(f"[yellow]{name} did not end in time and is killed[/]")
        elif event == "stopping" and name == "scheduler":
            show.say("Stopping. A task that runs may finish; Ctrl-C again does not wait for it.")

    with Services(folder, told=told) as services:
        api = AirflowApi(airflow.url, airflow.password())
        watcher = Watcher(show, services, api, airflow.project, waiting)
        watcher.begin()
        _start(pipeline, show, services, [entry.index for entry in catalog.entries.values()])
        _tell_where(pipeline, show, folder)
        watcher.watch(options)
        good = not catalog.mistakes and all(one.outcome is Outcome.DONE for one in waiting)
        if waiting:
            _conclude(show, api, waiting, airflow.project)
        if options.once:
            return 0 if good else 1
        for service in pipeline.when_idle:
            services.start(service)
        _tell_what_comes(show, pipeline, catalog)
        watcher.stay(pipeline.live)


# -- starting --------------------------------------------------------------------------------------


def _prepare_sample(show: Show, indexes: Sequence[Index], pipeline: Pipeline) -> None:
    if (made := pipeline.live) is not None:
        with show.step(f"the sample, in {FOLDER / SAMPLE}: {made.told}"):
            made.feed(datetime.now(UTC))
    elif has_sample(project := pipeline.airflow.project):
        with show.step(f"the sample: real flights of 2013, in {SAMPLE}"):
            prepare_sample(project, days_of(indexes, project))


def _start(pipeline: Pipeline, show: Show, services: Services, indexes: Sequence[Index]) -> None:
    airflow = pipeline.airflow
    for service in pipeline.first:
        services.start(service)
    _prepare_sample(show, indexes, pipeline)
    if pipeline.before_airflow:
        with show.step(" and ".join(pipeline.before_airflow)):
            services.wait_ready(*pipeline.before_airflow)
    pipeline.prepare(services)
    if pipeline.head_start is not None:
        services.start(pipeline.head_start)
    _prepare_database(pipeline, show, services)
    programs = airflow.services()
    with show.step("Airflow: " + ", ".join(service.name for service in programs)):
        for service in programs:
            services.start(service)
        services.wait_ready(*(service.name for service in programs))
    rest = [one.name for one in pipeline.first if one.name not in pipeline.before_airflow]
    if rest:
        with show.step(" and ".join(rest)):
            services.wait_ready(*rest)


def _prepare_database(pipeline: Pipeline, show: Show, services: Services) -> None:
    airflow, live = pipeline.airflow, pipeline.live
    has_runs = airflow.has_database()
    migration = airflow.migration()
    if migration is not None:
        with show.step("Airflow's metadata database"):
            services.run(migration)
            airflow.note_migrated()
    if live is not None and live.fresh and has_runs:
        with show.step("Airflow forgets the runs of the last time"):
            forget([dag_id(one.name) for one in live.moved_indexes()], airflow.environment())


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


def _tell_what_comes(show: Show, pipeline: Pipeline, catalog: Catalog) -> None:
    going = [entry.index for entry in catalog.entries.values() if entry.index.end is None]
    now = datetime.now(UTC)
    if going:
        soon = min(going, key=lambda one: one.timeline.end_of(one.timeline.ended_by(now) + 1))
        due = soon.timeline.end_of(soon.timeline.ended_by(now) + 1)
        show.say(
            f"\nIt goes on by itself: an update every {format_duration(soon.update_every)}, the "
            f"next at {due:%H:%M} UTC."
        )
    if pipeline.live is not None:
        show.say(f"On the command line: [bold]cd {FOLDER}; tidetable status flights_sweep[/]")
    show.say("Everything keeps running: [bold]Ctrl-C[/] stops it.\n")


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

    def begin(self) -> None:
        """Where the tables stand before anything runs."""
        self._look(_silent)  # what an earlier run did is no news
        self._pictured = {one.index.name for one in self._waiting if one.slot is not None}
        for one in self._waiting:
            if one.slot is not None:
                self._show.say(f"{one.index.name} goes on from slot {one.slot}.")

    def watch(self, options: Options) -> None:
        """Until every index is done, or has failed, or the time is over."""
        began = asked = time.monotonic()
        with self._reporting() as tell:
            while going := [one for one in self._waiting if one.outcome is Outcome.GOING]:
                self._look(tell)
                self._services.sleep(LOOK_EVERY_S)
                if time.monotonic() - asked >= ASK_EVERY_S:
                    self._ask(going)
                    asked = time.monotonic()
                if options.once and time.monotonic() - began > options.limit_s:
                    self._give_up(going, options.limit_s)
                    return

    def stay(self, live: Live | None) -> NoReturn:
        """Tells each update and each failure from then on, and keeps the sample going."""
        fed = time.monotonic()
        for one in self._waiting:
            one.again()
        while True:
            self._services.sleep(ASK_EVERY_S)
            self._look(self._line)
            for one in self._waiting:
                self._ask([one])
                if one.outcome is Outcome.FAILED:
                    _tell_failure(self._show, one)
                one.again()
            if live is not None:
                live.refresh()
                if time.monotonic() - fed > FEED_EVERY_S:
                    live.feed(datetime.now(UTC))
                    fed = time.monotonic()

    def _look(self, tell: Callable[[CatchUp, UpdateRow], None]) -> None:
        for one in self._waiting:
            with suppress(TidetableError):  # a table that is wrong is told by its DAG
                for row in one.look():
                    tell(one, row)

    def _ask(self, going: Sequence[CatchUp]) -> None:
        for one in going:
            with suppress(AirflowUnreachable):  # busy: should it have ended, the services tell
                one.ask(self._api, self._project)

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
        of = f" of {one.last_slot}" if row.slot <= one.last_slot else ""
        self._show.say(
            f"{one.index.name:<{self._width}}  slot {row.slot:>2}{of}  "
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
        if one.outcome is not Outcome.DONE:
            _tell_failure(show, one)
    if all(one.outcome is Outcome.DONE for one in waiting):
        show.say(
            f"[green]Caught up after {show.elapsed}:[/] all runs succeeded, the tables stand at "
            "their last slots, the last quality reports are good."
        )


def _tell_failure(show: Show, one: CatchUp) -> None:
    show.say(f"\n[red]{one.index.name}: {escape(one.why)}.[/]")
    for failure in one.failures:
        show.say(f"The task [bold]{failure.task_id}[/] of {failure.run_id} failed. Its log ends:")
        for line in failure.log:
            show.say(f"    {escape(line[:LOG_WIDTH_MAX])}")


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
