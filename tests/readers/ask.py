"""Runs a reader's lines of docs/readers.md over tables, in the environment of the readers.

    python ask.py < {"code": ..., "tables": [...], "packages": [...], "text_is_bytes": false}

The last line that it prints is {"versions": ..., "answers": [{"rows": [...]} or {"says": ...}]},
an answer for each table.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from typing import Any

from values import IN_THE_PAGE, texts  # type: ignore[import-not-found]


def answer(code: str, table: str, text_is_bytes: bool) -> dict[str, Any]:
    names: dict[str, Any] = {}
    try:
        exec(code.replace(IN_THE_PAGE, table), names)
        return {"rows": texts(names["rows"], text_is_bytes=text_is_bytes)}
    except BaseException as error:  # Rust's panics are no Exception
        return {"says": f"{type(error).__name__}: {error}"}


def main() -> None:
    asked = json.load(sys.stdin)
    answers = [answer(asked["code"], table, asked["text_is_bytes"]) for table in asked["tables"]]
    versions = [f"{package} {version(package)}" for package in asked["packages"]]
    print("\n" + json.dumps({"versions": versions, "answers": answers}), flush=True)
    # Not by way of the interpreter's end: native threads of an engine can abort it there.
    os._exit(0)


if __name__ == "__main__":
    main()
