"""The JSON schema of an index file, for editors; made from the dataclasses."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from tidetable.config.index import Index
from tidetable.config.quantities import BadRowsMax, format_duration

SCHEMA_PATH = Path(__file__).with_name("index.schema.json")


class _Untitled(GenerateJsonSchema):
    """Without a title for each field, which would only repeat its name."""

    schema_dialect = "https://json-schema.org/draft/2020-12/schema"

    def field_title_should_be_set(self, schema: core_schema.CoreSchema | Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, timedelta):
            return format_duration(dft)
        return str(dft) if isinstance(dft, BadRowsMax) else super().encode_default(dft)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        # An optional field is left out, not written as null: editors should not offer that.
        if described.get("default", ...) is None:
            del described["default"]
        return described


def index_schema() -> dict[str, Any]:
    """The schema, made afresh."""
    schema = TypeAdapter(Index).json_schema(schema_generator=_Untitled)
    scheme = schema["properties"]["scheme"]
    described = {"description": scheme.pop("description")}
    schema["properties"]["scheme"] = {**described, "anyOf": [{"const": "auto"}, scheme]}
    return {"$schema": _Untitled.schema_dialect, **schema, "title": "Tidetable index"}


def schema_text() -> str:
    """What the shipped file must hold."""
    return json.dumps(index_schema(), indent=2, ensure_ascii=False) + "\n"
