"""The proposal as YAML: what was seen is in comments, and so is what could not be told."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from tidetable.config import format_duration, format_time
from tidetable.init.proposal import Proposal, place_of

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", ".", ".."})


def as_yaml(found: Proposal, name: str, table: str, project: Path) -> str:
    """The whole file."""
    parts = [_head(found, name), _source(found, project), _columns(found), _times(found)]
    parts.append(f"table: {quoted(table)}\n")
    parts.append(_scheme(found))
    return "\n".join(parts)


def quoted(text: str) -> str:
    """Text as YAML has it: plain if nobody can take it for something else."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text)


def for_people(length: timedelta) -> str:
    """A duration in its largest unit."""
    seconds = length.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _head(found: Proposal, name: str) -> str:
    seen = found.look
    looked = f"{seen.sample.num_rows:,} of about {seen.rows:,}"
    return (
        f"# Proposed by `tidetable init` from {looked} rows of the source.\n"
        f"# Read it, correct it, then: tidetable check {name}\n"
        f"name: {name}\n"
    )


def _source(found: Proposal, project: Path) -> str:
    seen, part = found.look, found.roles
    path = place_of(seen.path, project)
    lines = [
        "source:",
        *_path(found, path.rstrip("/")),
        f"  format: {seen.format}",
        f"  arrived_at: {quoted(part.arrived_at)}   # when a row came in decides its slot",
    ]
    lines += [f"  # or: {name}" for name in _alternatives(found, part.arrived_at)]
    zoneless = [n for n in (part.arrived_at, part.valid_from, part.valid_until) if n]
    if found.look.zoneless.intersection(zoneless):
        lines += [
            "  # These times carry no zone, and nothing says which it is; an update asks for it.",
            "  # timezone: UTC",
        ]
    if seen.format == "csv":
        lines += ["  options:", "    header: true"]
    if seen.format in ("csv", "json"):
        lines.append(f"  schema: {quoted(ddl(seen.columns, found.look.times))}")
    lines.append("  # grace: 5m              # how long rows of a slot may still come in after it")
    return "\n".join(lines) + "\n"


def _path(found: Proposal, path: str) -> list[str]:
    pattern = found.look.folders_by_time(found.roles.arrived_at)
    if pattern is not None:
        return [
            "  # Each folder holds what arrived then, by UTC: an update reads only what it needs.",
            f"  path: {quoted(f'{path}/{pattern}')}",
        ]
    return [
        f"  path: {quoted(path)}",
        "  # If a folder holds a day or an hour, say so, and an update reads only what it needs:",
        f"  # path: {quoted(path + '/day={%Y-%m-%d}')}",
    ]


def _columns(found: Proposal) -> str:
    part = found.roles
    lines = [f"key: {quoted(part.key)}   # what probes look up; it need not be unique"]
    lines += [f"# key: {quoted(name)}" for name in part.other_keys]
    lines.append(f"valid_from: {quoted(part.valid_from)}   # a row lives from here ...")
    lines += [f"# valid_from: {quoted(n)}" for n in _alternatives(found, part.valid_from)]
    if part.valid_until is not None:
        lines.append(f"valid_until: {quoted(part.valid_until)}   # ... to here")
        lines += [f"# valid_until: {quoted(n)}" for n in part.other_times]
    elif part.lifetime is not None:
        lines.append(f"lifetime: {quoted(part.lifetime)}   # ... as long as this column says")
    else:
        lines += [
            "# No column says when a row dies. Correct this, or name a column:",
            f"lifetime: INTERVAL {found.longest_lifetime.days} DAYS",
            "# valid_until: COLUMN",
        ]
    return "\n".join(lines) + "\n"


def _alternatives(found: Proposal, chosen: str) -> list[str]:
    """The other times that could have been meant, but for the one that ends a row's life."""
    part = found.roles
    names = (part.arrived_at, part.valid_from, *part.other_times)
    return [name for name in dict.fromkeys(names) if name != chosen]


def _times(found: Proposal) -> str:
    lines = []
    period = -(-found.longest_lifetime // found.update_every)
    lines.append(f"update_every: {format_duration(found.update_every)}")
    if found.longest_seen is None:
        lines.append("# Nothing in the source says it:")
    elif found.has_outliers:
        lines += [
            f"# The longest lifetime that was seen is {for_people(found.longest_seen)}, far more",
            "# than nearly all rows have. Rows that live longer than this go to quarantine.",
        ]
    else:
        lines.append(f"# The longest lifetime that was seen is {for_people(found.longest_seen)}.")
    lines.append(
        f"longest_lifetime: {format_duration(found.longest_lifetime)}   # {period} updates"
    )
    if found.dead_on_arrival:
        share = found.dead_on_arrival / found.look.sample.num_rows
        lines.append(f"# {share:.1%} of the rows had expired when they arrived: they are left out.")
    lines.append("")
    if found.end is None:
        lines += [
            "# The newest rows came in then. The first update loads what is alive at that time;",
            "# an earlier start replays more of the past, one commit for each slot.",
        ]
    else:
        lines += [
            f"# The newest row came in at {format_time(found.newest)}: the source seems to have",
            "# stopped. So these are its last updates; without an end they go on until today.",
        ]
    lines.append(f"start: {format_time(found.start)}")
    if found.end is not None:
        lines.append(f"end: {format_time(found.end)}")
    return "\n".join(lines) + "\n"


def _scheme(found: Proposal) -> str:
    if found.advice is None:
        return "# Nothing to choose by yet; auto chooses when the table is made.\nscheme: auto\n"
    best, *others = found.advice.best
    lines = ["# The advisor's choice for these lifetimes, at 10 probes and a scan per update:"]
    lines += [f"#   {line}" for line in _wrapped(found.advice.why)]
    lines.append(f"scheme: {_flow(best.scheme)}")
    lines += [f"# scheme: {_flow(one.scheme)}   # {one.label}" for one in others[:2]]
    lines.append(
        "# scheme: auto             # chosen again, on your machine, when the table is made"
    )
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, 90)


def _flow(scheme: dict[str, object]) -> str:
    return (
        "{"
        + ", ".join(f"{name}: {json.dumps(v).strip(chr(34))}" for name, v in scheme.items())
        + "}"
    )


# -- the columns of text files ---------------------------------------------------------------------


def ddl(columns: pa.Schema, times: list[str]) -> str:
    """The columns as Spark writes them; times stay text, which the index reads with their zone."""
    return ", ".join(
        f"{_name(field.name)} {'string' if field.name in times else spark_type(field.type)}"
        for field in columns
    )


def spark_type(kind: pa.DataType) -> str:
    """The type in Spark's words; text for what it has no word for."""
    types = pa.types
    if types.is_struct(kind):
        return f"struct<{', '.join(f'{_name(f.name)}: {spark_type(f.type)}' for f in kind)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "bigint"
    if types.is_floating(kind):
        return "double"
    if types.is_date(kind):
        return "date"
    return "string"


def _name(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return name if plain else f"`{name.replace('`', '``')}`"
