"""Starting Spark, and what updates, replays and rebuilds have in common: commits, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidetable.cli.ending import is_interrupted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidetable.cli.output import Output
    from tidetable.config import Index
    from tidetable.table.report import UpdateReport
    from tidetable.table.state import State

LITTLE_BYTES = 256 * 1024 * 1024
"""At most this much is written by a JVM that is made to start soon. An estimate: at 20 MB a second
it is some ten seconds of work, which the simpler of Java's compilers may make two longer: about
what its start has saved."""


def start_spark(out: Output, *, brief: bool = False) -> SparkSession:
    """A session for this project; `brief` if there is little to do with it."""
    from tidetable.config import project_root
    from tidetable.engine.session import spark_session

    with out.busy("starting Spark"):
        return spark_session(project_root(), brief=brief)


def is_brief(state: State | None, commits: int) -> bool:
    """Whether so many updates cannot write much, as the table is small.

    What the source holds is not known before Spark has looked: of a first load nobody can say.
    """
    return state is not None and commits * state.log.files.bytes <= LITTLE_BYTES


def run(out: Output, index: Index, reports: Iterator[UpdateReport], commits: int) -> None:
    """Shows each commit when it is made, whatever becomes of those that follow."""
    try:
        with out.commits(index, commits) as show:
            for report in reports:
                show(report)
                for sentence in _to_be_known(index, report):
                    out.say(sentence)
    except BaseException as error:
        if is_interrupted(error):
            raise KeyboardInterrupt(_where_it_stopped(index)) from None
        raise


def time_of(index: Index, slot: int) -> str:
    """When this slot ends."""
    from tidetable.config import format_time

    return format_time(index.timeline.end_of(slot))


def _where_it_stopped(index: Index) -> str:
    """What an update that was interrupted leaves behind, from the log: nobody else knows it all."""
    from tidetable.table.state import IndexTable

    try:
        state = IndexTable(index).state(trusting=True)
    except Exception:  # no time for the whole story
        return ""
    if state is None:
        stands = f"{index.name} has no rows yet"
    else:
        stands = f"{index.name} stands at slot {state.slot}, as of {time_of(index, state.slot)}"
    return (
        f"Stopped. {stands}: what was committed stays, and nothing is half done. "
        f"To go on: tidetable update {index.argument}"
    )


def _to_be_known(index: Index, report: UpdateReport) -> Iterator[str]:
    """What a commit met that its figures do not show."""
    if report.folders and report.folders["missing"]:
        from tidetable.table.folders import folders_in_words

        yield (
            f"slot {report.slot}: of the folders that source.path names for it, "
            f"{folders_in_words(report.folders)}"
        )
    if report.late:
        yield f"slot {report.slot}: {report.late:,} rows arrived after their slot was done"
    if report.misplaced:
        from tidetable.output.answers import misplaced_rows

        yield f"slot {report.slot}: {misplaced_rows(report.misplaced)}"
    if report.missing:
        yield (
            f"slot {report.slot}: the source holds {report.missing:,} rows fewer for past slots "
            f"than were read then; if that is intended: tidetable replay {index.argument} --from "
            "J, J being the first of these slots"
        )
