"""All cells written again, sorted and merged, without a row coming or going."""

from __future__ import annotations

import uuid

from tidetable.config import Index
from tidetable.core.cell import LOG
from tidetable.core.errors import TransientError
from tidetable.core.plan import Action, Plan, Reason, Route, Touch
from tidetable.engine.updater import RACES_MAX, Updater
from tidetable.table.report import UpdateReport
from tidetable.table.state import State

_MERGED = Touch(Action.REWRITE, Reason.REBUILT)
_EMPTIED = Touch(Action.MOVE, Reason.EMPTIED)


def rebuild(updater: Updater) -> UpdateReport:
    """Rewrites every cell in one commit. The slot and the rows stay as they are."""
    for _ in range(RACES_MAX):
        state = updater.required_state()
        plan = rebuild_plan(updater.index, state)
        note = state.note.as_rebuilt(uuid.uuid4().hex)
        report = updater.rewrite(state, plan, note)
        if report is not None:
            return report
    raise TransientError(
        f"Other writers of {updater.index.name!r} committed first, {RACES_MAX} times in a row. "
        "Nothing was lost.",
        remedy="Run it again, with one writer at a time.",
        code="lost_race",
    )


def rebuild_plan(index: Index, state: State) -> Plan:
    """Every cell that holds a file; rows of logs and of lower levels go where a load puts them."""
    held = state.log.cells
    scheme = index.build_scheme()
    if LOG not in scheme.cells():
        return Plan(state.slot, state.slot, dict.fromkeys(held, _MERGED))
    level = scheme.initial_cell(0, 1).g
    homes = {cell.e: cell for cell in scheme.cells() if cell.g == level and not cell.is_log}
    own = set(scheme.cells()) & set(held)
    moves = {
        cell: Route(homes) if cell.is_log else Route(rest=homes[cell.e])
        for cell in own
        if homes.get(cell.e) != cell
    }
    fed = {home for route in moves.values() for home in route.targets}
    touched = dict.fromkeys((own | fed) - moves.keys(), _MERGED)
    touched |= dict.fromkeys(moves, _EMPTIED)
    return Plan(state.slot, state.slot, touched, moves)
