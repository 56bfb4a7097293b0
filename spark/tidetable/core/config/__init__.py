"""What a user says about an index: read from YAML, checked, with every mistake named by line."""

from tidetable.core.config.index import Engine, Index, OnFailure, Quality, Volume
from tidetable.core.config.loading import find_index, index_files, load_index
from tidetable.core.config.mistakes import ConfigError, Mistake
from tidetable.core.config.quantities import (
    BadRowsMax,
    format_duration,
    format_size,
    format_time,
    parse_bad_rows_max,
    parse_duration,
    parse_size,
    parse_time,
)
from tidetable.core.config.schema import SCHEMA_PATH, index_schema
from tidetable.core.config.scheme import (
    AutoConfig,
    NoRebuildConfig,
    RebuildConfig,
    SchemeConfig,
    SweepConfig,
    TiersConfig,
)
from tidetable.core.config.source import Late, Source

__all__ = [
    "SCHEMA_PATH",
    "AutoConfig",
    "BadRowsMax",
    "ConfigError",
    "Engine",
    "Index",
    "Late",
    "Mistake",
    "NoRebuildConfig",
    "OnFailure",
    "Quality",
    "RebuildConfig",
    "SchemeConfig",
    "Source",
    "SweepConfig",
    "TiersConfig",
    "Volume",
    "find_index",
    "format_duration",
    "format_size",
    "format_time",
    "index_files",
    "index_schema",
    "load_index",
    "parse_bad_rows_max",
    "parse_duration",
    "parse_size",
    "parse_time",
]
