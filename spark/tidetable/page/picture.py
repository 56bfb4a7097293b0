"""The picture of one index, as the page in Airflow's UI draws it: JSON, made without a JVM."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidetable.config import Index, format_duration, format_time, project_root
from tidetable.config.index import OnFailure
from tidetable.core.cell import Cell, CellState
from tidetable.core.plan import Action, Plan
from tidetable.core.schemes import Drawn
from tidetable.page.snippets import snippets
from tidetable.page.standing import Standing, brief, sentences
from tidetable.quality.outcome import advice, tally
from tidetable.table.log import arrow
from tidetable.table.note import NoteKind
from tidetable.table.place import quarantine_path
from tidetable.table.state import IndexTable
from tidetable.table.status import Status, outlook

if TYPE_CHECKING:
    from tidetable.table.history_row import UpdateRow

UPDATES_MAX = 100
COMING = 6
BARS_MAX = 96
CELLS_MAX_SIDE = 40
OUTLIERS_AMONG = 5
"""Among fewer values no one is unusual."""

OUTLIER_FACTOR = 2
"""A chart ends at this many times what three values of four stay below."""

CELLS_MAX_GROUPS = 240
_STATISTICS_TEXT_MAX = 31
"""Delta cuts longer texts in its statistics, so they may be no real key."""


def picture(standing: Standing, now: datetime) -> dict[str, Any]:
    """Everything that the page draws for one index."""
    told = {**standing.as_json(), "now": format_time(now), "probe": None}
    index, found = standing.entry.index, standing.status
    failure = standing.activity.failure
    if index is None:
        return told
    told |= {
        "description": index.description,
        "key": index.key,
        "inserted_at": index.inserted_at,
        "expires_at": index.expires_at,
        "lifetime": index.lifetime,
        "update_every": format_duration(index.update_every),
        "longest_lifetime": format_duration(index.longest_lifetime),
        "period": index.period,
        "start": format_time(index.start),
        "end": None if index.end is None else format_time(index.end),
        "table": index.table,
        "snippets": snippets(index),
        "source": {
            "path": _from_project(str(index.source.path)),
            "format": index.source.format,
            "arrived_at": index.source.arrived_at,
        },
        "quarantine_table": quarantine_path(index).rsplit("/", 1)[-1],
        "imbalance_max": index.quality.imbalance_max,
        "imbalance_fails": index.quality.on_failure is OnFailure.FAIL,
        "failure": None if failure is None else failure.as_json(),
        "quality": _told_quality(standing),
    }
    told |= _history(index)
    if found is None:
        return told
    index = found.index  # with the scheme that an `auto` has become
    blocks = _Blocks(index, found.cells)
    return told | {
        "files": found.files,
        "bytes": found.bytes,
        "imbalance": found.imbalance,
        "probe": {"example": _example_key(index)},
        "layout": blocks.layout,
        "cells": blocks.cells(found.cells),
        "coming": _coming(index, found, blocks),
        "expiring": _expiring(index, found),
    }


class _Blocks:
    """The cells as squares of a picture: one each, or several in one where there are very many."""

    def __init__(self, index: Index, cells: Iterable[Cell]) -> None:
        cells = list(cells)
        base = [cell for cell in cells if not cell.is_log]
        self.gs = 1 + max(cell.g for cell in base)
        self.es = 1 + max(cell.e for cell in base)
        self.kind = index.build_scheme().drawn_as
        self.grouped = self.kind is Drawn.GROUPS
        self.log = any(cell.is_log for cell in cells)
        most = CELLS_MAX_GROUPS if self.grouped else CELLS_MAX_SIDE
        self.g_step = -(-self.gs // CELLS_MAX_SIDE)
        self.e_step = -(-self.es // most)

    @property
    def layout(self) -> dict[str, Any]:
        return {
            "kind": str(self.kind),
            "g": self.gs,
            "e": self.es,
            "g_step": self.g_step,
            "e_step": self.e_step,
            "log": self.log,
        }

    def of(self, cell: Cell) -> Cell:
        """The first cell of the block."""
        if cell.is_log:
            return cell
        return Cell(cell.g - cell.g % self.g_step, cell.e - cell.e % self.e_step)

    def cells(self, states: Mapping[Cell, CellState]) -> list[dict[str, Any]]:
        sums: dict[Cell, list[int]] = defaultdict(lambda: [0, 0, 0])
        for cell, state in states.items():
            for place, number in enumerate((state.rows, state.files, state.bytes)):
                sums[self.of(cell)][place] += number
        return [
            {"g": cell.g, "e": cell.e, "rows": rows, "files": files, "bytes": size}
            for cell, (rows, files, size) in sums.items()
        ]

    def touched(self, plan: Plan) -> list[dict[str, Any]]:
        """What is done to each block; to one of several cells that which costs the most."""
        found: dict[Cell, tuple[int, str, str]] = {}
        for cell, touch in plan.touched.items():
            one = (_WEIGHT[touch.action], str(touch.action), touch.why)
            found[self.of(cell)] = min(one, found.get(self.of(cell), one))
        return [
            {"g": cell.g, "e": cell.e, "action": action, "why": why}
            for cell, (_, action, why) in sorted(found.items())
        ]


_WEIGHT = {
    action: weight
    for weight, action in enumerate(
        (
            Action.REWRITE,
            Action.MOVE,
            Action.APPEND_AND_EXPIRE,
            Action.APPEND,
            Action.EXPIRE,
            Action.DROP,
        )
    )
}


def _coming(index: Index, found: Status, blocks: _Blocks) -> list[dict[str, Any]]:
    """The next updates and what each will do to which cell; none after the index's end."""
    last = found.slot + COMING
    if index.end is not None:
        last = min(last, index.timeline.ended_by(index.end))
    scheme = index.build_scheme()
    told = []
    for slot in range(found.slot + 1, last + 1):
        plan = _next_plan(index) if slot == found.slot + 1 else None
        plan = scheme.plan(slot) if plan is None else plan
        counts = Counter(str(touch.action) for touch in plan.touched.values())
        told.append(
            {
                "slot": slot,
                "as_of": format_time(index.timeline.end_of(slot)),
                "expiring": found.note.live_by_expiration.get(slot, 0),
                "counts": dict(counts),
                "cells": blocks.touched(plan),
            }
        )
    return told


def _next_plan(index: Index) -> Plan | None:
    """What the next update does, without what the metadata shows to be pointless."""
    try:
        return outlook(index, None).plan
    except Exception:  # a damaged table has no next update; the scheme's own plan is shown
        return None


def _expiring(index: Index, found: Status) -> list[dict[str, Any]]:
    """How many rows expire in each coming slot; several slots to a bar where there are many."""
    expected = found.note.live_by_expiration
    last = max(found.slot + index.period, max(expected, default=0))
    together = -(-(last - found.slot) // BARS_MAX)
    sums = Counter[int]()
    for slot, expire in expected.items():
        if slot > found.slot:
            sums[(slot - found.slot - 1) // together] += expire
    bars = []
    for number, first in enumerate(range(found.slot + 1, last + 1, together)):
        end = min(first + together - 1, last)
        as_of = format_time(index.timeline.end_of(end))
        bars.append({"first": first, "last": end, "as_of": as_of, "rows": sums[number]})
    return bars


def _history(index: Index) -> dict[str, Any]:
    """The last updates, and for what reasons they did not take rows."""
    from tidetable.table.history import Updates

    try:
        done = Updates(index).last(UPDATES_MAX)
    except Exception as error:  # the table of updates is for people: the index works without it
        return {"updates": [], "updates_error": brief(error), "quarantine": None}
    # A slot that was replayed has been told twice; what counts is how it came out in the end.
    counted = {
        update.slot: update for update in done if update.kind in (NoteKind.LOAD, NoteKind.UPDATE)
    }
    reasons = Counter[str]()
    for update in counted.values():
        reasons.update(update.reasons)
    return {
        "updates": [_told_update(update) for update in done],
        "written_top": chart_top(
            [ratio for ratio in map(_written_per_inserted, done) if ratio is not None]
        ),
        "quarantine": {
            "updates": len(counted),
            "read": sum(update.read for update in counted.values()),
            "rows": sum(update.quarantined for update in counted.values()),
            "reasons": [{"reason": reason, "rows": n} for reason, n in reasons.most_common()],
        },
    }


def _told_update(update: UpdateRow) -> dict[str, Any]:
    numbers = ("read", "inserted", "expired", "quarantined", "late", "live", "files", "bytes",
               "written_bytes", "rewritten_rows", "cells", "imbalance", "seconds")  # fmt: skip
    return {
        "slot": update.slot,
        "as_of": format_time(update.as_of),
        "kind": update.kind,
        **{name: getattr(update, name) for name in numbers},
        "written_per_inserted": _written_per_inserted(update),
        "folders_missing": (update.folders or {}).get("missing", 0),
    }


def _written_per_inserted(update: UpdateRow) -> float | None:
    if update.kind != "update" or not update.inserted:
        return None
    return (update.inserted + update.rewritten_rows) / update.inserted


def chart_top(values: Sequence[float]) -> float | None:
    """Where the axis of a chart ends, if the highest values would flatten the rest; else None.

    In a quiet hour few rows come in, and the ratio to them is many times the usual one.
    """
    if len(values) < OUTLIERS_AMONG:
        return None
    usual = sorted(values)[3 * (len(values) - 1) // 4]  # three of four are at most this
    top = OUTLIER_FACTOR * usual
    return top if 0 < top < max(values) else None


def _from_project(path: str) -> str:
    """Without the folder of the project, which everybody who looks knows."""
    root = f"{project_root()}/"
    return path.removeprefix(root)


def _told_quality(standing: Standing) -> dict[str, Any] | None:
    found = standing.quality
    if found is None:
        return None
    failed = {one["name"] for one in found.get("failed") or [] if isinstance(one, dict)}
    # The page's route serves what is in the folder `site`; the summary names files from above it.
    report = str(found.get("report") or "site/index.html").removeprefix("site/")
    return {
        "slot": found.get("slot"),
        "at": found.get("at"),
        "success": bool(found.get("success")),
        "checked": found.get("checked"),
        "tally": _tally(found),
        "failed": sentences(found, "failed"),
        "warnings": sentences(found, "warnings"),
        "advice": advice(standing.entry.name, found.get("figures") or {}, failed) or None,
        "report": report,
    }


def _tally(found: Mapping[str, Any]) -> str | None:
    """As the report says it: how many checks held, and how many had nothing to look at."""
    checked = found.get("checked")
    if not isinstance(checked, int):
        return None
    numbers = [len(found.get(kind) or []) for kind in ("skipped", "failed", "warnings")]
    return tally(checked, *numbers)


def _example_key(index: Index) -> str | None:
    """A key that is probably there, from the statistics of the files."""
    try:
        log = IndexTable(index).log()
        if log is None:
            return None
        actions = arrow(log.table.get_add_actions(flatten=True)).read_all()
        name = f"min.{index.key}"
        if name not in actions.column_names:
            return None
        kind = actions.schema.field(name).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_whole(kind)):
            return None
        found = sorted(value for value in actions.column(name).to_pylist() if value is not None)
    except Exception:  # an example is a courtesy
        return None
    texts = [str(value) for value in found if len(str(value)) <= _STATISTICS_TEXT_MAX]
    return texts[len(texts) // 2] if texts else None


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind))
