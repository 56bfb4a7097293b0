"""What a user says about an index: read from YAML, checked, with every mistake named by line."""

from tidetable.config.index import Engine, Index, OnFailure, Quality, Volume
from tidetable.config.loading import find_index, index_files, load_index, load_scheme
from tidetable.config.mistakes import ConfigError, Mistake
from tidetable.config.project import project_root, repository
from tidetable.config.quantities import (
    BadRowsMax,
    format_duration,
    format_size,
    format_time,
    parse_bad_rows_max,
    parse_duration,
    parse_size,
    parse_time,
)
from tidetable.config.schema import SCHEMA_PATH, index_schema
from tidetable.config.scheme import AutoConfig, SchemeConfig
from tidetable.config.source import Late, Source

__all__ = [
    "SCHEMA_PATH",
    "AutoConfig",
    "BadRowsMax",
    "ConfigError",
    "Engine",
    "Index",
    "Late",
    "Mistake",
    "OnFailure",
    "Quality",
    "SchemeConfig",
    "Source",
    "Volume",
    "find_index",
    "format_duration",
    "format_size",
    "format_time",
    "index_files",
    "index_schema",
    "load_index",
    "load_scheme",
    "parse_bad_rows_max",
    "parse_duration",
    "parse_size",
    "parse_time",
    "project_root",
    "repository",
]
