"""Before there is a table: is the YAML right, and which scheme suits?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidetable.cli import running
from tidetable.cli.options import AsJson, IndexName, load
from tidetable.cli.output import Output, output
from tidetable.cli.root import app
from tidetable.core.errors import UserError

if TYPE_CHECKING:
    from tidetable.config import Index


class SchemeName(StrEnum):
    REBUILD = "rebuild"
    NO_REBUILD = "no_rebuild"
    SWEEP = "sweep"
    TIERS = "tiers"


class PlacementName(StrEnum):
    ROUND_ROBIN = "round_robin"
    CHRONOLOGICAL = "chronological"


# -- check ---------------------------------------------------------------------------------------


@app.command()
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
    return answer | {"ok": index.quality.bad_rows_max.allows(answer["quarantined"], answer["read"])}


# -- simulate ----------------------------------------------------------------------------------


@app.command()
def simulate(
    scheme: Annotated[SchemeName, typer.Option(help="Which scheme.")],
    period: Annotated[int, typer.Option(metavar="P", help="Slots in the window.", min=1)],
    insertion: Annotated[int | None, typer.Option(metavar="G", help="Parts by insertion.")] = None,
    expiration: Annotated[
        int | None, typer.Option(metavar="E", help="Parts by expiration.")
    ] = None,
    placement: Annotated[PlacementName, typer.Option()] = PlacementName.ROUND_ROBIN,
    groups: Annotated[
        int | None, typer.Option(metavar="E", help="Groups of Sweep or Tiers.")
    ] = None,
    every: Annotated[int, typer.Option(metavar="M", help="Sweep every M-th time.")] = 1,
    deletion_vectors: Annotated[
        bool, typer.Option("--deletion-vectors/--no-deletion-vectors", help="For Sweep.")
    ] = True,
    merge_log: Annotated[
        int, typer.Option(metavar="C", help="Merge Sweep's log every C updates; 0 is never.", min=0)
    ] = 0,
    fan_in: Annotated[
        int | None, typer.Option(metavar="T", help="Runs that Tiers merges at a time.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What a scheme would write and keep, in the model of the papers' Theorem 1.

    Constant rate, lifetimes uniform over 1..P slots: rows written per row inserted, files, and the
    share of stored rows that is dead.
    """
    from tidetable.core.placement import Placement
    from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers
    from tidetable.core.simulate import simulate as run
    from tidetable.output import show

    chosen: Scheme
    if scheme is SchemeName.SWEEP:
        if groups is None:
            raise UserError("sweep needs --groups E.")
        chosen = Sweep(period, groups, every, deletion_vectors, merge_log)
    elif scheme is SchemeName.TIERS:
        if groups is None or fan_in is None:
            raise UserError("tiers needs --groups E and --fan-in T.")
        chosen = Tiers(period, groups, fan_in)
    else:
        if insertion is None or expiration is None:
            raise UserError(f"{scheme.value} needs --insertion G and --expiration E.")
        kind = Rebuild if scheme is SchemeName.REBUILD else NoRebuild
        chosen = kind(period, insertion, expiration, Placement(placement.value))
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


@app.command()
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
