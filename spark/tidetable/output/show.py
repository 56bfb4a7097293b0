"""What people see in a terminal: tables, the picture of the cells, sizes in words.

Whatever can be wider than the terminal looks at its width when it is printed, and gives up what
matters least: a table drops columns, rows of many columns are shown one below the other. Where
there is no terminal nothing is wrapped or cut. Text that may come from data goes through
`one_line`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tidetable.config import format_time
from tidetable.core.cell import LOG, Cell, CellState
from tidetable.core.simulate import Simulation
from tidetable.output.characters import visible
from tidetable.output.terminal import ENDLESS
from tidetable.output.values import plain
from tidetable.table.report import UpdateReport
from tidetable.table.status import Outlook, Status

if TYPE_CHECKING:
    from tidetable.advisor import Advice
    from tidetable.advisor.drift import Drift
    from tidetable.quality.outcome import Outcome
    from tidetable.table.upkeep import Purge

_SHADES = " ░▒▓█"
_BLUES = ("grey50", "#1f4e79", "#2e75b6", "#5b9bd5", "#9dc3e6")
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_BARS_HIGH = 5
_LINES_OF_CELLS_MAX = 4
_PICTURE_WIDTH = 100
_TABLE_WIDTH = 1_000
"""For pictures, and for tables of rows, where there is no terminal that is of some width."""


# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    name: str
    values: Sequence[str]
    justify: Literal["left", "right"] = "right"
    rank: int = 0
    """Where the table is too wide, columns go in order of their rank; those of rank 0 stay."""


def _room(options: ConsoleOptions, without_terminal: int) -> int:
    return without_terminal if options.max_width >= ENDLESS else options.max_width


def one_line(text: str, style: str = "") -> Text:
    """A line of its own, whatever is in it."""
    return Text(visible(text), style=style)


class _FirstThatFits:
    """Prints the first candidate that is no wider than the terminal, or else the last."""

    def __init__(self, candidates: Sequence[Callable[[], RenderableType]]) -> None:
        self.candidates = candidates

    def chosen(self, console: Console, options: ConsoleOptions) -> RenderableType:
        endless = options.update(max_width=ENDLESS)
        for make in self.candidates[:-1]:
            found = make()
            if Measurement.get(console, endless, found).maximum <= _room(options, _TABLE_WIDTH):
                return found
        return self.candidates[-1]()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.chosen(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.chosen(console, options))


def fitted_table(columns: Sequence[Column]) -> RenderableType:
    ranks = [0, *sorted(column.rank for column in columns if column.rank)]

    def without(dropped: int) -> Callable[[], RenderableType]:
        return lambda: _table([one for one in columns if not 0 < one.rank <= dropped])

    return _FirstThatFits([without(rank) for rank in ranks])


def _table(columns: Sequence[Column]) -> Table:
    table = _empty_table()
    for column in columns:
        table.add_column(one_line(column.name), justify=column.justify)
    for row in zip(*(column.values for column in columns), strict=True):
        table.add_row(*map(one_line, row))
    return table


def _empty_table() -> Table:
    return Table(header_style="bold", pad_edge=False, box=None, padding=(0, 2, 0, 0))


class UpdateLines:
    """One line for each commit as it is made: what comes later may fail."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.widths: dict[str, int] = {}
        """Of the columns that are shown. One becomes wider with the first value that is."""

    def show(self, report: UpdateReport) -> None:
        """The line of this commit; before the first one the heads of the columns."""
        columns = _update_columns(report)
        if not self.widths:
            self.widths = self._fitting(columns)
            self._print({name: name for name in self.widths}, columns)
        values = {column.name: column.values[0] for column in columns}
        for name in self.widths:
            self.widths[name] = max(self.widths[name], len(values[name]))
        self._print(values, columns)

    def _fitting(self, columns: Sequence[Column]) -> dict[str, int]:
        widths = {one.name: max(len(one.name), 3, len(one.values[0])) for one in columns}
        for column in sorted((one for one in columns if one.rank), key=lambda one: one.rank):
            if sum(widths.values()) + 2 * (len(widths) - 1) <= self.console.width:
                break
            del widths[column.name]
        return widths

    def _print(self, values: Mapping[str, str], columns: Sequence[Column]) -> None:
        to_left = {column.name for column in columns if column.justify == "left"}
        cells = [
            values[name].ljust(width) if name in to_left else values[name].rjust(width)
            for name, width in self.widths.items()
        ]
        # Wider than the terminal only if numbers grow: rather a broken line than half a number.
        self.console.print(one_line("  ".join(cells).rstrip()), soft_wrap=True)


def _update_columns(report: UpdateReport) -> list[Column]:
    def number(name: str, rank: int = 0, *, of: str = "") -> Column:
        return Column(name, [f"{getattr(report, of or name):,}"], rank=rank)

    return [
        Column("slot", [str(report.slot)]),
        Column("as of", [short_time(report.as_of)], "left", rank=3),
        number("inserted"),
        number("expired"),
        number("dead", 4, of="dead_on_arrival"),
        number("bad", of="quarantined"),
        number("live"),
        number("rewritten", 5, of="rewritten_rows"),
        Column("written", [human_bytes(report.written_bytes)]),
        number("cells", 1),
        Column("s", [f"{report.seconds:.1f}"], rank=2),
    ]


def status_table(found: Iterable[Status]) -> RenderableType:
    """One line for each index, to compare them."""
    found = list(found)
    uneven = [one.imbalance for one in found]
    return fitted_table(
        [
            Column("index", [one.index.name for one in found], "left"),
            Column("scheme", [one.index.build_scheme().short_label for one in found], "left"),
            Column("slot", [str(one.slot) for one in found]),
            Column("as of", [short_time(format_time(one.as_of)) for one in found], "left", rank=1),
            Column("live", [f"{one.live:,}" for one in found]),
            Column("cells", [str(len(one.cells)) for one in found], rank=2),
            Column("files", [f"{one.files:,}" for one in found]),
            Column("size", [human_bytes(one.bytes) for one in found]),
            Column("imbalance", ["-" if x is None else f"{x:.2f}" for x in uneven]),
        ]
    )


def status_summary(found: Status) -> RenderableType:
    """One index in a few lines."""
    lines = [
        Text.assemble((found.index.name, "bold"), f"  {found.scheme}"),
        Text(f"slot {found.slot}, as of {short_time(format_time(found.as_of))}"),
    ]
    files = "file" if found.files == 1 else "files"
    rows = "row" if found.live == 1 else "rows"
    cells = "cell" if len(found.cells) == 1 else "cells"
    text = Text(f"{found.live:,} live {rows} in {found.files:,} {files}, ")
    text.append(f"{human_bytes(found.bytes)}; {len(found.cells):,} {cells}")
    if found.imbalance is not None:
        text.append(f", the fullest {found.imbalance:.2f} times the mean")
    return Group(*lines, text)


def outlook_table(outlook: Outlook) -> RenderableType:
    """The cells that an update touches. The reason comes last: it may take a second line."""
    table = _empty_table()
    for name in ("cell", "action"):
        table.add_column(name, no_wrap=True)
    for name in ("rows", "files", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why")
    for cell, touch in sorted(outlook.plan.touched.items()):
        state = outlook.cells.get(cell, CellState())
        table.add_row(
            str(cell), str(touch.action), f"{state.rows:,}", str(state.files),
            human_bytes(state.bytes), touch.why,
        )  # fmt: skip
    return table


def rows_table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> RenderableType:
    """Rows as a table or, if that is wider than the terminal, one value a line."""
    shown = [[plain(row.get(name)) for name in columns] for row in rows]
    by_column = list(zip(*shown, strict=True)) or [()] * len(columns)
    table = [Column(name, values, "left") for name, values in zip(columns, by_column, strict=True)]
    return _FirstThatFits([lambda: _table(table), lambda: _records(columns, shown)])


def _records(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    parts: list[RenderableType] = []
    for number, row in enumerate(rows, start=1):
        if len(rows) > 1:
            parts.append(Text(f"── {number} ".ljust(40, "─"), style="dim", overflow="crop"))
        parts.append(_Record(columns, row))
    return Group(*parts)


class _Record:
    """A row, one value a line; in a terminal a long value goes on below where it began."""

    def __init__(self, columns: Sequence[str], row: Sequence[str]) -> None:
        self.names, self.values = list(map(visible, columns)), list(map(visible, row))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= ENDLESS:
            width = max(map(len, self.names), default=0)
            for name, value in zip(self.names, self.values, strict=True):
                yield Text(f"{name.ljust(width)}  {value}", no_wrap=True, overflow="ignore")
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in zip(self.names, self.values, strict=True):
            grid.add_row(Text(name), Text(value))
        yield grid


# -- upkeep ----------------------------------------------------------------------------------------


def outcome_summary(outcome: Outcome) -> RenderableType:
    """What a validation found: a line, and one for each finding."""
    lines = [one_line(f"{outcome.index}, slot {outcome.slot}: {outcome.tally}")]
    lines += [one_line(f"  failed: {one.sentence}", "red") for one in outcome.failed]
    lines += [one_line(f"  warning: {one.sentence}", "yellow") for one in outcome.warnings]
    return Group(*lines)


def maintenance(done: Mapping[str, Any]) -> RenderableType:
    """What a maintenance did, or what waits for one."""
    lines = maintenance_lines(done, to_purge="--purge deletes them")
    return Group(*map(one_line, lines))


def maintenance_lines(done: Mapping[str, Any], to_purge: str) -> list[str]:
    """The same in lines; `to_purge` says how files that may go are deleted."""
    name, slot = done["index"], done["slot"]
    lines = [f"{name}, slot {slot}: {reason}" for reason in done["due"]]
    if not lines:
        lines = [f"{name}, slot {slot}: nothing is due"]
    if done["done"]:
        made = ", ".join(done["checkpoints"])
        lines.append(f"checkpoints: {made or 'none was needed'}")
        rows, files = done.get("updates_dropped_rows", 0), done.get("updates_merged_files", 0)
        lines.append(f"table of updates: {rows:,} old rows dropped, {_files(files)} merged")
        rows = done.get("quarantine_dropped_rows", 0) + done.get("quarantine_digested_rows", 0)
        if rows:
            lines.append(f"quarantine: {number_of(rows, 'old row')} dropped")
    if "deleted_files" in done:
        size = human_bytes(done["deleted_bytes"])
        lines.append(f"{_files(done['deleted_files'])} deleted, {size}")
    if "deletable_files" in done:
        lines += _deletable_lines(done, to_purge)
    lines += [f"Left alone: {path}, a Delta table of its own" for path in done.get("skipped", ())]
    return lines


def _deletable_lines(done: Mapping[str, Any], to_purge: str) -> list[str]:
    files, paths = done["deletable_files"], done["paths"]
    told = f"{_files(files)} can be deleted, {human_bytes(done['deletable_bytes'])}"
    lines = [f"{told}; {to_purge}" if files else told]
    lines += [f"  {path}" for path in paths]
    if files > len(paths):
        lines.append(f"  and {files - len(paths):,} more")
    return [*lines, done["retention"]]


def purged(found: Purge, *, deleted: bool) -> RenderableType:
    """Which files may go, or went."""
    did = "deleted" if deleted else "can be deleted"
    lines = [f"{_files(found.files)} {did}, {human_bytes(found.bytes)}"]
    lines += [f"  {path}" for path in found.paths]
    if found.files > len(found.paths):
        lines.append(f"  and {found.files - len(found.paths):,} more")
    lines.append(found.retention)
    lines += [f"Left alone: {path}, a Delta table of its own" for path in found.skipped]
    if found.files and not deleted:
        lines.append("Nothing was deleted; --yes deletes them.")
    return Group(*map(one_line, lines))


def _files(number: int) -> str:
    return number_of(number, "file")


# -- pictures --------------------------------------------------------------------------------------


def cells_picture(cells: Mapping[Cell, CellState]) -> RenderableType:
    """The cells as a heat map: a shade and a number each, lines g, columns e."""
    return _CellsPicture(cells)


def cells_legend(cells: Mapping[Cell, CellState]) -> Text:
    """How to read the picture, in a line."""
    parts = ["e: expiration part"]
    if len({cell.g for cell in cells if not cell.is_log}) > 1:
        # Only Tiers has both a log and several lines.
        parts.insert(0, "g: level" if LOG in cells else "g: insertion part")
    if LOG in cells:
        parts.append("log: of all parts")
    shades = "".join(_SHADES[1:])
    return Text(f"{', '.join(parts)}; {shades} up to ¼, ½, ¾, all of the fullest", style="dim")


class _CellsPicture:
    def __init__(self, cells: Mapping[Cell, CellState]) -> None:
        self.cells = cells
        grid = [cell for cell in cells if not cell.is_log]
        self.logs = [cell for cell in cells if cell.is_log]
        self.gs = sorted({cell.g for cell in grid})
        self.es = sorted({cell.e for cell in grid})
        self.most = max((state.rows for state in cells.values()), default=0)
        # Two characters of shade, a space, the number; a header above it has to fit as well.
        self.width = 3 + max(len(f"{self.most:,}"), len(f"e{max(self.es, default=0)}"))
        names = ["log", *map(str, self.logs), f"g{max(self.gs, default=0)}"]
        self.margin = 2 + max(len(name) for name in names)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        natural = self.margin + len(self.es) * (2 + self.width)
        width = min(natural, _room(options, _PICTURE_WIDTH))
        return Measurement(width, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = _room(options, _PICTURE_WIDTH) - self.margin
        per_line = max(1, room // (2 + self.width))
        lines = -(-len(self.es) // per_line) * len(self.gs)
        if len(self.es) <= per_line or lines <= _LINES_OF_CELLS_MAX:
            for first in range(0, len(self.es), per_line):
                yield from self._numbered(self.es[first : first + per_line])
        else:
            yield from self._shaded(max(1, room - 2))
        for log in self.logs:
            state = self.cells[log]
            line = self._label(str(log))
            line.append_text(self._block(state.rows))
            line.append(f"  in {state.files} {'file' if state.files == 1 else 'files'}", "dim")
            yield line

    def _label(self, text: str) -> Text:
        return Text("  " + text.ljust(self.margin - 2), style="dim")

    def _numbered(self, es: Sequence[int]) -> Iterator[Text]:
        head = "".join("  " + f"e{e}".rjust(self.width) for e in es)
        yield Text(" " * self.margin + head, style="dim")
        for g in self.gs:
            line = self._label(f"g{g}" if len(self.gs) > 1 else "")
            for e in es:
                line.append_text(self._block(self._rows(g, e)))
            yield line

    def _shaded(self, per_line: int) -> Iterator[Text]:
        """One character for each cell, where there are too many for numbers."""
        yield Text(f"{' ' * self.margin}  e0 to e{self.es[-1]}", style="dim")
        for g in self.gs:
            for first in range(0, len(self.es), per_line):
                name = f"g{g}" if len(self.gs) > 1 and not first else ""
                line = self._label(name)
                line.append("  ")
                for e in self.es[first : first + per_line]:
                    level = self._level(self._rows(g, e))
                    line.append(_SHADES[level] if level else "·", _BLUES[level])
                yield line

    def _rows(self, g: int, e: int) -> int:
        return self.cells.get(Cell(g, e), CellState()).rows

    def _level(self, rows: int) -> int:
        return math.ceil(4 * rows / self.most) if rows else 0

    def _block(self, rows: int) -> Text:
        level = self._level(rows)
        number = f"{rows:,}" if rows else "·"
        shade = Text(f"  {_SHADES[level] * 2}", style=_BLUES[level])
        return shade.append(f" {number.rjust(self.width - 3)}", "default" if rows else "dim")


def forecast(expected: Mapping[int, int], slot: int, period: int | None = None) -> RenderableType:
    """How many rows expire in each coming slot, up to the last in which one can."""
    coming = {one: rows for one, rows in expected.items() if one > slot and rows}
    if not coming:
        return Text("No row is going to expire.", style="dim")
    last = max(slot + (period or 0), *coming)
    return _Forecast(range(slot + 1, last + 1), coming)


class _Forecast:
    """Bars side by side, several slots in one where the terminal is too narrow."""

    def __init__(self, slots: range, rows: Mapping[int, int]) -> None:
        self.slots = slots
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        label = len(f"{sum(self.rows.values()):,}") + 2
        room = max(1, _room(options, _PICTURE_WIDTH) - label - 3)
        together = -(-len(self.slots) // room)
        firsts = range(self.slots.start, self.slots.stop, together)
        bars = [sum(self.rows.get(s, 0) for s in range(f, f + together)) for f in firsts]
        step = max(1, min(4, room // len(bars)))
        yield self._title(together)
        most = max(bars)
        for level in range(_BARS_HIGH - 1, -1, -1):
            margin = (f"{most:,}" if level == _BARS_HIGH - 1 else "").rjust(label)
            line = Text(f"{margin} │", style="dim")
            for rows in bars:
                eighths = max(0, min(8, math.ceil(8 * _BARS_HIGH * rows / most) - 8 * level))
                bar = _EIGHTHS[eighths] * max(1, step - 1)
                line.append(bar.ljust(step), _BLUES[2])
            yield line
        yield Text(" " * (label + 2) + _axis(firsts, step), style="dim")

    def _title(self, together: int) -> Text:
        following = self.rows.get(self.slots.start, 0)
        title = Text.assemble(("Rows that expire in each coming slot", "bold"))
        if together > 1:
            title.append(f" ({together} slots to a bar)", "dim")
        return title.append(f"; {following:,} in the next")


def _axis(firsts: range, step: int) -> str:
    """The slots below their bars, as many as there is room for."""
    line = ""
    for place, slot in enumerate(firsts):
        start = place * step
        if not line or start >= len(line) + 2:
            line = line.ljust(start) + str(slot)
    return line


# -- the simulator ---------------------------------------------------------------------------------


def simulation_table(label: str, found: Simulation) -> Table:
    table = Table(title=label, title_justify="left", header_style="bold", pad_edge=False, box=None)
    for name in ("written avg", "written max", "files avg", "files max", "dead"):
        table.add_column(name, justify="right")
    table.add_row(
        f"{found.written_avg:.2f}", f"{found.written_max:.2f}", f"{found.files_avg:.1f}",
        str(found.files_max), f"{found.dead_avg:.2f}",
    )  # fmt: skip
    return table


# -- the advisor -----------------------------------------------------------------------------------


def advice(found: Advice) -> RenderableType:
    """What the source is like, the best settings or those that come nearest, and why."""
    from tidetable.advisor.candidates import RULE

    workload = found.workload
    number = workload.rows_per_slot
    rows = f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
    source = (
        f"{rows} rows in a slot, {workload.bytes_per_row:,.0f} bytes each, "
        f"living {workload.mean_lifetime:.3g} of {workload.period:,} slots on average: "
        f"{workload.live_rows:,.0f} live rows, {human_bytes(workload.live_bytes)}"
    )
    shown = found.best or found.nearest
    predicted = [one.prediction for one in shown]
    schemes = [one.setting.build(workload.period).short_label for one in shown]
    table = fitted_table(
        [
            Column("scheme", schemes, "left"),
            Column("total s", [f"{one.total_s:.2f}" for one in shown]),
            Column("update s", [f"{one.update_s:.2f}" for one in predicted]),
            Column("largest", [f"{one.update_s_max:.2f}" for one in predicted], rank=3),
            Column("probe ms", [f"{1000 * one.probe_s:.0f}" for one in predicted]),
            Column("scan s", [f"{one.scan_s:.2f}" for one in predicted], rank=2),
            Column("written", [f"{one.written_per_inserted:.2f}" for one in predicted]),
            Column("files", [f"{one.files:.0f}" for one in predicted]),
            Column("dead", [f"{one.dead:.2f}" for one in predicted], rank=1),
            Column("purged in", [human_duration(one.purge_within) for one in predicted], rank=4),
        ]
    )
    parts: list[RenderableType] = [Text(source), table]
    if found.best:
        written = ", ".join(f"{name}: {_yaml(value)}" for name, value in shown[0].scheme.items())
        parts += [Text(found.why), Text(f"scheme: {{{written}}}", style="bold")]
    looked = f"{found.looked_at} settings looked at"
    left_out = f", {found.too_many_runs} left out for too many files" if found.too_many_runs else ""
    parts.append(Text(f"{looked}{left_out}. {RULE}", style="dim"))
    return Group(*parts)


def drift_summary(found: Drift) -> RenderableType:
    """A line for each way in which the table has parted from what was predicted."""
    lines = [*found.sentences, found.advice] if found.advice else list(found.sentences)
    return Group(*(one_line(f"drift: {line}", "yellow") for line in lines))


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def human_duration(duration: timedelta) -> str:
    """26h 30m: the two largest units."""
    seconds = int(duration.total_seconds())
    parts = [(seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"),
             (seconds % 60, "s")]  # fmt: skip
    told = [f"{number}{unit}" for number, unit in parts if number]
    return " ".join(told[:2]) or "0s"


# -- words and values ------------------------------------------------------------------------------


def human_bytes(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"


def number_of(number: int, what: str) -> str:
    """1 file, 2 files."""
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def short_time(time: str) -> str:
    """2013-01-02T14:00:00Z as 2013-01-02 14:00Z; seconds stay where there are any."""
    return time.replace("T", " ").replace(":00Z", "Z")
