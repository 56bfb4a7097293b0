"""Which column is the key, and which times begin and end a row's life: by name, type and data."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidetable.core.errors import UserError
from tidetable.init.look import Look

_UNTIL = re.compile(
    r"expir|until|valid_to|(^|_)(to|end|ends|ended|stop|off)($|_)|finish|clos|delet|purge|land"
    r"|deadline|due|leav|check_?out|return",
    re.IGNORECASE,
)
_FROM = re.compile(
    r"valid_from|(^|_)(from|start|starts|on)($|_)|started|begin|began|depart|open|event|effective"
    r"|since|check_?in|insert|occur|happen",
    re.IGNORECASE,
)
_ARRIVED = re.compile(
    r"arriv|ingest|load|receiv|report|record|creat|updat|insert|written|(^|_)(ts|timestamp|time)$",
    re.IGNORECASE,
)
_KEY = re.compile(r"(^|_)(id|uuid|key|number|no|code|name|user|device|host)($|_)|id$|key$", re.I)
_VALUE = re.compile(r"status|state|type|kind|flag|count|amount|price|total|level|reason", re.I)
_LENGTH = re.compile(r"ttl|lifetime|valid_for|keep_for|max_age|duration|(^|_)(lives|lasts)", re.I)
_UNITS = {"d": r"day|_d$", "h": r"hour|_h$", "m": r"min|_m$", "s": r"sec|_s$"}
_CALLS = {
    "d": "make_dt_interval({})",
    "h": "make_dt_interval(0, {})",
    "m": "make_dt_interval(0, 0, {})",
    "s": "make_dt_interval(0, 0, 0, {})",
}
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
MOSTLY = 0.95
"""Of so many rows a time must not be before another one, to come after it."""


@dataclass(frozen=True)
class Roles:
    """What each column is taken for, and what else it could have been."""

    key: str
    other_keys: tuple[str, ...]
    arrived_at: str
    valid_from: str
    valid_until: str | None
    """None: no column says when a row dies."""

    lifetime: str | None
    """Where a column says how long a row lives: the expression for it."""

    lifetime_column: str | None
    seconds_per_unit: int
    other_times: tuple[str, ...]


def roles(seen: Look) -> Roles:
    """UserError if there is nothing to go by: no time, or no column that could be looked up."""
    times = seen.times
    if not times:
        found = ", ".join(f"{one.name} ({one.type})" for one in seen.columns)
        raise UserError(
            f"No column of {seen.path} holds times, in ISO 8601 or as timestamps. There are: "
            f"{found}. An index needs the time at which a row arrived."
        )
    until = _until(seen.sample, times)
    rest = [name for name in times if name != until]
    arrived = max(rest, key=lambda name: (_arrival(name), -rest.index(name)))
    valid_from = _begins(seen.sample, arrived, until, rest)
    keys = _keys(seen)
    if not keys:
        raise UserError(
            f"No column of {seen.path} can be looked up: text, whole numbers or dates make a key."
        )
    length, unit = (None, "s") if until is not None else _length(seen)
    used = {until, arrived, valid_from}
    return Roles(
        key=keys[0],
        other_keys=tuple(keys[1:4]),
        arrived_at=arrived,
        valid_from=valid_from,
        valid_until=until,
        lifetime=None if length is None else _CALLS[unit].format(length),
        lifetime_column=length,
        seconds_per_unit=_SECONDS[unit],
        other_times=tuple(name for name in times if name not in used),
    )


def _until(sample: pa.Table, times: list[str]) -> str | None:
    """The time that comes after all others, in nearly all rows, and not only by an instant."""
    after = [
        name
        for name in times
        if all(_share(sample, other, name) >= MOSTLY for other in times if other != name)
        and any(_share(sample, name, other) < 0.5 for other in times if other != name)
    ]
    named = [name for name in times if _UNTIL.search(name) and not _FROM.search(name)]
    both = [name for name in after if name in named]
    # By its name alone only if it comes after some other time at least.
    late = [
        name for name in named if any(_share(sample, name, o) < 0.5 for o in times if o != name)
    ]
    return next(iter([*both, *late, *after]), None)


def _arrival(name: str) -> int:
    hits = 2 if _ARRIVED.search(name) else 0
    return hits - bool(_FROM.search(name)) - bool(_UNTIL.search(name))


def _begins(sample: pa.Table, arrived: str, until: str | None, rest: list[str]) -> str:
    """The time from which a row counts; that of its arrival where no other one is as likely."""
    fits = [
        name
        for name in rest
        if name != arrived
        and _FROM.search(name)
        and (until is None or _share(sample, name, until) >= MOSTLY)
    ]
    return fits[0] if fits else arrived


def _share(sample: pa.Table, first: str, second: str) -> float:
    """The share of rows, among those with both times, in which the first is not the later one."""
    in_order = pc.less_equal(sample[first], sample[second])
    return float(pc.mean(pc.cast(in_order, pa.float64())).as_py() or 0.0)


def _keys(seen: Look) -> list[str]:
    """Columns that could be looked up, the likeliest first."""
    scores = {}
    for place, field in enumerate(seen.sample.schema):
        kind = field.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        column = seen.sample[field.name]
        if not (is_text or pa.types.is_integer(kind)) or column.null_count > len(column) / 10:
            continue
        different = pc.count_distinct(column).as_py()
        named = 2.0 * bool(_KEY.search(field.name)) - 2.0 * bool(
            _VALUE.search(field.name) or _LENGTH.search(field.name)
        )
        spread = min(1.0, different / 1000) if different > 1 else -1.0
        scores[field.name] = named + spread + 0.5 * is_text - 0.1 * place
    return sorted(scores, key=lambda name: -scores[name])


def _length(seen: Look) -> tuple[str | None, str]:
    """A column that says how long a row lives, and its unit, if its name tells both."""
    for field in seen.sample.schema:
        if pa.types.is_integer(field.type) and _LENGTH.search(field.name):
            for unit, pattern in _UNITS.items():
                if re.search(pattern, field.name, re.IGNORECASE):
                    return field.name, unit
    return None, "s"
