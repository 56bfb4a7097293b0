"""All cells written again, sorted and merged, without a row coming or going."""

from __future__ import annotations

import uuid

from tidetable.core.cell import LOG, Cell
from tidetable.core.config import Index
from tidetable.core.errors import TransientError
from tidetable.core.plan import Action, Plan, Touch
from tidetable.delta.report import UpdateReport
from tidetable.delta.table import State
from tidetable.delta.update import RACES_MAX, Updater

_MERGED = "rebuilt: its files are sorted and merged"
_EMPTIED = "rebuilt: its rows go to the cells of their groups"


def rebuild(updater: Updater) -> UpdateReport:
    """Rewrites every cell in one commit. The slot and the rows stay as they are."""
    for _ in range(RACES_MAX):
        state = updater.table.required_state()
        plan = rebuild_plan(updater.index, state)
        note = state.note.as_rebuilt(uuid.uuid4().hex)
        report = updater.rewrite(state, plan, note)
        if report is not None:
            return report
    raise TransientError(
        f"Other writers of {updater.index.name!r} committed first, {RACES_MAX} times in a row. "
        "Nothing was lost; run it again, with one writer at a time."
    )


def rebuild_plan(index: Index, state: State) -> Plan:
    """Every cell that holds a file; rows of Sweep's log go where a sweep would take them."""
    cells = state.log.cells
    touched = {cell: Touch(Action.REWRITE, _MERGED) for cell in cells}
    swept: dict[int, int] = {}
    if LOG in cells:
        groups = [cell.e for cell in index.build_scheme().cells() if cell != LOG]
        touched = {Cell(0, group): Touch(Action.REWRITE, _MERGED) for group in groups}
        touched[LOG] = Touch(Action.DROP, _EMPTIED)
        swept = dict.fromkeys(groups, state.slot)
    return Plan(state.slot, state.slot, touched, swept)
