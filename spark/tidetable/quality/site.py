"""Data Docs as this project wants them: readable, and with nothing fetched from elsewhere.

The pages of Great Expectations take styles, fonts and scripts from five other hosts and cannot be
read without them. Its site builder lets others make the pages: these are ours. Only this module
and what runs a suite import Great Expectations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from great_expectations import __version__ as gx_version
from great_expectations.render.renderer.site_builder import SiteBuilder
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tidetable.config import Index, parse_time
from tidetable.quality.outcome import advice
from tidetable.quality.report import observed_text

_PAGES = Path(__file__).parent / "pages"
COLUMNS_MAX = 64
"""A wider grid of cells is shown as a list."""


class ReportSite(SiteBuilder):
    """Builds the pages it is asked for, and neither copies assets nor reads old results again."""

    def build(self, resource_identifiers: Any = None, build_index: bool = True) -> tuple[Any, Any]:
        for section in self.site_section_builders.values():
            section.build(resource_identifiers=resource_identifiers)
        # The index is written once the history is known; see report.py.
        return self.get_resource_url(only_if_exists=False), {}


class ReportContent:
    """What the page of a validation says, from the result as it is stored."""

    def render(self, result: Any) -> dict[str, Any]:
        stored = result.to_json_dict()
        # Great Expectations stores them in an order of its own.
        results = sorted(
            stored["results"], key=lambda one: one["expectation_config"]["meta"]["place"]
        )
        checks = [_check(one) for one in results]
        first = json.loads(results[0]["expectation_config"]["meta"]["told"])
        run = stored["meta"]["run_id"]
        failed = [one for one in checks if one["status"] == "failed"]
        groups: dict[str, list[dict[str, Any]]] = {}
        for check in checks:
            groups.setdefault(check["group"], []).append(check)
        idle = {
            name: group[0]["found"]
            for name, group in groups.items()
            if {(one["status"], one["found"]) for one in group} == {("skipped", group[0]["found"])}
        }
        cells = first["cells"]
        return {
            "index": first["index"],
            "figures": first["figures"],
            "run": first["run"],
            "at": _moment(run["run_time"]),
            "as_of": _moment(first["figures"]["as_of"]),
            "failed": failed,
            "advice": advice(first["index"], first["figures"], {one["name"] for one in failed}),
            "warnings": [one for one in checks if one["status"] == "warning"],
            "skipped": [one for one in checks if one["status"] == "skipped"],
            "checked": len(checks),
            "groups": groups,
            "idle": idle,
            "cells": cells,
            "grid": _grid(cells, first["figures"]["cells"]),
            "gx_version": gx_version,
        }


class ReportPage:
    """The page itself."""

    def render(self, content: Mapping[str, Any], **_: Any) -> str:
        return _environment().get_template("report.html").render(content)


def index_page(index: Index, history: Sequence[Mapping[str, Any]]) -> str:
    """The list of the reports that are kept, the newest first."""
    return (
        _environment()
        .get_template("index.html")
        .render(index=index, history=list(reversed(history)), gx_version=gx_version)
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_PAGES),
        autoescape=True,  # a key, a name or a reason may hold anything
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: "–" if value is None else f"{value:,}"
    environment.filters["size"] = _size
    environment.filters["page"] = lambda path: path.removeprefix("site/")
    environment.filters["minute"] = lambda text: f"{_moment(text):%Y-%m-%d %H:%M} UTC"
    return environment


def _check(stored: Mapping[str, Any]) -> dict[str, Any]:
    config = stored["expectation_config"]
    meta = config["meta"]
    holds, skipped = stored["success"], meta["skipped"]
    status = "skipped" if skipped else "passed"
    found = skipped or meta["found"]
    if not holds:
        status = "warning" if config["severity"] == "warning" else "failed"
        found = observed_text(stored, meta["found"])
    arguments = {
        name: value for name, value in config["kwargs"].items() if name not in ("batch_id",)
    }
    return {
        "name": meta["name"],
        "group": meta["group"],
        "sentence": config["description"],
        "status": status,
        "found": found,
        "severity": config["severity"],
        "type": config["type"],
        "arguments": ", ".join(f"{name}={value!r}" for name, value in arguments.items()),
    }


def _grid(cells: Sequence[Mapping[str, Any]], number: int) -> dict[str, Any] | None:
    """The cells as a table of g by e, with shades; None if that would be no help."""
    plain = [cell for cell in cells if cell["g"] is not None and cell["e"] >= 0]
    if len(plain) < 2 or len(cells) < number:
        return None
    across = sorted({cell["e"] for cell in plain})
    down = sorted({cell["g"] for cell in plain})
    if len(across) > COLUMNS_MAX:
        return None
    most = max((cell["rows"] for cell in plain), default=0)
    by_place = {(cell["g"], cell["e"]): _shaded(cell, most) for cell in plain}
    return {
        "across": across,
        "down": [(g, [by_place.get((g, e)) for e in across]) for g in down],
        "others": [cell for cell in cells if cell not in plain],
    }


def _shaded(cell: Mapping[str, Any], most: int) -> dict[str, Any]:
    # Ten steps, so that the shades are classes and no style has to be computed.
    return {**cell, "shade": -(-10 * cell["rows"] // most) if most else 0}


def _moment(text: str) -> datetime:
    return parse_time(text)


def _size(number: int) -> str:
    amount = float(number)
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TB"
