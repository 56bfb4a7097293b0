"""To begin with: a YAML for a source of yours, or a project for Airflow."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidetable.cli.commands import Panel, command
from tidetable.cli.options import AsJson
from tidetable.cli.output import Output, output
from tidetable.core.errors import UserError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidetable.init import Proposal

_BAR = 40


@command(Panel.PLANNING, "tidetable init who_flies --source include/data/flights --dry-run")
def init(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="What the new index is called.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Its rows: Parquet, CSV or JSON files, or a Delta table."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Where its table goes; .tidetable/NAME if not given."),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Make an Airflow project there instead."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the YAML, and write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Propose the YAML of a new index from what its source holds, or make a project. No JVM."""
    out = output(as_json)
    if project is not None:
        if name is not None or source is not None or table is not None or dry_run:
            raise UserError("--project makes a project and takes nothing else.")
        _make_project(out, project)
    elif name is None or source is None:
        raise UserError("Give the NAME of the index and --source PATH, or --project DIR.")
    else:
        _propose(out, name, source, table, dry_run=dry_run, as_json=as_json)


def _make_project(out: Output, folder: Path) -> None:
    from rich.text import Text

    from tidetable.init import new_project

    made = [str(file) for file in new_project(folder)]
    lines = [*made, "", f"Go on with: cd {folder} && tidetable update example"]
    out.answer({"project": str(folder), "files": made}, lambda: Text("\n".join(lines)))


def _propose(
    out: Output, name: str, source: str, table: str | None, *, dry_run: bool, as_json: bool
) -> None:
    from tidetable.config import load_index, project_root
    from tidetable.init import as_yaml, look, propose

    root = project_root()
    file = _new_file(root, name)
    with out.busy("looking at the source"):
        found = propose(look(source))
    text = as_yaml(found, name, table or f".tidetable/{name}", root)
    data = {
        "index": name,
        "file": None if dry_run else str(file),
        "lifetimes": [[_seconds(up_to), rows] for up_to, rows in found.lifetimes],
        "yaml": text,
    }
    if dry_run:
        out.answer(data)
        if not as_json:
            typer.echo(text, nl=False)  # exactly: no terminal is too narrow for YAML
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x") as new:
        new.write(text)
    load_index(file, root)
    out.answer(data, lambda: _summary(found), notes=[f"Written: {file}", *_next(found, name)])


def _new_file(root: Path, name: str) -> Path:
    """The place of the YAML; UserError if the name is none, or taken."""
    import re

    from tidetable.config import index_files
    from tidetable.config.index import NAME_PATTERN
    from tidetable.config.loading import INDEXES

    if not re.fullmatch(NAME_PATTERN, name):
        raise UserError(
            f"{name!r} is not a name; write 1 to 63 small letters, digits and _, a letter first."
        )
    if taken := [file for file in index_files(root) if file.stem == name]:
        raise UserError(
            f"{taken[0]} is there already, and is not overwritten. Give another name, or --dry-run "
            "to see what would be proposed."
        )
    return root / INDEXES / f"{name}.yaml"


def _summary(found: Proposal) -> RenderableType:
    """How long rows live, as bars, and what each column was taken for."""
    from rich.text import Text

    from tidetable.init.written import for_people

    part = found.roles
    ends = part.valid_until or part.lifetime or "unknown: say it in the YAML"
    lines = [
        f"{found.look.format}, about {found.look.rows:,} rows; key {part.key}, "
        f"arrived at {part.arrived_at}, lives from {part.valid_from} to {ends}.",
    ]
    if found.lifetimes:
        lines.append("Rows by how long they live after they arrive, up to:")
        most = max(rows for _, rows in found.lifetimes)
        for up_to, rows in found.lifetimes:
            label = "longer" if up_to == timedelta.max else for_people(up_to)
            lines.append(f"{label:>10} {rows:>8,} {'█' * round(_BAR * rows / most)}")
    if found.advice is not None:
        lines.append(f"Scheme: {found.advice.best[0].label}.")
    return Text("\n".join(lines))


def _next(found: Proposal, name: str) -> list[str]:
    part = found.roles
    told = []
    if found.look.zoneless & {part.arrived_at, part.valid_from, part.valid_until or ""}:
        told.append("The times carry no zone: say which it is in source.timezone.")
    if part.valid_until is None and part.lifetime is None:
        told.append("No column says when a row dies: correct lifetime, or name valid_until.")
    return [*told, f"Read it, correct it, then: tidetable check {name}"]


def _seconds(length: timedelta) -> float | None:
    return None if length == timedelta.max else length.total_seconds()
