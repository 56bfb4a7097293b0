"""What people see of an answer that is more than one table: check, plan, status, rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from tidetable.config import Index, format_time
from tidetable.output import show
from tidetable.output.show import number_of, one_line
from tidetable.table.status import Outlook, Status

if TYPE_CHECKING:
    from tidetable.advisor.drift import Drift

ROWS_SHOWN = 20


def checked(index: Index, answer: Mapping[str, Any]) -> RenderableType:
    """What `check` found in the YAML and, if it looked there, in the source."""
    head = Text.assemble((index.name, "bold"), f": {answer['scheme']}, p = {index.period}. ")
    head.append("The YAML is right.")
    if "read" not in answer:
        return head
    where = "no table yet" if answer["slot"] is None else f"table at slot {answer['slot']}"
    lines = [
        f"{where}; slot {answer['next_slot']} would read {answer['read']:,} rows:",
        f"  {answer['inserted']:,} to insert, {answer['dead_on_arrival']:,} dead on arrival, "
        f"{answer['quarantined']:,} bad",
    ]
    lines += [f"    {rows:>6,}  {reason}" for reason, rows in sorted(answer["reasons"].items())]
    if answer["new_columns"]:
        names = ", ".join(answer["new_columns"])
        lines.append(f"  not in the table, so left out (source.new_columns): {names}")
    if answer["misplaced"]:
        lines.append(f"  {misplaced_rows(answer['misplaced'])}")
    return Group(head, *map(one_line, lines))


def misplaced_rows(rows: int) -> str:
    """What rows in a wrong folder mean, and what to do."""
    return (
        f"{rows:,} rows lie in a folder that their arrival time does not belong to, where no "
        "update looks for them: correct source.path or source.path_timezone, or move them"
    )


def planned(outlook: Outlook) -> RenderableType:
    """What the next update would do."""
    parts: list[RenderableType] = []
    if outlook.creates:
        parts.append(Text("There is no table yet: the first update makes it and loads slot 0."))
    update = f"Update {outlook.slot}, as of {format_time(outlook.as_of)}"
    if not outlook.plan.touched:
        return Group(*parts) if parts else Text(f"{update}, touches no cell.")
    parts += [Text(f"{update}:"), show.outlook_table(outlook)]
    if outlook.expiring is not None:
        data = outlook.as_json()
        size = show.human_bytes(data["rewritten_bytes"])
        parts.append(
            Text(
                f"{outlook.expiring:,} rows expire. Rewritten: {data['rewritten_rows']:,} rows in "
                f"{data['rewritten_files']} files, {size}."
            )
        )
    return Group(*parts)


def standing(found: Status, drift: Drift | None) -> RenderableType:
    """One index: its figures, its cells and what expires when."""
    parts = [show.status_summary(found)]
    if drift is not None and drift.sentences:
        parts.append(show.drift_summary(drift))
    if found.live:
        parts += [
            Text(),
            show.cells_picture(found.cells),
            show.cells_legend(found.cells),
            Text(),
            show.forecast(found.note.live_by_expiration, found.slot, found.index.period),
        ]
    return Group(*parts)


def all_rows(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], slot: int, as_of: datetime
) -> RenderableType:
    """Every row that was asked for, and how many there are."""
    shown = list(rows)
    return _rows(columns, shown, f"{number_of(len(shown), 'row')} {_as_of(slot, as_of)}")


def first_rows(
    columns: Sequence[str], rows: Iterator[Mapping[str, Any]], slot: int, as_of: datetime
) -> RenderableType:
    """The first of what may be too many for a screen."""
    shown = list(islice(rows, ROWS_SHOWN + 1))
    if len(shown) <= ROWS_SHOWN:
        return all_rows(columns, shown, slot, as_of)
    more = "--json gives all, --count their number"
    told = f"the first {ROWS_SHOWN} rows {_as_of(slot, as_of)}; {more}"
    return _rows(columns, shown[:ROWS_SHOWN], told)


def counted(number: int, slot: int, as_of: datetime) -> RenderableType:
    """How many rows there are."""
    return Text(f"{number_of(number, 'row')} {_as_of(slot, as_of)}")


def _rows(columns: Sequence[str], rows: list[Mapping[str, Any]], told: str) -> RenderableType:
    return Group(show.rows_table(columns, rows), Text(told)) if rows else Text(told)


def _as_of(slot: int, as_of: datetime) -> str:
    return f"as of {format_time(as_of)} (slot {slot})"
