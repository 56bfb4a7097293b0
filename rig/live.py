"""The sample as if it happened today: the project that `make run` works on.

The shipped indexes are about two days of 2013. Here their flights are moved to today, six times as
fast as they were, so that an update comes every five minutes and Airflow's home shows today's runs.
All of it lies in .live/, a project of its own: the files of include/indexes and the tables that the
command line makes from them stay as they are. Indexes that have nothing to do with the sample are
taken along, with the tables and sources that they name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from rig.home import REPOSITORY
from rig.sample import has_sample, reads_sample, write_moved
from tidetable.config import (
    ConfigError,
    Index,
    format_duration,
    format_time,
    index_files,
    load_index,
)
from tidetable.core.errors import TidetableError, UserError
from tidetable.quality import reports_home
from tidetable.table.state import IndexTable

if TYPE_CHECKING:
    import pandas as pd

FOLDER = Path(".live")
SPEED = 6
"""An hour of 2013 takes ten minutes: a half hour of flights is a slot of five minutes."""

SAMPLE_START = datetime(2013, 1, 2, 12, tzinfo=UTC)
"""7 in the morning in New York, where the shipped indexes start; what starts here is moved."""

PAST_SLOTS = 6
"""So many slots have ended when it starts afresh: three hours of flights, in half an hour."""

_INDEXES = Path("include") / "indexes"
_NOTE = "# Made at each start of `make run` from {file}: change that one.\n"
_ABOUT = (
    "Flights of 2013 as if they took off today, {speed} times as fast: "
    "each half hour of theirs is one update."
)


@dataclass(frozen=True)
class Clock:
    """Which moment of 2013 is which moment of today."""

    began: datetime
    """Where the sample's start has been moved to."""

    def moved(self, sample: datetime) -> datetime:
        return self.began + (sample - SAMPLE_START) / SPEED

    def moved_column(self, sample: pd.Series) -> pd.Series:
        return self.began + (sample - SAMPLE_START) / SPEED


@dataclass(frozen=True)
class Live:
    """The project below .live/, and since when it has been going."""

    root: Path
    """Whose indexes and sample it is made from."""

    clock: Clock
    fresh: bool
    """Whether it starts with no table."""

    told: str
    """Why so, for people."""

    @property
    def project(self) -> Path:
        return self.root / FOLDER

    def refresh(self) -> None:
        """Brings its indexes up to date with include/indexes, which people edit meanwhile."""
        folder = self.project / _INDEXES
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {path.name: self._text(path) for path in index_files(self.root)}
        for path in folder.iterdir():
            if path.name not in wanted:
                path.unlink()
        for name, text in wanted.items():
            path = folder / name
            if not path.exists() or path.read_text() != text:
                unfinished = path.with_name(f".{name}.unfinished")
                unfinished.write_text(text)
                unfinished.replace(path)

    def feed(self, now: datetime) -> int:
        """Writes the flights of each day up to tomorrow that is not there yet; how many those were.

        They lie there before they take off: an update takes no row that arrives after its slot.
        """
        longest = max((one.longest_lifetime for one in self.moved_indexes()), default=timedelta())
        first = (self.clock.began - longest / SPEED).date()
        days = [first + timedelta(n) for n in range((now.date() - first).days + 2)]
        return len(write_moved(self.root, self.project, days, self.clock.moved_column))

    def moved_indexes(self) -> list[Index]:
        """Those of the shipped files that are moved to today, as they are shipped."""
        return _moved_indexes(self.root)

    def _text(self, path: Path) -> str:
        """The index as the living project has it."""
        try:
            index = load_index(path, self.root)
        except ConfigError:
            return path.read_text()  # Airflow names its mistakes, with their lines
        if _is_moved(index, self.root):
            changes = self._today(index)
        else:
            changes = {("table",): index.table, ("source", "path"): str(index.source.path)}
        note = _NOTE.format(file=path.relative_to(self.root))
        return note + changed(path.read_text(), changes)

    def _today(self, index: Index) -> dict[tuple[str, ...], str | None]:
        return {
            ("description",): _ABOUT.format(speed=SPEED),
            ("update_every",): format_duration(index.update_every / SPEED),
            ("longest_lifetime",): format_duration(index.longest_lifetime / SPEED),
            ("start",): format_time(self.clock.moved(index.start)),
            ("end",): None,
            # In February a snow storm cancels every flight of a day: all rows of a slot are bad.
            ("quality", "bad_rows_max"): "100%",
        }


def live(root: Path, now: datetime | None = None) -> Live | None:
    """The living project, made or taken up again; None if nothing here is about the sample."""
    now = datetime.now(UTC) if now is None else now
    if not has_sample(root):
        return None
    shipped = _moved_indexes(root)
    if not shipped:
        return None
    every = max(index.update_every for index in shipped) / SPEED
    window = max(index.longest_lifetime for index in shipped) / SPEED
    began = _began(root)
    if began is not None:
        taken_up = Live(root, Clock(began), fresh=False, told="")
        taken_up.refresh()
        stands = _newest(taken_up.project, shipped)
        if stands is not None and stands <= now <= stands + window:
            told = f"it goes on from {stands:%H:%M} UTC, where the tables stand"
            return Live(root, taken_up.clock, fresh=False, told=told)
        landed = "" if stands is None else "all flights of the last time have landed, so "
        return _afresh(root, shipped, now, every, f"{landed}it starts afresh")
    told = f"flights of 2013 take off today, {SPEED} times as fast"
    return _afresh(root, shipped, now, every, told)


def _afresh(
    root: Path, shipped: Sequence[Index], now: datetime, every: timedelta, told: str
) -> Live:
    project = root / FOLDER
    for index in shipped:
        for folder in (project / ".tidetable").glob(f"{Path(index.table).name}*"):
            shutil.rmtree(folder)
        shutil.rmtree(reports_home(project) / index.name, ignore_errors=True)
    shutil.rmtree(project / "include" / "data", ignore_errors=True)
    began = _floor(now, every) - PAST_SLOTS * every
    made = Live(root, Clock(began), fresh=True, told=told)
    made.refresh()
    _state_file(root).write_text(json.dumps({"began": began.isoformat()}))
    return made


def forget(dag_ids: Sequence[str], environment: Mapping[str, str]) -> None:
    """Airflow forgets the runs of these DAGs: they are about tables that are gone."""
    done = subprocess.run(
        [sys.executable, "-m", "rig.forget", *dag_ids],
        cwd=REPOSITORY, env=dict(environment), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise UserError(
            "Airflow could not forget the runs of the last time. `make clean` and then `make run` "
            f"starts without them. It said:\n{done.stderr[-2000:]}"
        )


def changed(text: str, changes: Mapping[tuple[str, ...], str | None]) -> str:
    """A YAML mapping with other values at some places, without its comments; None takes one out.

    On YAML's nodes and not on values, so that every other scalar stays as it is written.
    """
    document = yaml.compose(text)
    assert isinstance(document, yaml.MappingNode)
    for place, value in changes.items():
        node = document
        for name in place[:-1]:
            node = _mapping(node, name)
        rest = [(key, old) for key, old in node.value if key.value != place[-1]]
        if value is None:
            node.value = rest
            continue
        pair = (_scalar(place[-1]), _scalar(value))
        at = next((n for n, (key, _) in enumerate(node.value) if key.value == place[-1]), len(rest))
        node.value = [*rest[:at], pair, *rest[at:]]
    return str(yaml.serialize(document, width=100, allow_unicode=True))


def _mapping(node: yaml.MappingNode, name: str) -> yaml.MappingNode:
    for key, value in node.value:
        if key.value == name and isinstance(value, yaml.MappingNode):
            return value
    made = yaml.MappingNode("tag:yaml.org,2002:map", [])
    node.value.append((_scalar(name), made))
    return made


def _scalar(text: str) -> yaml.ScalarNode:
    """Plain where YAML takes it for what it is when it is plain: a time, a duration, a name."""
    tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False))
    return yaml.ScalarNode(tag, text)


def _moved_indexes(root: Path) -> list[Index]:
    found = []
    for path in index_files(root):
        try:
            index = load_index(path, root)
        except ConfigError:
            continue
        if _is_moved(index, root):
            found.append(index)
    return found


def _is_moved(index: Index, root: Path) -> bool:
    """A table that is kept elsewhere is somebody's own: it stays as it is described."""
    ours = "://" not in index.table and Path(index.table).parent == root / ".tidetable"
    return ours and index.start == SAMPLE_START and reads_sample(index, root)


def _state_file(root: Path) -> Path:
    return root / FOLDER / "since.json"


def _began(root: Path) -> datetime | None:
    file = _state_file(root)
    if not file.exists():
        return None
    return datetime.fromisoformat(json.loads(file.read_text())["began"])


def _newest(project: Path, shipped: Sequence[Index]) -> datetime | None:
    """As of when the table is that has got furthest."""
    found = []
    for index in shipped:
        with suppress(TidetableError):  # of a table that is wrong its DAG says so
            table = IndexTable(load_index(project / _INDEXES / f"{index.name}.yaml", project))
            state = table.state()
            if state is not None:
                found.append(table.as_of(state.slot))
    return max(found, default=None)


def _floor(time: datetime, every: timedelta) -> datetime:
    epoch = datetime(2000, 1, 1, tzinfo=UTC)
    return epoch + (time - epoch) // every * every
