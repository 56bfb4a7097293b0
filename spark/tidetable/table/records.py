"""Records of Python as a table of Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.json as pj


def as_table(records: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """A row for each. By way of JSON: to make an array of Python values pyarrow imports pandas, a
    second or two."""
    lines = "".join(json.dumps(one) + "\n" for one in records).encode()
    if not lines:
        return pa.Table.from_batches([], schema)  # empty_table() imports pandas too
    return pj.read_json(
        BytesIO(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
