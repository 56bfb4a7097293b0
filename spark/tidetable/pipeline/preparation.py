"""What a run of the pipeline is about to do: which slots, which cells, and why. No JVM."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidetable.config import Index, format_time
from tidetable.table.state import IndexTable
from tidetable.table.status import Outlook, outlook
from tidetable.table.target import within_end


def slot_due(index: Index, until: datetime) -> int:
    """The last slot that ends by then, and not after the index's own end."""
    return within_end(index, index.timeline.ended_by(until))


@dataclass(frozen=True)
class Preparation:
    """The way from where the table stands to the slot that is due."""

    index: Index
    due: int
    stands_at: int | None
    """None: there is no table yet."""

    next: Outlook | None
    """What the first of the coming updates does; None if there is nothing to do."""

    @property
    def slots(self) -> range:
        """The slots to apply, each in a commit of its own."""
        return range((0 if self.stands_at is None else self.stands_at) + 1, self.due + 1)

    @property
    def missing(self) -> int:
        """How many slots before the due one have not been applied yet."""
        return max(0, len(self.slots) - 1)

    def sentences(self) -> list[str]:
        """For people, in the order in which things happen."""
        name = self.index.name
        told = [f"Slot {self.due} of {name} is due, as of {self._time(self.due)}."]
        if self.stands_at is None:
            told.append("There is no table yet: it is made, and what is alive at its start loaded.")
        elif not self.slots:
            return [*told, f"The table stands at slot {self.stands_at}: nothing to do."]
        if self.missing:
            first = self.slots[0]
            told.append(
                f"{self.missing} earlier slots are missing: slots {first} to {self.due} are "
                "applied in order, one commit each."
            )
        if self.next is not None and self.next.plan.touched:
            told.append(f"Update {self.next.slot}: {decision(self.next)}.")
            told += [
                f"  cell {cell}: {touch.action} ({touch.why}), "
                f"{self.next.cells[cell].rows if cell in self.next.cells else 0} rows in it"
                for cell, touch in sorted(self.next.plan.touched.items())
            ]
        return told

    def as_json(self) -> dict[str, Any]:
        """The task's result."""
        return {
            "index": self.index.name,
            "slot": self.due,
            "as_of": self._time(self.due),
            "stands_at": self.stands_at,
            "updates": len(self.slots),
            "missing": self.missing,
            "decision": None if self.next is None else decision(self.next),
            "next": None if self.next is None else self.next.as_json(),
        }

    def _time(self, slot: int) -> str:
        return format_time(self.index.timeline.end_of(slot))


def prepare(index: Index, until: datetime) -> Preparation:
    """Reads where the table stands and plans from there; DamagedTable if it is not as noted."""
    due = slot_due(index, until)
    state = IndexTable(index).state()
    stands_at = None if state is None else state.slot
    first = max(1, 1 if stands_at is None else stands_at + 1)
    return Preparation(
        index=index,
        due=due,
        stands_at=stands_at,
        next=outlook(index, first) if first <= due else None,
    )


def decision(found: Outlook) -> str:
    """Rebuild or append, in a line: '1 cell rewritten, 7 appended to'."""
    words = {
        "rewrite": "rewritten",
        "append": "appended to",
        "append+expire": "appended to and rid of expired rows in place",
        "expire": "rid of expired rows in place",
        "move": "merged into others",
        "drop": "dropped whole",
    }
    counts = Counter(str(touch.action) for touch in found.plan.touched.values())
    parts = [
        f"{counts[action]} {'cell' if counts[action] == 1 else 'cells'} {told}"
        for action, told in words.items()
        if counts[action]
    ]
    return ", ".join(parts) if parts else "no cell is touched"
