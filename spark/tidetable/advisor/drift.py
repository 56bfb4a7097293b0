"""Whether a table that the advisor chose for still is what it was chosen for. No JVM.

Compared are the last updates and the last note with what was predicted when the table was made.
Where the rows have changed, the search runs again on what the note tells about them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean, median
from typing import Any

from tidetable.advisor import Calibration, Machine, Wishes, Workload, advise, predict
from tidetable.advisor.search import choice
from tidetable.config import Index, parse_duration
from tidetable.core.file_size import target_file_bytes
from tidetable.table.history import Updates
from tidetable.table.history_row import UpdateRow
from tidetable.table.note import NoteKind
from tidetable.table.state import State, chosen_of

FACTOR = 1.5
"""So many times more or less than predicted is drift."""

UPDATES_MIN, UPDATES_MAX = 24, 288
"""A window of updates is compared, since the advisor knew a window; so many of them at most, and
fewer tell nothing."""

PAYS = 0.9
"""Another setting pays if it needs no more than this share of the time."""


@dataclass(frozen=True)
class Drift:
    """In what the table has parted from the prediction, each as a sentence."""

    sentences: tuple[str, ...] = ()
    better: Mapping[str, Any] | None = None
    """The scheme that would pay now, as it is written in the YAML."""

    advice: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Found / predicted, by what was compared."""

    def as_json(self) -> dict[str, Any]:
        return {
            "sentences": list(self.sentences),
            "figures": {name: round(ratio, 3) for name, ratio in self.figures.items()},
            "better": self.better,
            "advice": self.advice,
        }


def drift(index: Index, state: State) -> Drift | None:
    """None if the advisor did not choose the scheme, or too little has been done to tell."""
    chosen = chosen_of(state.log)
    if chosen is None or "predicted" not in chosen:
        return None
    last = Updates(index).last(min(max(index.period, UPDATES_MIN), UPDATES_MAX))
    done = [row for row in last if row.kind == NoteKind.UPDATE]
    if len(done) < min(index.period, UPDATES_MIN):
        return None
    ratios = compared(chosen, done, full=state.slot >= index.period)
    parted = {name: ratio for name, ratio in ratios.items() if not 1 / FACTOR <= ratio <= FACTOR}
    sentences = tuple(_sentence(name, ratio) for name, ratio in parted.items())
    if not parted:
        return Drift(figures=ratios)
    if parted.keys() == {"seconds"}:
        told = f"Measure this machine again: tidetable advise {index.argument} --recalibrate"
        return Drift(sentences, None, told, ratios)
    better, told = _better(index, state, chosen)
    return Drift(sentences, better, told, ratios)


def compared(
    chosen: Mapping[str, Any], done: Sequence[UpdateRow], *, full: bool
) -> dict[str, float]:
    """Found / predicted; of what needs a full window only once the window has rolled over."""
    predicted, workload = chosen["predicted"], chosen["workload"]
    pairs = {"inserted": (mean(row.inserted for row in done), workload["rows_per_slot"])}
    took = [row.seconds for row in done if row.seconds is not None]
    if took:
        pairs["seconds"] = (median(took), predicted["update_s"])
    if full:
        written = mean(row.inserted + row.rewritten_rows for row in done)
        pairs["written"] = (written, predicted["rows_written"])
        pairs["live"] = (mean(row.live for row in done), workload["live_rows"])
    return {name: found / said for name, (found, said) in pairs.items() if said > 0}


def workload_now(index: Index, state: State) -> Workload | None:
    """The source as the last note shows it; None if the table is empty.

    As many rows live to expire x slots from now as arrive in a slot and live for x slots or longer,
    while the source stays as it is: so the differences of the forecast are the histogram.
    """
    note = state.note
    surviving = [float(note.live_by_expiration.get(note.slot + x, 0))
                 for x in range(1, index.period + 1)]  # fmt: skip
    falling = [*_falling(surviving), 0.0]
    lifetimes = tuple(now - later for now, later in pairwise(falling))
    if sum(lifetimes) <= 0 or not state.log.rows:
        return None
    return Workload(
        lifetimes=lifetimes,
        bytes_per_row=max(1.0, state.log.files.bytes / state.log.rows),
        update_every=index.update_every,
        keep_versions_for=index.keep_versions_for,
        target_file_bytes=target_file_bytes(index.target_file_size, state.log.files.bytes),
    )


def _falling(values: Sequence[float]) -> list[float]:
    """The nearest sequence that never rises: neighbours that do are replaced by their mean."""
    pools: list[tuple[float, int]] = []
    for value in values:
        total, number = value, 1
        while pools and pools[-1][0] / pools[-1][1] < total / number:
            before, count = pools.pop()
            total, number = total + before, number + count
        pools.append((total, number))
    return [total / number for total, number in pools for _ in range(number)]


def _better(
    index: Index, state: State, chosen: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, str]:
    """The setting that would pay now, and what to do, in words."""
    now = workload_now(index, state)
    if now is None or index.is_auto:
        return None, ""
    prices = dict(chosen["calibration"])
    machine = prices.pop("machine")
    calibration = Calibration(Machine(machine["cores"], machine["versions"]), **prices)
    wishes = wishes_from(chosen["wishes"])
    found = advise(now, calibration, wishes)
    current = choice(index.scheme, predict(index.scheme, now, calibration), wishes)  # type: ignore[arg-type]
    if not found.best or found.best[0].total_s > PAYS * current.total_s:
        return None, f"{current.label} still is as good as any."
    best = found.best[0]
    return best.scheme, (
        f"{best.label} would need {best.total_s:.2f} s in each update interval instead of "
        f"{current.total_s:.2f} s. Give the index a new `table:` with this scheme and build it."
    )


def wishes_from(data: Mapping[str, Any]) -> Wishes:
    """What `Wishes.as_json` wrote."""
    purge = data.get("purge_within_s")
    return Wishes(
        probes_per_update=data["probes_per_update"],
        scans_per_update=data["scans_per_update"],
        update_seconds_max=data.get("update_seconds_max"),
        files_max=data.get("files_max"),
        purge_within=None if purge is None else parse_duration(f"{purge}s"),
    )


_WHAT = {
    "inserted": "Updates insert",
    "seconds": "Updates take",
    "written": "Updates write",
    "live": "The table holds",
}
_UNIT = {"inserted": "rows", "seconds": "time", "written": "rows", "live": "rows"}


def _sentence(what: str, ratio: float) -> str:
    unit = f" the {_UNIT[what]}"
    return f"{_WHAT[what]} {ratio:.2g} times{unit} that the advisor reckoned with."
