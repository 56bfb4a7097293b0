"""What one update does to the cells, decided before any data is touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Flag, StrEnum, auto

from tidetable.core.cell import Cell, CellState


class Action(StrEnum):
    """What happens to one cell. Rows come in by any action but EXPIRE and DROP."""

    REWRITE = "rewrite"
    """Its live rows and its new rows are written again, sorted; its old files go."""

    EXPIRE = "expire"
    """Its expired rows are marked by deletion vectors; no row is written."""

    APPEND = "append"
    """Its new rows become a new file; what is there stays as it is."""

    APPEND_AND_EXPIRE = "append+expire"
    """New file, and expired rows are marked by deletion vectors."""

    MOVE = "move"
    """Its live rows are written again in other cells; its old files go. In a fold it may get new
    rows in the same commit."""

    DROP = "drop"
    """All of its files go unread: every row in it has expired."""

    @property
    def appends(self) -> bool:
        return self in (Action.APPEND, Action.APPEND_AND_EXPIRE)

    @property
    def expires_in_place(self) -> bool:
        return self in (Action.EXPIRE, Action.APPEND_AND_EXPIRE)


class Reason(Flag):
    """Why a cell is touched; a cell may have several reasons at once (`TAKES | EXPIRES`)."""

    SWEPT = auto()
    """It is its turn to be written again."""

    TAKES = auto()
    """New rows arrive in it."""

    LEAVES = auto()
    """Rows of the groups that are swept leave this log."""

    EXPIRES = auto()
    """Rows in it expire."""

    COMES_IN = auto()
    """Rows of other cells come in."""

    FROM_LOG = auto()
    """Rows come in from the log."""

    MERGED = auto()
    """Its several files become one."""

    TAKES_RUN = auto()
    """A new run of rows from the log and of new rows comes in."""

    MERGED_UP = auto()
    """Its rows become part of a run of another level."""

    LOG_MERGED = auto()
    """The files of this log become one of the merged log."""

    TAKES_LOG = auto()
    """The whole log and new rows come in, and rows in it expire."""

    GONE = auto()
    """Every row in it has expired."""

    REBUILT = auto()
    """Somebody asked for its files to be sorted and merged."""

    EMPTIED = auto()
    """Somebody asked for its rows to go where a load would put them."""


_WORDS = {
    Reason.TAKES: "takes new rows",
    Reason.LEAVES: "rows of swept groups leave",
    Reason.EXPIRES: "rows expire",
    Reason.COMES_IN: "rows of other cells come in",
    Reason.FROM_LOG: "rows of the log come in",
    Reason.MERGED: "its files are merged",
    Reason.TAKES_RUN: "takes a new run",
    Reason.MERGED_UP: "merged into a run of level {level}",
    Reason.LOG_MERGED: "its files become one of the merged log",
    Reason.TAKES_LOG: "takes the log and new rows, and rows expire",
    Reason.GONE: "every row in it has expired",
    Reason.REBUILT: "rebuilt: its files are sorted and merged",
    Reason.EMPTIED: "rebuilt: its rows go where a load would put them",
}
"""In the order in which a sentence has them. `SWEPT` goes before all others, with a colon."""


@dataclass(frozen=True)
class Touch:
    """One touched cell: what is done to it and why."""

    action: Action
    reason: Reason
    level: int | None = None
    """For `MERGED_UP`: the level of the run that its rows become part of."""

    @property
    def takes_new_rows(self) -> bool:
        """Whether rows that arrive with the update may go into it."""
        takes = Reason.TAKES | Reason.TAKES_LOG | Reason.TAKES_RUN
        return bool(self.reason & takes) or self.action.appends

    @property
    def why(self) -> str:
        """The reason in words for people: 'takes new rows and rows expire'."""
        parts = [words for reason, words in _WORDS.items() if reason in self.reason]
        swept = "swept: " if Reason.SWEPT in self.reason else ""
        return swept + " and ".join(parts).format(level=self.level)


@dataclass(frozen=True)
class Route:
    """Where the live rows of one cell go in this commit."""

    homes: Mapping[int, Cell] = field(default_factory=dict)
    """Expiration group -> the cell of that group which takes its rows."""

    rest: Cell | None = None
    """The cell for rows of the other groups; None: they stay."""

    def of(self, group: int) -> Cell | None:
        """Where rows of the group go; None if they stay."""
        return self.homes.get(group, self.rest)

    @property
    def targets(self) -> frozenset[Cell]:
        """All cells that may get rows by it."""
        return frozenset(self.homes.values()) | ({self.rest} if self.rest else frozenset())


@dataclass(frozen=True)
class Plan:
    """Slots first..last in one commit (first == last unless folded).

    `touched` names every cell that is read or written. `moves` tells where stored rows go that do
    not stay in their cell: out of a log, or from one level of Tiers to the next. A row moves once
    in a commit, and both cells are touched.
    """

    first: int
    last: int
    touched: Mapping[Cell, Touch]
    moves: Mapping[Cell, Route] = field(default_factory=dict)

    def cells(self, *actions: Action) -> Iterator[Cell]:
        """The touched cells with one of these actions, in order; all of them if none is named."""
        return (
            cell
            for cell, touch in sorted(self.touched.items())
            if not actions or touch.action in actions
        )

    @property
    def is_fold(self) -> bool:
        return self.first != self.last

    def pruned(
        self, states: Mapping[Cell, CellState], arrivals: Mapping[Cell, int], *, merges: bool
    ) -> Plan:
        """The same update without the touches that would change nothing.

        `states` tells about the cells before the update (a cell left out is empty), `arrivals` how
        many new rows go into each under this plan, `merges` is that of the scheme. The table has
        the same rows in the same cells afterwards; a cell of which all rows go is dropped unread.
        """
        # A scheme plans for any data it might hold; the metadata of the data it does hold often
        # shows that a cell has no part in this update, and what is not touched costs nothing.
        # Only a log as a whole is known, not its groups: while it holds a live row, that row may
        # belong to any swept group, so none of these can be left out.
        moves = {
            cell: route
            for cell, route in self.moves.items()
            if states.get(cell, CellState()).some_live(self.last)
        }
        fed = {target for route in moves.values() for target in route.targets}
        touched: dict[Cell, Touch] = {}
        for cell, touch in self.touched.items():
            need = _Need(
                state=states.get(cell, CellState()),
                last=self.last,
                takes=arrivals.get(cell, 0) > 0,
                fed=cell in fed,
                leaves=cell in moves,
                merges=merges,
            )
            action = need.of(touch.action)
            if action is not None:
                touched[cell] = (
                    touch if action is touch.action else Touch(action, need.reason(action))
                )
        return Plan(self.first, self.last, touched, moves)


@dataclass(frozen=True)
class _Need:
    """What one touched cell needs of its update, as far as its metadata tells."""

    state: CellState
    last: int
    takes: bool
    fed: bool
    leaves: bool
    merges: bool

    def of(self, action: Action) -> Action | None:
        """What is left of the action; None if it would change nothing."""
        expires = self.leaves or self.state.some_expire(self.last)
        gets = self.takes or self.fed
        if action is Action.APPEND or (action is Action.MOVE and not self.state.rows):
            return Action.APPEND if gets else None
        if self.state.all_expire(self.last) and not gets:
            return Action.DROP
        if action is Action.MOVE:
            return action
        if action is Action.REWRITE:
            # A sweep that finds several files is useful even if no row comes or goes: it makes
            # them one. Under Rebuild a cell is as it was last written.
            merge = self.merges and self.state.files > 1
            return action if gets or expires or merge else None
        if action is Action.EXPIRE or not gets:
            return Action.EXPIRE if expires else None
        return Action.APPEND_AND_EXPIRE if expires else Action.APPEND

    def reason(self, action: Action) -> Reason:
        """The reason for an action that is not the one planned."""
        if action is Action.DROP:
            return Reason.GONE
        if action is Action.APPEND:
            return Reason.COMES_IN if self.fed else Reason.TAKES
        return Reason.LEAVES if self.leaves else Reason.EXPIRES
