"""How often to update, how long rows live, when to begin, which scheme: from a sample of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from math import ceil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tidetable.advisor import Advice, Calibration, Wishes, Workload, advise
from tidetable.config import parse_duration
from tidetable.core.errors import UserError
from tidetable.init.look import Look
from tidetable.init.roles import Roles, roles

UPDATES_IN_A_WINDOW = 24
"""At least so many updates in the longest lifetime, unless rows arrive less often."""

STEPS = tuple(
    map(
        parse_duration, ("1m", "5m", "10m", "15m", "30m", "1h", "2h", "3h", "6h", "12h", "1d", "7d")
    )
)
FIRST_UPDATES = 12
"""A source that has stopped gets so many slots at its end, to see the index at work."""

UNKNOWN = timedelta(days=7)
"""How long rows live, and how often they are told apart, where nothing says it."""

OUTLIERS = 2.0
"""A longest lifetime so many times that of all but one in a thousand is not taken for real."""

BARS = 12
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Proposal:
    """An index for a source, as far as its rows tell."""

    look: Look
    roles: Roles
    update_every: timedelta
    longest_lifetime: timedelta
    start: datetime
    end: datetime | None
    """Only if the source seems to have stopped."""

    lifetimes: tuple[tuple[timedelta, int], ...]
    """Rows of the sample by lifetime: (up to, how many); empty if no row says how long it lives."""

    longest_seen: timedelta | None
    dead_on_arrival: int
    """Rows of the sample that had expired when they arrived."""

    newest: datetime
    advice: Advice | None
    """None without lifetimes to simulate."""

    @property
    def has_outliers(self) -> bool:
        """Whether some rows live longer than is proposed: they would go to quarantine."""
        return self.longest_seen is not None and self.longest_seen > self.longest_lifetime


def propose(seen: Look, now: datetime | None = None) -> Proposal:
    """What suits this source. UserError if it has no times or nothing that could be a key."""
    now = datetime.now(UTC) if now is None else now
    part = roles(seen)
    arrived = seen.sample[part.arrived_at].drop_null()
    oldest, newest = (_moment(value) for value in pc.min_max(arrived).as_py().values())
    spans = _lifetimes(seen, part)
    lasting = spans.filter(pc.greater(spans, 0)) if spans is not None else None
    if lasting is None or not len(lasting):
        longest_seen, lasting, longest = None, None, UNKNOWN
    else:
        longest_seen = timedelta(microseconds=pc.max(lasting).as_py())
        longest = _longest(lasting, longest_seen)
    every = _every(longest, arrived)
    longest = ceil(longest / every) * every
    end = None
    start = _floor(newest, every)
    if newest < now - max(longest, timedelta(days=1)):
        end = start + every  # the slot that the newest rows are in
        first = end - FIRST_UPDATES * every
        start = max(first, _floor(oldest, every))
    return Proposal(
        look=seen,
        roles=part,
        update_every=every,
        longest_lifetime=longest,
        start=start,
        end=end,
        lifetimes=() if lasting is None else _bars(lasting, longest),
        longest_seen=longest_seen,
        dead_on_arrival=0 if spans is None or lasting is None else len(spans) - len(lasting),
        newest=newest,
        advice=None if lasting is None else _advice(seen, lasting, every, longest, newest - oldest),
    )


# -- times -----------------------------------------------------------------------------------------


def _lifetimes(seen: Look, part: Roles) -> pa.ChunkedArray | None:
    """Microseconds from a row's arrival to its end; None if nothing says when it ends."""
    if part.valid_until is not None:
        arrived = pc.cast(seen.sample[part.arrived_at], pa.int64())
        until = pc.cast(seen.sample[part.valid_until], pa.int64())
        return pc.subtract(until, arrived).drop_null()
    if part.lifetime_column is not None:
        lives = pc.multiply(
            pc.cast(seen.sample[part.lifetime_column], pa.int64()),
            part.seconds_per_unit * 1_000_000,
        )
        # A lifetime counts from valid_from.
        lag = pc.subtract(
            pc.cast(seen.sample[part.valid_from], pa.int64()),
            pc.cast(seen.sample[part.arrived_at], pa.int64()),
        )
        return pc.add(lives, lag).drop_null()
    return None


def _longest(lasting: pa.ChunkedArray, longest: timedelta) -> timedelta:
    """The longest lifetime, but for a few rows that live far longer than all others."""
    usual = timedelta(microseconds=pc.quantile(lasting, 0.999)[0].as_py())
    return usual if longest > OUTLIERS * usual else longest


def _every(longest: timedelta, arrived: pa.ChunkedArray) -> timedelta:
    """A round interval: many in a lifetime, but not more often than rows arrive."""
    wanted = longest / UPDATES_IN_A_WINDOW
    fits = [step for step in STEPS if step <= wanted]
    step = fits[-1] if fits else max(_SECOND, timedelta(seconds=round(wanted.total_seconds())))
    gap = _usual_gap(arrived)
    coarser = [one for one in STEPS if one >= gap and one <= longest]
    return max(step, coarser[0]) if coarser and gap > step else step


def _usual_gap(arrived: pa.ChunkedArray) -> timedelta:
    """Between one time of arrival and the next: long where rows come in batches."""
    at = pc.unique(pc.cast(arrived, pa.int64())).sort()
    if len(at) < 3:
        return timedelta(0)
    gaps = pc.subtract(at[1:], at[:-1])
    return timedelta(microseconds=pc.quantile(gaps, 0.5)[0].as_py())


def _floor(moment: datetime, every: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (moment - epoch) // every * every


def _moment(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _bars(lasting: pa.ChunkedArray, longest: timedelta) -> tuple[tuple[timedelta, int], ...]:
    width = longest / BARS
    counts = _counts(lasting, width)
    bars = [(place * width, counts[place]) for place in range(1, BARS + 1)]
    beyond = sum(rows for place, rows in counts.items() if place > BARS)
    return (*bars, (timedelta.max, beyond)) if beyond else tuple(bars)


def _counts(lasting: pa.ChunkedArray, width: timedelta) -> Counter[int]:
    """Rows by lifetime in steps of this width, from 1 on."""
    step = width // timedelta(microseconds=1)
    places = pc.cast(pc.ceil(pc.divide(pc.cast(lasting, pa.float64()), step)), pa.int64())
    return Counter({one["values"]: one["counts"] for one in pc.value_counts(places).to_pylist()})


# -- the scheme ------------------------------------------------------------------------------------


def _advice(
    seen: Look, lasting: pa.ChunkedArray, every: timedelta, longest: timedelta, over: timedelta
) -> Advice | None:
    """What the advisor advises; None if too little lives for a slot."""
    period = ceil(longest / every)
    scale = seen.rows / seen.sample.num_rows / max(1, ceil(over / every))
    slots = _counts(lasting, every)
    lifetimes = tuple(slots[place] * scale for place in range(1, period + 1))
    try:
        workload = Workload(
            lifetimes=lifetimes, bytes_per_row=seen.bytes_per_row, update_every=every
        )
        found = advise(workload, shipped_calibration(), Wishes())
    except UserError:
        return None
    return found if found.best else None


def shipped_calibration() -> Calibration:
    """What things cost on the machine that the package was measured on."""
    text = (files("tidetable.advisor") / "calibration.json").read_text()
    return Calibration.loads(text)


def place_of(source: str, project: Path) -> str:
    """A local path as the YAML writes it: below the project relative to it."""
    if "://" in source:
        return source
    path = Path(source).absolute()
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)
