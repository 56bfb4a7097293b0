"""Runs the suite over the figures of an index, and keeps the reports.

    REPORTS/NAME/latest.json        what the last validation found
    REPORTS/NAME/history.json       the same for all validations that are kept, the oldest first
    REPORTS/NAME/validations/       results as Great Expectations stores them
    REPORTS/NAME/site/              Data Docs: index.html, and a page for each validation

An index has a folder and a Great Expectations context of its own, so that validations of different
indexes never meet; a lock file makes two of the same index wait for each other. A validation adds
one page and takes away the oldest, whatever the history: its cost stays flat.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidetable.config import Index, format_time
from tidetable.core.errors import TransientError
from tidetable.quality.gx_import import great_expectations
from tidetable.quality.outcome import Finding, Outcome, Skipped

if TYPE_CHECKING:
    from tidetable.quality.figures import Figures
    from tidetable.quality.suite import Check

HOME_VARIABLE = "TIDETABLE_REPORTS"
WAIT_MAX_S = 120.0
"""So long a validation waits for another one of the same index."""

VALUES_SHOWN_MAX = 3
CELLS_SHOWN_MAX = 1024
"""The page of a larger layout shows its largest cells only."""

LATEST, HISTORY, LOCK = "latest.json", "history.json", ".lock"
RESULTS, SITE = "validations", "site"

_IN_THIS_PROCESS = threading.Lock()
"""Great Expectations has one current context in a process."""


def reports_home(project_root: Path) -> Path:
    """Where the reports of all indexes are."""
    return Path(os.environ.get(HOME_VARIABLE) or project_root / ".tidetable" / "_reports")


def latest(reports: Path, name: str) -> dict[str, Any] | None:
    """What the last validation of an index found; None if there was none.

    `index`, `slot`, `as_of`, `version` (of the table, the newest that has changed rows), `at`,
    `run`, `success`, `checked`, `failed` and `warnings` (each with `name`, `sentence`, `observed`),
    `skipped` (each with `name`, `why`), `report` (relative to REPORTS/NAME) and `figures`.
    """
    try:
        found: dict[str, Any] = json.loads((reports / name / LATEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found


def validate(
    index: Index,
    *,
    due_slot: int | None,
    reports: Path,
    run_name: str | None = None,
    at: datetime | None = None,
    against_source: Mapping[str, Any] | None = None,
) -> Outcome:
    """Checks the index as it stands, writes the report and says what was found.

    `due_slot` is the slot at which it should stand; None if that is not to be checked. A table that
    is wrong is no error here, but an outcome; see `Outcome.require`. `run_name` is a name for the
    report, `at` its time, now if not given. `against_source` is what a comparison has just found.
    """
    from tidetable.quality.mend import judged_figures
    from tidetable.quality.suite import checks

    folder = reports / index.name
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder, index.name), _IN_THIS_PROCESS:
        # Inside the lock: of two at once the later one must not report the earlier state.
        figures = judged_figures(index, due_slot, against_source)
        of = checks(figures)
        at = datetime.now(UTC) if at is None else at
        run = run_name or f"slot_{figures.slot}"
        result, page = _run(folder, index.name, figures, of, run, at)
        failed, warnings = _findings(result, of)
        outcome = Outcome(
            index=index.name,
            slot=figures.slot,
            success=not failed,
            failed=failed,
            warnings=warnings,
            checked=len(of),
            report=page,
            skipped=[Skipped(one.name, one.skipped) for one in of if one.skipped],
            figures=figures.summary(),
        )
        summary = _summary(outcome, figures, folder, run_name, at)
        before = [one for one in _history(folder) if one["report"] != summary["report"]]
        history = [*before, summary][-index.quality.keep_reports :]
        _prune(folder, history)
        _write_index(folder, index, history)
        _write(folder / HISTORY, json.dumps(history))
        _write(folder / LATEST, json.dumps(summary, indent=1))
    return outcome


# -- Great Expectations ----------------------------------------------------------------------------


def _run(
    folder: Path, name: str, figures: Figures, of: list[Check], run: str, at: datetime
) -> tuple[Any, Path]:
    """The result of the suite, and the page that Data Docs has made of it."""
    gx = great_expectations()
    from great_expectations.core.run_identifier import RunIdentifier

    from tidetable.quality.suite import build_suite

    context = _context(folder)
    batch = (
        context.data_sources.add_pandas("tidetable")
        .add_dataframe_asset("cells")
        .add_batch_definition_whole_dataframe("now")
    )
    told = {
        "index": name,
        "run": run,
        "figures": figures.summary(),
        "cells": _cells_shown(figures),
    }
    # As text: Great Expectations copies what goes with an expectation some hundred times.
    suite = context.suites.add(build_suite(name, of, json.dumps(told)))
    definition = context.validation_definitions.add(
        gx.ValidationDefinition(name=name, data=batch, suite=suite)
    )
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(
            name=name,
            validation_definitions=[definition],
            actions=[gx.checkpoint.UpdateDataDocsAction(name="data_docs")],
            # With the cells in which something is wrong, each by its name.
            result_format={"result_format": "COMPLETE", "unexpected_index_column_names": ["cell"]},
        )
    )
    done = checkpoint.run(
        batch_parameters={"dataframe": figures.frame()},
        run_id=RunIdentifier(run_name=_file_name(run), run_time=at),
    )
    ((key, result),) = done.run_results.items()
    if len(result.results) != len(of):
        raise AssertionError(f"{len(result.results)} of {len(of)} expectations were looked at")
    page = folder.joinpath(SITE, "validations", *key.to_tuple()).with_suffix(".html")
    if not page.is_file():
        # Great Expectations only logs what goes wrong when a page is made.
        raise AssertionError(f"Great Expectations has made no page {page}; its log says why")
    return result, page


def _context(folder: Path) -> Any:
    """A context whose results and Data Docs are in the folder; all else is made anew each time."""
    gx = great_expectations()
    from great_expectations.data_context.types.base import DataContextConfig, ProgressBarsConfig

    def files(name: str) -> dict[str, Any]:
        return {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str((folder / name).resolve()),
            "suppress_store_backend_id": True,
        }

    def store(kind: str, backend: dict[str, Any] | None = None) -> dict[str, Any]:
        return {
            "class_name": kind,
            "store_backend": backend or {"class_name": "InMemoryStoreBackend"},
        }

    ours = "tidetable.quality.site"
    config = DataContextConfig(
        config_version=4.0,
        fluent_datasources={},
        stores={
            "suites": store("ExpectationsStore"),
            "checkpoints": store("CheckpointStore"),
            "validation_definition_store": store("ValidationDefinitionStore"),
            "results": store("ValidationResultsStore", files(RESULTS)),
        },
        expectations_store_name="suites",
        checkpoint_store_name="checkpoints",
        validation_results_store_name="results",
        data_docs_sites={
            SITE: {
                "module_name": ours,
                "class_name": "ReportSite",
                "store_backend": files(SITE),
                "site_section_builders": {
                    "validations": {
                        "renderer": {"module_name": ours, "class_name": "ReportContent"},
                        "view": {"module_name": ours, "class_name": "ReportPage"},
                        # By default runs whose name has "profiling" in it are left out.
                        "run_name_filter": {"not_includes": "/"},
                    },
                    "expectations": "None",
                    "profiling": "None",
                },
            }
        },
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _cells_shown(figures: Figures) -> list[dict[str, Any]]:
    cells = figures.cells
    if len(cells) > CELLS_SHOWN_MAX:
        cells = sorted(cells, key=lambda cell: -cell.rows)[:CELLS_SHOWN_MAX]
    names = ("cell", "g", "e", "rows", "files", "bytes", "first_insertion", "last_insertion",
             "first_expiration", "last_expiration")  # fmt: skip
    return [{name: getattr(cell, name) for name in names} for cell in cells]


# -- what it found ---------------------------------------------------------------------------------


def _findings(result: Any, of: list[Check]) -> tuple[list[Finding], list[Finding]]:
    """What does not hold: critical, and worth a warning."""
    # Great Expectations returns them in an order of its own.
    results = {one.expectation_config.meta["name"]: one for one in result.results}
    found: dict[str, list[Finding]] = {"critical": [], "warning": []}
    for check in of:
        one = results[check.name]
        if one.success:
            continue
        observed = observed_text(one.to_json_dict(), check.found)
        sentence = f"{check.sentence}. Found: {observed}."
        found[check.severity].append(Finding(check.name, sentence, observed))
    return found["critical"], found["warning"]


def observed_text(result: Mapping[str, Any], found: str) -> str:
    """What Great Expectations found where an expectation does not hold, in words."""
    raised = result.get("exception_info") or {}
    raised = raised if "raised_exception" in raised else next(iter(raised.values()), {})
    if raised.get("raised_exception"):
        return f"it could not be looked at ({raised.get('exception_message')})"
    told = result.get("result") or {}
    where = [
        f"{name} {_plain(value)} in {place['cell']}"
        for place in told.get("unexpected_index_list") or []
        for name, value in place.items()
        if name in _OF_CELLS
    ]
    if not where:
        return found
    more = len(where) - VALUES_SHOWN_MAX
    shown = ", ".join(where[:VALUES_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
    return f"{found} ({shown})"


_OF_CELLS = frozenset(
    {
        "no_statistics", "first_expiration", "last_expiration", "first_insertion",
        "last_insertion", "misplaced", "mistimed", "no_key", "no_time", "no_slot", "files",
    }
)  # fmt: skip
"""Columns whose values differ from cell to cell; the others say the same of all of them."""


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _summary(
    outcome: Outcome,
    figures: Figures,
    folder: Path,
    run_name: str | None,
    at: datetime,
) -> dict[str, Any]:
    def told(found: Sequence[Finding | Skipped]) -> list[dict[str, str]]:
        return [vars(one).copy() for one in found]

    return {
        "index": outcome.index,
        "slot": outcome.slot,
        "as_of": format_time(figures.as_of),
        "version": figures.version,
        "at": format_time(at),
        "run": run_name,
        "success": outcome.success,
        "checked": outcome.checked,
        "failed": told(outcome.failed),
        "warnings": told(outcome.warnings),
        "skipped": told(outcome.skipped),
        "report": outcome.report.relative_to(folder).as_posix(),
        "figures": outcome.figures,
    }


# -- files -----------------------------------------------------------------------------------------


@contextmanager
def _alone(folder: Path, name: str) -> Iterator[None]:
    """Until this is left no other process validates the same index."""
    give_up = time.monotonic() + WAIT_MAX_S
    with (folder / LOCK).open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise TransientError(
                        f"Another validation of {name!r} has been running for {WAIT_MAX_S:.0f} s "
                        f"({folder / LOCK} is locked). Run it again when it is done."
                    ) from None
                time.sleep(0.1)
                continue
            yield
            return


def _history(folder: Path) -> list[dict[str, Any]]:
    """Summaries of the validations that are kept, the oldest first."""
    try:
        found = json.loads((folder / HISTORY).read_text())
        return [one for one in found if (folder / one["report"]).is_file()]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError):
        logging.getLogger(__name__).warning(
            "%s cannot be read; the history of the reports starts anew", folder / HISTORY
        )
        return []


def _prune(folder: Path, history: list[dict[str, Any]]) -> None:
    """Removes the pages and results of validations that are not in the history."""
    pages = Path(SITE, "validations")
    kept = {Path(one["report"]).relative_to(pages).with_suffix("") for one in history}
    for base in (folder / pages, folder / RESULTS):
        for old in [path for path in base.rglob("*") if path.is_file()]:
            if old.relative_to(base).with_suffix("") in kept:
                continue
            old.unlink()
            # The folder of the run's time, and that of its name if it was the only one.
            for place in list(old.parents)[:2]:
                try:
                    place.rmdir()
                except OSError:
                    break


def _write_index(folder: Path, index: Index, history: list[dict[str, Any]]) -> None:
    from tidetable.quality.site import index_page

    _write(folder / SITE / "index.html", index_page(index, history))


def _write(path: Path, text: str) -> None:
    """All of it or nothing: a reader never sees half a file."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=".", suffix=".tmp", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    os.chmod(file.name, 0o644)  # noqa: PTH101
    os.replace(file.name, path)  # noqa: PTH105


def _file_name(run: str) -> str:
    """The name of a run as it can stand in a path, whatever a scheduler calls it."""
    return re.sub(r"[^A-Za-z0-9_=-]+", "_", run)[:100].strip("_") or "run"
