"""`python -m tidetable.config` writes index.schema.json anew."""

from __future__ import annotations

from tidetable.config.schema import SCHEMA_PATH, schema_text

if __name__ == "__main__":
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")
    print(f"wrote {SCHEMA_PATH.name}")
