"""A scheme at work on a model of files: what it writes, keeps and leaves behind.

The model carries out the very plans that update a real table, on counts instead of rows, so its
figures are those of the scheme and not of a formula about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from tidetable.core.cell import LOG, Cell, CellState
from tidetable.core.plan import Action, Plan
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
    progress: Progress | None = None,
) -> Simulation:
    """Run the scheme from an empty table; the figures are of what follows the warm-up.

    Unless told otherwise the workload is `uniform`, the warm-up reaches its steady state and the
    updates after it are one whole cycle. `prune` applies `Plan.pruned`, as a real update does; it
    makes no difference to an even workload.
    """
    arrivals = uniform(scheme.period) if arrivals is None else arrivals
    updates = scheme.cycle if updates is None else updates
    # After p updates the window is full, and a cycle later every cell and log file is of that time.
    warmup = scheme.period + scheme.cycle if warmup is None else warmup
    table = _Table(scheme, prune)
    kept = []
    for slot in range(1, warmup + updates + 1):
        update = table.update(slot, arrivals(slot))
        if slot > warmup:
            kept.append(update)
        if progress is not None:
            progress(slot, warmup + updates)
    return Simulation(scheme.label, tuple(kept))


@dataclass
class _File:
    """Rows by expiration slot, and how many there were when the file was written."""

    live: dict[int, int]
    stored: int


class _Stored:
    """The files of one cell; its live and stored rows are counted as they change."""

    def __init__(self) -> None:
        self.files: list[_File] = []
        self.live = 0
        self.stored = 0

    def append(self, rows: dict[int, int]) -> int:
        """Adds a file, unless it would be empty; returns the rows written."""
        count = sum(rows.values())
        if count:
            self.files.append(_File(rows, count))
            self.live += count
            self.stored += count
        return count

    def take(self, leaves: Callable[[int], bool]) -> dict[int, int]:
        """Removes in place the rows whose expiration slot says so, and files left with none."""
        taken: dict[int, int] = defaultdict(int)
        for file in self.files:
            for expiration in [exp for exp in file.live if leaves(exp)]:
                taken[expiration] += file.live.pop(expiration)
            if not file.live:
                self.stored -= file.stored
        self.files = [file for file in self.files if file.live]
        self.live -= sum(taken.values())
        return taken

    def state(self) -> CellState:
        expirations = [exp for file in self.files for exp in file.live]
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

    def update(self, slot: int, arriving: Mapping[int, int]) -> Update:
        # What has expired by the end of the slot in which it arrives never enters.
        arriving = {exp: rows for exp, rows in arriving.items() if exp > slot and rows > 0}
        plan = self._scheme.plan(slot)
        new: dict[Cell, dict[int, int]] = defaultdict(dict)
        for expiration, rows in arriving.items():
            new[self._scheme.cell_of(slot, expiration, plan)][expiration] = rows
        if self._prune:
            states = {cell: stored.state() for cell, stored in self._cells.items()}
            counts = {cell: sum(rows.values()) for cell, rows in new.items()}
            plan = plan.pruned(states, counts, merges=self._scheme.merges)
        written = self._apply(plan, new)
        return Update(
            slot=slot,
            inserted=sum(arriving.values()),
            written=written,
            files=sum(len(stored.files) for stored in self._cells.values()),
            live=sum(stored.live for stored in self._cells.values()),
            stored=sum(stored.stored for stored in self._cells.values()),
            sizes={cell: stored.live for cell, stored in self._cells.items()},
        )

    def _apply(self, plan: Plan, new: Mapping[Cell, dict[int, int]]) -> int:
        """Carries out the plan and returns the rows that it writes."""
        from_log = self._leave_log(plan) if plan.takes_from_log else {}
        written = 0
        for cell, touch in plan.touched.items():
            stored, arriving = self._cells[cell], new.get(cell, {})
            match touch.action:
                case Action.DROP:
                    self._cells[cell] = _Stored()
                case Action.REWRITE:
                    live = [file.live for file in stored.files]
                    rows = _merged([*live, from_log.get(cell, {}), arriving], plan.last)
                    self._cells[cell] = stored = _Stored()
                    written += stored.append(rows)
                case action:
                    if action.expires_in_place:
                        stored.take(lambda expiration: expiration <= plan.last)
                    if action.appends:
                        written += stored.append(dict(arriving))
        return written

    def _leave_log(self, plan: Plan) -> dict[Cell, dict[int, int]]:
        """Takes the rows of swept groups out of the log and returns them by base cell."""

        @cache
        def home(expiration: int) -> Cell:
            # Every row of the log arrived before this plan, so the slot before it stands for all.
            return self._scheme.cell_of(plan.first - 1, expiration, plan)

        leaving: dict[Cell, dict[int, int]] = defaultdict(dict)
        for expiration, rows in self._cells[LOG].take(lambda exp: home(exp) != LOG).items():
            leaving[home(expiration)][expiration] = rows
        return leaving


def _merged(parts: list[dict[int, int]], last: int) -> dict[int, int]:
    merged: dict[int, int] = defaultdict(int)
    for part in parts:
        for expiration, rows in part.items():
            if expiration > last:
                merged[expiration] += rows
    return dict(merged)
