"""Before there is a table: is the YAML right, and which scheme suits?"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidetable.cli import running
from tidetable.cli.commands import Panel, command
from tidetable.cli.options import AsJson, IndexName, load
from tidetable.cli.output import Output, output
from tidetable.core.errors import UserError

if TYPE_CHECKING:
    from tidetable.config import Index

# -- check ---------------------------------------------------------------------------------------


@command(Panel.PLANNING, "tidetable check flights_sweep --yaml-only")
def check(
    index: IndexName,
    yaml_only: Annotated[
        bool, typer.Option("--yaml-only", help="Only the YAML; do not look at source and table.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Is the index in order? YAML, table and the rows waiting in the source. Changes nothing."""
    from tidetable.output import answers

    out = output(as_json)
    described = load(index)
    if not yaml_only:
        from tidetable.table.state import resolved

        described = resolved(described)
    answer: dict[str, Any] = {"index": described.name, "scheme": described.scheme_label, "ok": True}
    warnings: list[str] = []
    if not yaml_only:
        answer |= _preview(out, described)
        warnings = [f"warning: {warning}" for warning in answer["warnings"]]
    out.answer(answer, lambda: answers.checked(described, answer), notes=warnings)
    if not answer["ok"]:
        raise UserError(
            f"{answer['quarantined']} of {answer['read']} rows are bad; quality.bad_rows_max "
            f"allows {described.quality.bad_rows_max}: the update would fail. Correct the source, "
            "or raise the limit if such rows are to be expected."
        )


def _preview(out: Output, index: Index) -> dict[str, Any]:
    from tidetable.engine.updater import Updater
    from tidetable.quality.volume import of_preview
    from tidetable.table.state import IndexTable

    IndexTable(index).state()  # a table that is not ours need not wait for Spark
    spark = running.start_spark(out)
    with out.busy("reading the source"):
        ended = index.timeline.ended_by(datetime.now(UTC) - index.source.grace)
        answer = Updater(spark, index).preview(ended)
    answer |= of_preview(index, answer, ended)
    if why := answer.pop("columns_unasked"):
        answer["warnings"].append(
            f"Not every file is asked for its columns ({why}). Spark looks at one file; a column "
            "that another one lacks becomes NULL, and one that only another one has is left out."
        )
    return answer | {"ok": index.quality.bad_rows_max.allows(answer["quarantined"], answer["read"])}


# -- simulate ----------------------------------------------------------------------------------


def _as_before(metavar: str) -> Any:
    """An option of the time when the settings of a scheme were options; not shown any more."""
    return typer.Option(metavar=metavar, hidden=True)


@command(Panel.PLANNING, "tidetable simulate --scheme '{name: sweep, groups: 8}' --period 36")
def simulate(
    scheme: Annotated[
        str, typer.Option(metavar="SCHEME", help="As in the YAML: '{name: sweep, groups: 8}'.")
    ],
    period: Annotated[int, typer.Option(metavar="P", help="Slots in the window.", min=1)],
    insertion: Annotated[int | None, _as_before("G")] = None,
    expiration: Annotated[int | None, _as_before("E")] = None,
    placement: Annotated[str | None, _as_before("PLACEMENT")] = None,
    groups: Annotated[int | None, _as_before("E")] = None,
    every: Annotated[int | None, _as_before("M")] = None,
    deletion_vectors: Annotated[
        bool | None, typer.Option("--deletion-vectors/--no-deletion-vectors", hidden=True)
    ] = None,
    merge_log: Annotated[int | None, _as_before("C")] = None,
    fan_in: Annotated[int | None, _as_before("T")] = None,
    as_json: AsJson = False,
) -> None:
    """What a scheme would write and keep, in the model of the papers' Theorem 1.

    Constant rate, lifetimes uniform over 1..P slots: rows written per row inserted, files, and the
    share of stored rows that is dead.
    """
    from tidetable.config import load_scheme
    from tidetable.core.simulate import simulate as run
    from tidetable.output import show

    if scheme.isidentifier():
        if scheme == "sweep" and deletion_vectors is None:
            deletion_vectors = True  # as it was when this was an option
        options = {
            "insertion": insertion, "expiration": expiration, "placement": placement,
            "groups": groups, "every": every, "deletion_vectors": deletion_vectors,
            "merge_log": merge_log, "fan_in": fan_in,
        }  # fmt: skip
        given = {name: value for name, value in options.items() if value is not None}
        scheme = json.dumps({"name": scheme, **given})
    chosen = load_scheme(scheme, period, "--scheme").build(period)
    found = run(chosen)
    data = {
        "scheme": chosen.label,
        "period": period,
        "written_avg": round(found.written_avg, 4),
        "written_max": round(found.written_max, 4),
        "files_avg": round(found.files_avg, 4),
        "files_max": found.files_max,
        "dead_avg": round(found.dead_avg, 4),
    }
    label = f"{chosen.label}, p = {period}"
    output(as_json).answer(data, lambda: show.simulation_table(label, found))


# -- advise --------------------------------------------------------------------------------------


@command(Panel.PLANNING, "tidetable advise flights_sweep --probes-per-update 20")
def advise(
    index: IndexName,
    probes_per_update: Annotated[
        float | None, typer.Option(metavar="N", help="Keys looked up between two updates.", min=0)
    ] = None,
    scans_per_update: Annotated[
        float | None, typer.Option(metavar="N", help="Scans between two updates.", min=0)
    ] = None,
    update_seconds_max: Annotated[
        float | None, typer.Option(metavar="S", help="No update may take longer.", min=0)
    ] = None,
    files_max: Annotated[
        int | None, typer.Option(metavar="N", help="No more files in the table.", min=1)
    ] = None,
    purge_within: Annotated[
        str | None,
        typer.Option(metavar="D", help="Bytes of expired rows are gone so soon, such as 36h."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What things cost, from this file, whatever machine."),
    ] = None,
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Measure this machine anew.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Which scheme and settings suit this source, on this machine? Changes nothing."""
    from tidetable.advisor import advise as search
    from tidetable.output import show

    out = output(as_json)
    described = load(index)
    limit = _duration(purge_within, "--purge-within")
    if calibration is not None and not recalibrate and not calibration.is_file():
        raise UserError(
            f"--calibration: there is no file {calibration}. Leave the option out, or make the "
            "file with --recalibrate."
        )
    spark = running.start_spark(out)
    from tidetable.advisor.calibrate import calibrated
    from tidetable.advisor.choose import require, wishes_of
    from tidetable.advisor.histogram import read_workload

    asked = {
        "probes_per_update": probes_per_update,
        "scans_per_update": scans_per_update,
        "update_seconds_max": update_seconds_max,
        "files_max": files_max,
        "purge_within": limit,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    wishes = replace(wishes_of(described), **given)  # type: ignore[arg-type]
    with out.busy("reading the source"):
        workload = read_workload(spark, described)
    prices = calibrated(spark, described, out.say, path=calibration, anew=recalibrate)
    with out.busy("simulating"):
        advice = search(workload, prices, wishes)
    out.rows(advice.as_json(), lambda _: show.advice(advice))
    require(advice)


def _duration(text: str | None, option: str) -> timedelta | None:
    from tidetable.config import parse_duration

    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None
