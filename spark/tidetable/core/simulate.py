"""A scheme at work on a model of files: what it writes, keeps and leaves behind.

The model carries out the very plans that update a real table, on counts instead of rows, so its
figures are those of the scheme and not of a formula about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tidetable.core.cell import Cell, CellState
from tidetable.core.plan import Action, Plan, Route
from tidetable.core.schemes.base import Scheme

Arrivals = Callable[[int], Mapping[int, int]]
"""slot -> how many rows arrive in it, by expiration slot."""

Progress = Callable[[int, int], None]
"""Called with the updates done and the updates to do."""


def uniform(period: int, rows: int = 1) -> Arrivals:
    """Theorem 1's workload: constant rate, lifetimes uniform over 1..period slots."""
    return lambda slot: {slot + lifetime: rows for lifetime in range(1, period + 1)}


@dataclass(frozen=True)
class Update:
    """What one simulated update did, and the state that it left."""

    slot: int
    inserted: int
    written: int
    files: int
    live: int
    stored: int
    sizes: Mapping[Cell, int]
    """Live rows of each cell of the layout."""

    files_written: int = 0
    files_marked: int = 0
    """Files with rows that were removed in place and are stored still."""

    dead_for: int = 0
    """So many updates ago the oldest of these rows was removed."""

    @property
    def dead(self) -> float:
        """The share of the stored rows that have expired or been superseded."""
        return 1 - self.live / self.stored if self.stored else 0.0


@dataclass(frozen=True)
class Simulation:
    """The updates of a simulation after its warm-up, with the figures that sum them up."""

    label: str
    updates: tuple[Update, ...]

    @property
    def inserted_avg(self) -> float:
        """Rows inserted by an update, on average."""
        return sum(u.inserted for u in self.updates) / len(self.updates)

    @property
    def written_avg(self) -> float:
        """Rows written per row inserted: the write amplification."""
        return self._per_inserted(sum(u.written for u in self.updates) / len(self.updates))

    @property
    def written_max(self) -> float:
        """Rows written by the largest update, per row that an average update inserts."""
        return self._per_inserted(max(u.written for u in self.updates))

    @property
    def files_avg(self) -> float:
        """Files after an update, on average."""
        return sum(u.files for u in self.updates) / len(self.updates)

    @property
    def files_max(self) -> int:
        """Files after the update that left most."""
        return max(u.files for u in self.updates)

    @property
    def dead_avg(self) -> float:
        """The share of stored rows that have expired or been superseded, on average."""
        return sum(u.dead for u in self.updates) / len(self.updates)

    def _per_inserted(self, written: float) -> float:
        return written / self.inserted_avg if self.inserted_avg else 0.0


def simulate(
    scheme: Scheme,
    arrivals: Arrivals | None = None,
    *,
    updates: int | None = None,
    warmup: int | None = None,
    prune: bool = False,
    loaded: Mapping[tuple[int, int], int] | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Run the scheme from an empty table; the figures are of what follows the warm-up.

    `loaded` gives the rows of slot 0 by (insertion slot, expiration slot), as a real table is
    loaded: with a full window in it the warm-up can be short.

    Unless told otherwise the workload is `uniform`, the warm-up reaches its steady state and the
    updates after it are one whole cycle. `prune` applies `Plan.pruned`, as a real update does; it
    makes no difference to an even workload.
    """
    arrivals = uniform(scheme.period) if arrivals is None else arrivals
    updates = scheme.cycle if updates is None else updates
    # After p updates the window is full, and a cycle later every cell and log file is of that time.
    warmup = scheme.period + scheme.cycle if warmup is None else warmup
    table = _Table(scheme, prune)
    table.load(loaded or {})
    kept = []
    for slot in range(1, warmup + updates + 1):
        update = table.update(slot, arrivals(slot))
        if slot > warmup:
            kept.append(update)
        if progress is not None:
            progress(slot, warmup + updates)
    return Simulation(scheme.label, tuple(kept))


_Rows = dict[int, dict[int, int]]
"""How many rows there are, by expiration group and expiration slot."""


@dataclass
class _File:
    """The live rows of a file, and how many there were when it was written."""

    rows: _Rows
    live: int
    stored: int
    dead_since: int | None = None
    """The first update that removed rows of it in place."""


class _Stored:
    """The files of one cell; its live and stored rows are counted as they change."""

    def __init__(self) -> None:
        self.files: list[_File] = []
        self.live = 0
        self.stored = 0

    def append(self, rows: _Rows) -> int:
        """Adds a file, unless it would be empty; returns the rows written."""
        count = sum(sum(part.values()) for part in rows.values())
        if count:
            self.files.append(_File(rows, count, count))
            self.live += count
            self.stored += count
        return count

    def expire(self, group: int, slot: int) -> None:
        """Removes the rows of an expiration slot in place."""
        for file in self.files:
            part = file.rows.get(group)
            if part:
                self._lose(file, part.pop(slot, 0), slot)
        self._without_empty_files()

    def leave(self, route: Route, slot: int) -> Iterator[tuple[Cell, _Rows]]:
        """Removes the rows that go elsewhere in place, and tells where."""
        for file in self.files:
            for group in list(file.rows) if route.rest else route.homes:
                home, part = route.of(group), file.rows.pop(group, None)
                if part and home is not None:
                    self._lose(file, sum(part.values()), slot)
                    yield home, {group: part}
        self._without_empty_files()

    def _lose(self, file: _File, count: int, slot: int) -> None:
        if count and file.dead_since is None:
            file.dead_since = slot
        file.live -= count
        self.live -= count

    def _without_empty_files(self) -> None:
        empty = sum(file.stored for file in self.files if not file.live)
        if empty:
            self.stored -= empty
            self.files = [file for file in self.files if file.live]

    def state(self) -> CellState:
        expirations = [exp for file in self.files for part in file.rows.values() for exp in part]
        return CellState(
            rows=self.live,
            files=len(self.files),
            first_expiration=min(expirations, default=None),
            last_expiration=max(expirations, default=None),
        )


class _Table:
    """The cells of a scheme, and how a plan changes them."""

    def __init__(self, scheme: Scheme, prune: bool) -> None:
        self._scheme = scheme
        self._prune = prune
        self._cells = {cell: _Stored() for cell in scheme.cells()}
        self._groups: dict[int, int] = {}
        self._files_written = 0

    def load(self, rows: Mapping[tuple[int, int], int]) -> None:
        """One file in each cell that gets rows, as the first load of a real table."""
        by_cell: dict[Cell, _Rows] = {}
        for (insertion, expiration), count in rows.items():
            cell = self._scheme.initial_cell(insertion, expiration)
            part = by_cell.setdefault(cell, {}).setdefault(cell.e, {})
            part[expiration] = part.get(expiration, 0) + count
        for cell, loaded in by_cell.items():
            self._cells[cell].append(loaded)

    def update(self, slot: int, arriving: Mapping[int, int]) -> Update:
        plan = self._scheme.plan(slot)
        new: dict[Cell, _Rows] = defaultdict(dict)
        for group, rows in self._grouped(slot, arriving).items():
            # Of the rows of one slot those of one group go to one cell.
            new[self._scheme.cell_of(slot, next(iter(rows)), plan)][group] = rows
        counts = {
            cell: sum(sum(part.values()) for part in rows.values()) for cell, rows in new.items()
        }
        if self._prune:
            states = {cell: self._cells[cell].state() for cell in plan.touched}
            plan = plan.pruned(states, counts, merges=self._scheme.merges)
        self._files_written = 0
        written = self._apply(plan, new)
        files = [file for stored in self._cells.values() for file in stored.files]
        marked = [file for file in files if file.dead_since is not None]
        return Update(
            slot=slot,
            inserted=sum(counts.values()),
            written=written,
            files=len(files),
            live=sum(stored.live for stored in self._cells.values()),
            stored=sum(stored.stored for stored in self._cells.values()),
            sizes={cell: stored.live for cell, stored in self._cells.items()},
            files_written=self._files_written,
            files_marked=len(marked),
            dead_for=max((slot - (file.dead_since or slot) for file in marked), default=0),
        )

    def _grouped(self, slot: int, arriving: Mapping[int, int]) -> _Rows:
        grouped: _Rows = defaultdict(dict)
        for expiration, rows in arriving.items():
            # What has expired by the end of the slot in which it arrives never enters.
            if expiration > slot and rows > 0:
                grouped[self._group(expiration)][expiration] = rows
        return grouped

    def _group(self, expiration: int) -> int:
        group = self._groups.get(expiration)
        if group is None:
            group = self._groups[expiration] = self._scheme.initial_cell(0, expiration).e
        return group

    def _apply(self, plan: Plan, new: Mapping[Cell, _Rows]) -> int:
        """Carries out the plan, which is of one slot, and returns the rows that it writes."""
        coming: dict[Cell, list[_Rows]] = defaultdict(list)
        for cell, rows in new.items():
            coming[cell].append(rows)
        expiring = self._group(plan.last)
        for cell, touch in plan.touched.items():
            if touch.action is Action.DROP:
                self._cells[cell] = _Stored()
            elif touch.action is not Action.APPEND:
                self._cells[cell].expire(expiring, plan.last)
        for source, route in plan.moves.items():
            for home, rows in self._cells[source].leave(route, plan.last):
                coming[home].append(rows)
        written = 0
        for cell, touch in plan.touched.items():
            parts = coming.pop(cell, [])
            if touch.action is Action.REWRITE:
                parts += [file.rows for file in self._cells[cell].files]
                self._cells[cell] = _Stored()
            appended = self._cells[cell].append(_merged(parts))
            self._files_written += appended > 0
            written += appended
        assert not coming, f"update {plan.last} has no place for rows of {list(coming)}"
        return written


def _merged(parts: list[_Rows]) -> _Rows:
    merged: _Rows = {}
    for rows in parts:
        for group, slots in rows.items():
            into = merged.setdefault(group, {})
            for expiration, count in slots.items():
                into[expiration] = into.get(expiration, 0) + count
    return merged
