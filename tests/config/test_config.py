"""The index file: what it may say, and that every mistake in it is named with its line."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

from tidetable.config import (
    SCHEMA_PATH,
    BadRowsMax,
    ConfigError,
    Index,
    Late,
    OnFailure,
    Quality,
    Source,
    find_index,
    format_duration,
    format_size,
    index_files,
    load_index,
    located,
    parse_bad_rows_max,
    parse_duration,
    parse_size,
    parse_time,
    path_pattern,
)
from tidetable.config.schema import schema_text
from tidetable.core.errors import UserError
from tidetable.core.placement import Placement
from tidetable.core.schemes import (
    NoRebuild,
    Rebuild,
    RebuildConfig,
    Sweep,
    SweepConfig,
    Tiers,
)
from tidetable.core.slot import Timeline

GOOD = """\
name: flights_in_air
source:
  path: include/data/flights
  arrived_at: reported_at
key: tail_number
inserted_at: departed_at
expires_at: landed_at
update_every: 30m
longest_lifetime: 12h
start: 2013-01-01T00:00:00Z
table: .tidetable/flights_in_air
scheme: {name: sweep, groups: 8}
"""

FULL = """\
name: flights_in_air
description: Which aircraft are in the air
source:
  path: data/{%Y-%m-%d}/{%H}
  format: csv
  arrived_at: departed_at
  timezone: America/New_York
  schema: "tail_number string, departed_at timestamp"
  options: {header: true, sep: ";", samplingRatio: 1.10, maxColumns: 007}
  grace: 5m
  late: quarantine
  recount_every: 0
key: tail_number
inserted_at: departed_at
lifetime: interval 90 minutes
update_every: 1800s
longest_lifetime: 1d
start: 2013-01-01T05:00:00+05:00
end: 2013-01-02T00:00:00Z
table: s3a://bucket/flights
scheme:
  name: rebuild
  insertion: 4
  expiration: 48
  placement: chronological
keep_versions_for: 2d
quality:
  imbalance_max: 2
  bad_rows_max: 100
  on_failure: warn
target_file_size: 1GB
"""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "include" / "indexes").mkdir(parents=True)
    return tmp_path


def load(project: Path, text: str) -> Index:
    file = project / "flights.yaml"
    file.write_text(text, encoding="utf-8")
    return load_index(file, project)


def mistakes_in(project: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(project, text)
    return str(caught.value).splitlines()


def good_without(*fields: str, and_with: str = "") -> str:
    """GOOD without these lines, and with others at its end."""
    kept = [line for line in GOOD.splitlines() if line.split(":")[0] not in fields]
    return "\n".join([*kept, and_with])


# What a file says


def test_a_short_index_gets_its_defaults(project: Path) -> None:
    expected = Index(
        name="flights_in_air",
        description=None,
        source=Source(
            path=str(project / "include/data/flights"),
            format="parquet",
            arrived_at="reported_at",
            timezone=None,
            schema=None,
            options={},
            grace=timedelta(0),
            late=Late.ACCEPT,
            recount_every=12,
        ),
        key="tail_number",
        inserted_at="departed_at",
        expires_at="landed_at",
        update_every=timedelta(minutes=30),
        longest_lifetime=timedelta(hours=12),
        start=datetime(2013, 1, 1, tzinfo=UTC),
        end=None,
        table=str(project / ".tidetable/flights_in_air"),
        scheme=SweepConfig(groups=8, every=1, deletion_vectors=False),
        keep_versions_for=timedelta(hours=24),
        quality=Quality(
            imbalance_max=1.5,
            bad_rows_max=BadRowsMax(percent=Decimal(5)),
            on_failure=OnFailure.FAIL,
        ),
        target_file_size=64 * 1024 * 1024,
    )

    assert expected == load(project, GOOD)


def test_a_full_index_keeps_everything_that_it_says(project: Path) -> None:
    index = load(project, FULL)

    assert index.description == "Which aircraft are in the air"
    assert index.source.path == str(project / "data/{%Y-%m-%d}/{%H}")
    assert index.source.options == {
        "header": "true",
        "sep": ";",
        "samplingRatio": "1.10",
        "maxColumns": "007",
    }
    assert index.source.late is Late.QUARANTINE
    assert index.source.grace == timedelta(minutes=5)
    assert index.source.timezone == "America/New_York"
    assert index.source.recount_every == 0
    assert (index.expires_at, index.lifetime) == (None, "interval 90 minutes")
    assert index.start == datetime(2013, 1, 1, tzinfo=UTC)
    assert index.start.tzinfo is UTC
    assert index.end == datetime(2013, 1, 2, tzinfo=UTC)
    assert index.table == "s3a://bucket/flights"
    assert index.scheme == RebuildConfig(
        insertion=4, expiration=48, placement=Placement.CHRONOLOGICAL
    )
    assert index.quality == Quality(
        imbalance_max=2.0, bad_rows_max=BadRowsMax(rows=100), on_failure=OnFailure.WARN
    )
    assert index.target_file_size == 1024**3


@pytest.mark.parametrize("text", [GOOD, FULL])
def test_an_index_written_out_and_read_again_is_the_same(project: Path, text: str) -> None:
    index = load(project, text)
    adapter = TypeAdapter(Index)

    written = json.dumps(adapter.dump_python(index, mode="json"))

    assert index == adapter.validate_python(json.loads(written))
    assert index == pickle.loads(pickle.dumps(index))


def test_format_and_options_have_one_spelling(project: Path) -> None:
    """Spark takes them in any case: ours and the user's must not stand side by side."""
    text = GOOD.replace("  path:", "  format: CSV\n  options: {HEADER: false}\n  path:")
    source = load(project, text).source
    assert (source.format, source.options) == ("csv", {"header": "false"})


def test_a_lifetime_stays_as_written_and_runs_as_checked(project: Path) -> None:
    """The fingerprint of a table that is there holds it as written."""
    index = load(project, GOOD.replace("expires_at: landed_at", "lifetime: interval 1  day -- so"))
    assert index.lifetime == "interval 1  day -- so"
    assert index.layout_fingerprint["lifetime"] == "interval 1  day -- so"
    assert index.lifetime_sql == "INTERVAL '1' DAY"


def test_an_index_derives_its_period_timeline_and_scheme(project: Path) -> None:
    index = load(project, GOOD)

    assert index.period == 24
    assert index.timeline == Timeline(datetime(2013, 1, 1, tzinfo=UTC), timedelta(minutes=30))
    assert index.build_scheme() == Sweep(24, 8)


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("{name: rebuild, insertion: 4, expiration: 3}", Rebuild(24, 4, 3)),
        (
            "{name: no_rebuild, insertion: 2, expiration: 24, placement: chronological}",
            NoRebuild(24, 2, 24, Placement.CHRONOLOGICAL),
        ),
        (
            "{name: sweep, groups: 24, every: 2, deletion_vectors: true}",
            Sweep(24, 24, 2, deletion_vectors=True),
        ),
        (
            "{name: sweep, groups: 4, every: 2, deletion_vectors: true, merge_log: 3}",
            Sweep(24, 4, 2, deletion_vectors=True, merge_log=3),
        ),
        ("{name: tiers, groups: 4, fan_in: 3}", Tiers(24, 4, 3)),
    ],
)
def test_each_scheme_is_built(project: Path, scheme: str, expected: object) -> None:
    index = load(project, good_without("scheme", and_with=f"scheme: {scheme}"))

    assert expected == index.build_scheme()


def test_a_period_is_rounded_up(project: Path) -> None:
    text = good_without("longest_lifetime", and_with="longest_lifetime: 721m")

    assert load(project, text).period == 25


def test_the_fingerprint_holds_what_cannot_change_as_json(project: Path) -> None:
    fingerprint = load(project, GOOD).layout_fingerprint

    assert fingerprint == {
        "arrived_at": "reported_at",
        "key": "tail_number",
        "inserted_at": "departed_at",
        "expires_at": "landed_at",
        "lifetime": None,
        "update_every": "30m",
        "longest_lifetime": "12h",
        "start": "2013-01-01T00:00:00Z",
        "scheme": {"name": "sweep", "groups": 8, "every": 1, "deletion_vectors": False},
    }
    assert fingerprint == json.loads(json.dumps(fingerprint))


def test_the_fingerprint_of_a_table_of_before_merge_log_is_the_same_without_it(
    project: Path,
) -> None:
    logged = "{name: sweep, groups: 4, every: 2, deletion_vectors: true, merge_log: %d}"
    for merge_log, expected in [(0, {}), (3, {"merge_log": 3})]:
        text = good_without("scheme", and_with=f"scheme: {logged % merge_log}")
        scheme = load(project, text).layout_fingerprint["scheme"]
        assert scheme == {
            "name": "sweep", "groups": 4, "every": 2, "deletion_vectors": True, **expected,
        }  # fmt: skip


def test_the_fingerprint_sees_what_is_meant_not_how_it_is_written(project: Path) -> None:
    same = (
        good_without("update_every", "start", "key")
        + "update_every: 1800s\nstart: 2013-01-01T01:00+01:00\nkey: 'tail_number'\n"
        + "target_file_size: 128MB\nkeep_versions_for: 1h\n"
    )
    other = good_without("key", and_with="key: flight")

    expected = load(project, GOOD).layout_fingerprint

    assert expected == load(project, same).layout_fingerprint
    assert expected != load(project, other).layout_fingerprint


# What is wrong in a file


@pytest.mark.parametrize(
    ("replaced", "by", "expected"),
    [
        # durations
        (
            "update_every: 30m",
            "update_every: 30x",
            "8: update_every: '30x' is not a duration; "
            "write a number and a unit, such as 30s, 15m, 2h, 1d",
        ),
        ("update_every: 30m", "update_every: 1:30", "8: update_every: '1:30' is not a duration"),
        ("update_every: 30m", "update_every: 30", "8: update_every: 30 is not a duration"),
        ("update_every: 30m", "update_every:", "8: update_every: an empty value is not a duration"),
        ("update_every: 30m", "update_every: [1h]", "8: update_every: a list is not a duration"),
        ("update_every: 30m", "update_every: 0m", "8: update_every: the duration is 0"),
        (
            "longest_lifetime: 12h",
            "longest_lifetime: 99999999999d",
            "9: longest_lifetime: '99999999999d' is too long; write at most 36500d",
        ),
        (
            "longest_lifetime: 12h",
            "longest_lifetime: 20834d\nkeep_versions_for: -1h",
            "10: keep_versions_for: '-1h' is not a duration",
        ),
        # times
        (
            "00:00:00Z",
            "00:00:00",
            "10: start: '2013-01-01T00:00:00' has no zone; "
            "add Z or an offset, such as 2013-01-01T00:00:00Z",
        ),
        ("2013-01-01T00:00:00Z", "2013-01-01", "10: start: '2013-01-01' has no zone; add Z"),
        ("2013-01-01T00:00:00Z", "soon", "10: start: 'soon' is not a time; write ISO 8601"),
        ("2013-01-01T00:00:00Z", "20130101", "10: start: 20130101 is not a time"),
        ("2013-01-01", "0001-01-01", "10: start: '0001-01-01T00:00:00Z' is out of range"),
        (
            "table:",
            "end: 2013-01-01T01:00:00+01:00\ntable:",
            "11: end: 2013-01-01T00:00:00Z is not after start, 2013-01-01T00:00:00Z",
        ),
        # names, columns, text
        ("flights_in_air\nsource", "Flights\nsource", "1: name: 'Flights' is not a name; write 1"),
        ("flights_in_air\nsource", "9\nsource", "1: name: 9 is not text; write text, in quotes"),
        ("key: tail_number", "key: ''", "5: key: empty text; write something"),
        ("key: tail_number", "key: [a, b]", "is a list; write the name of one column. If several"),
        ("key: tail_number", "key: _g", "5: key: '_g' is a column that the index adds itself"),
        ("reported_at", "_INSERTION_SLOT", "4: source.arrived_at: '_INSERTION_SLOT' is a column"),
        ("landed_at", "departed_at", "7: expires_at: 'departed_at' is valid_from as well"),
        (
            "expires_at: landed_at\n",
            "",
            "1: lifetime: neither valid_until nor lifetime is written; write one of the two",
        ),
        (
            "expires_at: landed_at\n",
            "expires_at: landed_at\nlifetime: interval 1 hour\n",
            "8: lifetime: both valid_until and lifetime are written; keep one of the two",
        ),
        (
            "expires_at: landed_at",
            "lifetime: reflect('java.lang.System', 'exit', 1)",
            "7: lifetime: the function 'reflect' is not allowed in a lifetime; allowed are "
            "intervals, columns, numbers, text, + - * / % div, comparisons,",
        ),
        # fields
        (
            "update_every:",
            "updateevery:",
            "8: updateevery: unknown field; allowed are name, description, source, key, "
            "valid_from, valid_until, lifetime, update_every, longest_lifetime, start, end, table, "
            "scheme, keep_versions_for, quarantine, quality, engine, connection, target_file_size, "
            "statistics; did you mean 'update_every'?",
        ),
        ("key: tail_number\n", "", "1: key: is missing; write it: the column that probes look up"),
        (
            "  arrived_at: reported_at\n",
            "",
            "2: source.arrived_at: is missing; write it: the column with the time at which a row",
        ),
        (
            "key: tail_number",
            "key: tail_number\nkey: flight",
            "6: key: written twice, first in line 5; keep one of the two",
        ),
        ("{name: sweep, groups: 8}", "{name: sweep, groups: 8, 8: 1}", "12: scheme.8: unknown fie"),
        ("key: tail_number", "? [a]\n: b", "5: a field name that is a list or a mapping; write"),
        # source
        (
            "  path: include/data/flights",
            "  path: data/{date}",
            "3: source.path: '{date}' is not a time placeholder; write a pattern of",
        ),
        ("include/data/flights", '"data/{%Y"', "has a brace without its partner"),
        ("include/data/flights", "data/{%Y-%S}", "3: source.path: '%S' in '{%Y-%S}' is not a part"),
        ("include/data/flights", "data/{%-d}", "3: source.path: '%-d' in '{%-d}' is not a part"),
        ("include/data/flights", "data/{%Y%}", "3: source.path: '%' in '{%Y%}' is not a part"),
        (
            "  path:",
            "  format: my format\n  path:",
            "3: source.format: 'my format' is not a format of files that an index reads; allowed "
            "are parquet, csv, json, delta, orc, avro, xml",
        ),
        ("  path:", "  format: jdbc\n  path:", "3: source.format: 'jdbc' is not a format of files"),
        (
            "  path:",
            "  format: org.apache.spark.sql.jdbc.JdbcRelationProvider\n  path:",
            "3: source.format: 'org.apache.spark.sql.jdbc.JdbcRelationProvider' is not a",
        ),
        ("  path:", "  format: binaryFile\n  path:", "3: source.format: 'binaryFile' is not a"),
        ("  path:", "  format: parquets\n  path:", "did you mean 'parquet'?"),
        (
            "  path:",
            "  options: {path: /etc}\n  path:",
            "3: source.options.path: not an option for parquet; allowed are datetimeRebaseMode, ",
        ),
        (
            "  path:",
            "  options:\n    fs.s3a.endpoint: http://elsewhere\n  path:",
            "4: source.options.fs.s3a.endpoint: not an option for parquet",
        ),
        (
            "  path:",
            "  format: csv\n  options: {columnNameOfCorruptRecord: key}\n  path:",
            "4: source.options.columnNameOfCorruptRecord: not an option for csv",
        ),
        (
            "  path:",
            "  format: avro\n  options: {avroSchemaUrl: 'file:/etc/passwd'}\n  path:",
            "4: source.options.avroSchemaUrl: not an option for avro",
        ),
        (
            "  path:",
            "  format: xml\n  options: {rowValidationXSDPath: /etc/passwd}\n  path:",
            "4: source.options.rowValidationXSDPath: not an option for xml",
        ),
        (
            "  path:",
            "  format: csv\n  options: {headers: true}\n  path:",
            "unescapedQuoteHandling; did you mean 'header'?",
        ),
        (
            "  path:",
            "  format: csv\n  options: {header: true, HEADER: false}\n  path:",
            "4: source.options.HEADER: the same option as header; keep one of the two",
        ),
        (
            "  path:",
            "  timezone: America/NewYork\n  path:",
            "3: source.timezone: 'America/NewYork' is not a time zone; write an IANA name, such as "
            "UTC or America/New_York; did you mean 'America/New_York'?",
        ),
        ("  path:", "  timezone: America\n  path:", "3: source.timezone: 'America' is not a time"),
        ("  path:", "  timezone: ../etc\n  path:", "3: source.timezone: '../etc' is not a time z"),
        (
            "  path:",
            "  late: acept\n  path:",
            "3: source.late: 'acept' is not known; "
            "allowed are accept, quarantine; did you mean 'accept'?",
        ),
        ("  path:", "  recount_every: -1\n  path:", "3: source.recount_every: -1 is too small"),
        ("  path:", "  schema: ''\n  path:", "3: source.schema: empty text"),
        ("  path:", "  options: header\n  path:", "3: source.options: 'header' is not a mapping"),
        (
            "  path:",
            "  options:\n    a: 1\n    b: [2]\n  path:",
            "5: source.options.b: a list is no option; write text, a number, true or false",
        ),
        ("  path:", "  options: {a: }\n  path:", "3: source.options.a: an empty value is no opt"),
        # table
        ("table: .tidetable", "table: include/data/flights", "11: table: '"),
        (".tidetable/flights_in_air", "include", "lie in each other; write a folder of its own"),
        ("table: .tide", "table: x/{%Y}/", "has a time placeholder; a table has one place"),
        # scheme
        (
            "sweep, groups: 8",
            "swep, groups: 8",
            "12: scheme.name: 'swep' is not a scheme; "
            "allowed are rebuild, no_rebuild, sweep, tiers, auto; did you mean 'sweep'?",
        ),
        ("name: sweep, ", "", "12: scheme.name: is missing; write which scheme: rebuild, no_rebu"),
        ("{name: sweep, groups: 8}", "sweep", "12: scheme: 'sweep' is not a mapping; write a na"),
        (", groups: 8", "", "12: scheme.groups: is missing; write it: expiration groups; at most"),
        ("groups: 8", "groups: 0", "12: scheme.groups: 0 is too small; write at least 1"),
        ("groups: 8", "groups: 1e1", "12: scheme.groups: 10.0 is not a whole number; write one"),
        ("groups: 8", "groups: true", "12: scheme.groups: true is not a whole number; write one"),
        ("groups: 8", "groups: 10_0", "12: scheme.groups: '10_0' is not a whole number"),
        ("groups: 8", "groups: 10001", "12: scheme.groups: 10001 is too large; write at most 1000"),
        (
            "groups: 8",
            "groups: 25",
            "12: scheme.groups: 25 is more than the 24 updates in longest_lifetime; "
            "write at most 24",
        ),
        (
            "groups: 8",
            "groups: 8, every: 2",
            "12: scheme.every: 2 without deletion vectors would leave expired rows in the table; "
            "write every: 1, or deletion_vectors: true",
        ),
        (
            "groups: 8",
            "groups: 8, deletion_vectors: true, merge_log: 4",
            "12: scheme.merge_log: the log is merged at updates that sweep no group, and with "
            "every: 1 each one does; write every: 2 or more, or leave out merge_log",
        ),
        (
            "groups: 8",
            "groups: 8, every: 2, deletion_vectors: true, merge_log: 16",
            "12: scheme.merge_log: after 16 updates (groups x every) a row has left the log "
            "anyway; write less than 16, or leave out merge_log",
        ),
        (
            "groups: 8",
            "groups: 8, every: 2, deletion_vectors: true, merge_log: 1",
            "12: scheme.merge_log: 1 would merge nothing; write 2 or more, or 0 for never",
        ),
        ("sweep, groups: 8", "tiers, groups: 8", "12: scheme.fan_in: is missing; write it"),
        (
            "sweep, groups: 8",
            "tiers, groups: 8, fan_in: 1",
            "12: scheme.fan_in: 1 is too small; write at least 2",
        ),
        (
            "sweep, groups: 8",
            "tiers, groups: 25, fan_in: 4",
            "12: scheme.groups: 25 is more than the 24 updates in longest_lifetime",
        ),
        (
            "groups: 8",
            "groups: 8, deletion_vectors: yes",
            "12: scheme.deletion_vectors: 'yes' is neither true nor false; write one of the two",
        ),
        (
            "{name: sweep, groups: 8}",
            "{name: rebuild, groups: 8, expiration: 1, insertion: 1}",
            "12: scheme.groups: unknown field; allowed are insertion, expiration, placement, name",
        ),
        (
            "{name: sweep, groups: 8}",
            "{name: rebuild, insertion: 1, expiration: 1, placement: random}",
            "12: scheme.placement: 'random' is not known; allowed are round_robin, chronological",
        ),
        # quality and size
        (
            "key:",
            "quality: {bad_rows_max: 101%}\nkey:",
            "5: quality.bad_rows_max: '101%' is neither a percentage nor a number of rows; "
            "write 0% to 100%, such as 5% or 0.5%, or a whole number from 0 on",
        ),
        ("key:", "quality: {imbalance_max: .9}\nkey:", "5: quality.imbalance_max: 0.9 is too smal"),
        ("key:", "quality: {imbalance_max: a}\nkey:", "5: quality.imbalance_max: 'a' is not a num"),
        ("key:", "quality: {imbalance_max: 1.0e999}\nkey:", "5: quality.imbalance_max: inf is not"),
        ("key:", "quality: {on_failure: stop}\nkey:", "5: quality.on_failure: 'stop' is not known"),
        ("key:", "quality: 5%\nkey:", "5: quality: '5%' is not a mapping; write the fields imbal"),
        ("key:", "target_file_size: 64\nkey:", "5: target_file_size: 64 bytes is out of range; w"),
        ("key:", "target_file_size: 64kB\nkey:", "5: target_file_size: '64kB' is not a size; wri"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    project: Path, replaced: str, by: str, expected: str
) -> None:
    assert replaced in GOOD
    found = mistakes_in(project, GOOD.replace(replaced, by, 1))

    assert any(expected in line for line in found), found
    assert all(line.startswith("flights.yaml:") for line in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: the file is empty; write the fields of an index"),
        ("# only a comment\n", "1: the file is empty; write the fields of an index"),
        ("- a\n- b\n", "1: the file holds a list; write the fields of an index, as name: value"),
        ("\nflights\n", "2: the file holds a single value; write the fields"),
        ("name: a\nkey: b: c\n", "2: not YAML: a ':' in a place where it cannot stand; check the"),
        ("name: a\n\tkey: b\n", "2: not YAML: a tab; indent with spaces (the parser said: "),
        ("name: a\nkey\ntable: b\n", "2: not YAML: a line without ':'; write field: value"),
        ("name: a\n  key: b\n", "2: not YAML: a ':' in a place"),
        ("  name: a\nkey: b\n", "2: not YAML: "),
        ("name: 'a\nkey: b\n", "1: not YAML: a quote that is never closed; close it"),
        ("scheme: {name: a\nkey: b\n", "2: not YAML: a { or [ that is not closed, or a comma"),
        ("name: a\n---\nname: b\n", "2: not YAML: a second document; keep one, without ---"),
        ("name: &n a\nkey: *n\n", "2: not YAML: an alias, *n, is not read here; write the value"),
        ("name: !!python/name:os a\n", "1: not YAML: a tag, tag:yaml.org,2002:python/name:os, is"),
        ("a: " + "[" * 3000, "1: not YAML: nested deeper than 10 levels"),
        ("name: a\nkey: \x07\n", "2: not YAML: the character 0x0007 cannot stand in a text"),
    ],
)
def test_a_file_that_holds_no_fields_says_why(project: Path, text: str, expected: str) -> None:
    found = mistakes_in(project, text)

    assert len(found) == 1
    assert expected in found[0]
    assert found[0].startswith("flights.yaml:")


def test_a_file_that_is_not_utf_8_says_in_which_line(project: Path) -> None:
    file = project / "flights.yaml"
    file.write_bytes(b"name: a\nkey: \xff\n")

    with pytest.raises(ConfigError, match=r"^flights.yaml:2: a byte that is not UTF-8; save"):
        load_index(file, project)


def test_a_file_that_is_far_too_large_is_not_read(project: Path) -> None:
    assert "larger than 1000000 bytes" in mistakes_in(project, "#" * 1_000_001)[0]


def test_a_folder_is_not_a_file(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"^include: the file cannot be read: Is a directory"):
        load_index(project / "include", project)


def test_all_mistakes_are_named_at_once_in_the_order_of_the_file(project: Path) -> None:
    text = """\
name: Flights
source: {path: "data/{day}", late: never}
key: _e
inserted_at: departed_at
inserted_at: took_off_at
update_every: 1h
longest_lifetime: 4h
start: 2013-01-01
end: 2012-01-01
tabel: .tidetable/flights
scheme: {name: rebuild, insertion: 5, expiration: 6}
quality: {bad_rows_max: many}
"""
    with pytest.raises(ConfigError) as caught:
        load(project, text)

    assert [(mistake.line, mistake.field) for mistake in caught.value.mistakes] == [
        (1, "name"),
        (1, "lifetime"),
        (1, "table"),
        (2, "source.path"),
        (2, "source.arrived_at"),
        (2, "source.late"),
        (3, "key"),
        (5, "inserted_at"),
        (8, "start"),
        (9, "end"),
        (10, "tabel"),
        (11, "scheme.insertion"),
        (11, "scheme.expiration"),
        (12, "quality.bad_rows_max"),
    ]
    assert len(str(caught.value).splitlines()) == 14


def test_two_fields_have_two_names(project: Path) -> None:
    """The documented ones, and those of files that were written before."""
    renamed = GOOD.replace("inserted_at:", "valid_from:").replace("expires_at:", "valid_until:")
    assert load(project, renamed) == load(project, GOOD)
    assert "valid_from" in renamed


@pytest.mark.parametrize(
    ("found", "by", "told"),
    [
        ("inserted_at: departed_at\n", "", "1: valid_from: is missing; write it:"),
        ("inserted_at: departed_at", "valid_from: 3", "6: valid_from: 3 is not text;"),
        ("inserted_at: departed_at", "inserted_at: 3", "6: inserted_at: 3 is not text;"),
        (
            "inserted_at: departed_at\n",
            "inserted_at: departed_at\nvalid_from: departed_at\n",
            "7: valid_from: means the same as inserted_at, which is written too;",
        ),
    ],
)
def test_a_mistake_names_the_field_as_the_file_does(
    project: Path, found: str, by: str, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(project, GOOD.replace(found, by))
    assert told in str(caught.value)


def test_a_check_of_two_fields_does_not_wait_for_a_third(project: Path) -> None:
    text = good_without("key", "scheme") + "key: ''\nscheme: {name: sweep, groups: 25}\n"

    assert [line.split(":")[2].strip() for line in mistakes_in(project, text)] == [
        "key",
        "scheme.groups",
    ]


@pytest.mark.parametrize(
    ("longest", "scheme", "expected"),
    [
        ("36500d", "{name: sweep, groups: 8}", "9: longest_lifetime: 36500d holds 1752000 updates"),
        (
            "20000d",
            "{name: tiers, groups: 3000, fan_in: 2}",
            "12: scheme.groups: 3000 with 10 levels each are 30000 cells; "
            "there may be at most 10000; write at most 1000",
        ),
        (
            "300d",
            "{name: rebuild, insertion: 101, expiration: 100}",
            "12: scheme.insertion: 101 x 100 parts are 10100 cells; "
            "insertion x expiration may be at most 10000",
        ),
    ],
)
def test_there_is_a_limit_on_everything(
    project: Path, longest: str, scheme: str, expected: str
) -> None:
    text = GOOD.replace("12h", longest).replace("{name: sweep, groups: 8}", scheme)

    assert expected in mistakes_in(project, text)[0]


def test_the_error_carries_its_mistakes_and_survives_pickling(project: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(project, GOOD.replace("30m", "30x"))
    error = caught.value

    assert isinstance(error, UserError)
    assert error.file == "flights.yaml"
    assert [(m.line, m.field) for m in error.mistakes] == [(8, "update_every")]
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_index_made_in_python_is_checked_too(project: Path) -> None:
    index = load(project, GOOD)
    values = {name: getattr(index, name) for name in Index.__dataclass_fields__}

    with pytest.raises(ValidationError, match="scheme"):
        Index(**{**values, "scheme": SweepConfig(groups=25)})


# Where files and paths are


def test_a_relative_path_starts_at_the_project_if_the_file_is_inside_it(project: Path) -> None:
    file = project / "include/indexes/flights.yaml"
    file.write_text(GOOD)

    index = load_index(file, project)

    assert index.source.path == str(project / "include/data/flights")
    assert index.table == str(project / ".tidetable/flights_in_air")


def test_a_relative_path_starts_at_the_file_if_that_is_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").mkdir()
    file = tmp_path / "elsewhere" / "flights.yaml"
    file.write_text(GOOD.replace("include/data", "../data"))

    index = load_index(file, tmp_path / "project")

    assert index.source.path == str(tmp_path / "data/flights")
    assert index.table == str(tmp_path / "elsewhere/.tidetable/flights_in_air")


@pytest.mark.parametrize("path", ["/data/t", "s3a://bucket/t", "hdfs:///t"])
def test_absolute_paths_and_uris_stay_as_they_are(project: Path, path: str) -> None:
    assert load(project, good_without("table", and_with=f"table: {path}")).table == path


@pytest.fixture
def indexes(project: Path) -> Path:
    for name in ("flights.yaml", "sessions.yml", "notes.txt"):
        (project / "include/indexes" / name).write_text(GOOD)
    return project


def test_a_name_finds_its_file(indexes: Path) -> None:
    folder = indexes / "include/indexes"

    assert find_index("flights", indexes) == folder / "flights.yaml"
    assert find_index("sessions", indexes) == folder / "sessions.yml"
    assert find_index("include/indexes/flights.yaml", indexes) == folder / "flights.yaml"
    assert find_index(str(folder / "flights.yaml"), indexes) == folder / "flights.yaml"
    assert index_files(indexes) == [folder / "flights.yaml", folder / "sessions.yml"]


def test_a_path_is_looked_for_in_the_working_directory_first(
    indexes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(indexes / "include")

    assert find_index("indexes/flights.yaml", indexes) == Path("indexes/flights.yaml")


@pytest.mark.parametrize("asked", ["fligths", "fligths.yaml", "somewhere/fligths.yaml"])
def test_a_name_without_a_file_is_told_which_there_are(indexes: Path, asked: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_index(asked, indexes)

    assert str(caught.value) == (
        f"{asked}: no such file; in include/indexes there are flights, sessions; "
        "did you mean 'flights'?"
    )


def test_loading_a_missing_file_is_told_which_there_are(indexes: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^x.yaml: no such file; in .* there are flights, sess"):
        load_index(indexes / "x.yaml", indexes)
    with pytest.raises(ConfigError, match="there are none"):
        find_index("x", tmp_path / "include")


# Quantities


@pytest.mark.parametrize(
    ("text", "seconds", "shortest"),
    [("0s", 0, "0s"), ("30s", 30, "30s"), ("90m", 5400, "90m"), ("60m", 3600, "1h"),
     ("48h", 172_800, "2d"), ("1d", 86_400, "1d")],
)  # fmt: skip
def test_durations(text: str, seconds: int, shortest: str) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)
    assert format_duration(timedelta(seconds=seconds)) == shortest


@pytest.mark.parametrize(
    "wrong",
    ["", "h", "1", "1.5h", "-1h", "1 h", "1H", "1h30m", "²h", "1h\n", "9" * 13 + "d", 1, True, None,
     timedelta(microseconds=1), timedelta(seconds=-1)],
)  # fmt: skip
def test_what_is_not_a_duration(wrong: object) -> None:
    with pytest.raises(ValueError):
        parse_duration(wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2013-01-01T00:00:00Z", datetime(2013, 1, 1, tzinfo=UTC)),
        ("2013-01-01 00:00-05:00", datetime(2013, 1, 1, 5, tzinfo=UTC)),
        ("2013-01-01T00:00:00.5+00:00", datetime(2013, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_times_are_utc(text: str, expected: datetime) -> None:
    assert parse_time(text) == expected
    assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "size"), [("1MB", 1024**2), ("64mb", 64 * 1024**2), ("2 GB", 2 * 1024**3)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize("wrong", ["0MB", "17GB", "64", "1.5GB", "64kB", "MB", 5, True, None])
def test_what_is_not_a_size(wrong: object) -> None:
    with pytest.raises(ValueError):
        parse_size(wrong)


def test_a_share_of_bad_rows_is_exact_at_its_edge() -> None:
    limit = parse_bad_rows_max("0.1%")

    assert str(limit) == "0.1%"
    assert limit.allows(bad=1, total=1000)
    assert not limit.allows(bad=1, total=999)
    assert limit.allows(bad=0, total=0)


def test_a_number_of_bad_rows_does_not_depend_on_the_total() -> None:
    limit = parse_bad_rows_max(3)

    assert str(limit) == "3 rows"
    assert limit.allows(bad=3, total=3)
    assert not limit.allows(bad=4, total=1_000_000)
    assert str(parse_bad_rows_max(1)) == "1 row"


@pytest.mark.parametrize("wrong", ["5", "-1%", "100.1%", "%", -1, 1.5, True, None, [5]])
def test_what_is_not_a_limit_of_bad_rows(wrong: object) -> None:
    with pytest.raises(ValueError):
        parse_bad_rows_max(wrong)


@pytest.mark.parametrize(
    ("written", "value"),
    [("1", 1), ("-1", -1), ("010", 10), ("1.5", 1.5), ("1e3", 1000.0), ("true", True), ("~", None),
     ("null", None), ("1:30", "1:30"), ("yes", "yes"), ("True", "True"), ("'1'", "1"),
     ("0x1", "0x1"), ("2013-01-01", "2013-01-01"), (".inf", ".inf"), ("9" * 5000, "9" * 5000)],
)  # fmt: skip
def test_scalars_are_read_without_surprises(written: str, value: object) -> None:
    assert located.read(f"a: {written}").value == {"a": value}


# Placeholders


@pytest.mark.parametrize(
    ("path", "after", "until", "expected"),
    [
        ("d/flights", "2013-01-01T00:00", "2013-01-02T00:00", ["d/flights"]),
        ("d/{a,b}", "2013-01-01T00:00", "2013-01-02T00:00", ["d/{a,b}"]),
        # Inside a day, and up to midnight exactly: a row of that moment is in the new day's folder.
        ("d/{%Y-%m-%d}", "2013-01-01T10:00", "2013-01-01T10:30", ["d/2013-01-01"]),
        ("d/{%Y-%m-%d}", "2013-01-01T23:30", "2013-01-02T00:00", ["d/2013-01-01", "d/2013-01-02"]),
        ("d/{%Y-%m-%d}", "2013-01-02T00:00", "2013-01-02T00:30", ["d/2013-01-02"]),
        ("d/{%Y-%m-%d}", "2013-01-01T23:59:59.999999", "2013-01-02T00:30", ["d/2013-01-02"]),
        # Slots that span two days.
        ("d/{%Y-%m-%d}", "2013-01-01T23:45", "2013-01-02T00:15", ["d/2013-01-01", "d/2013-01-02"]),
        (
            "d/{%Y-%m-%d}/{%H}",
            "2013-01-01T22:30",
            "2013-01-02T00:30",
            ["d/2013-01-01/22", "d/2013-01-01/23", "d/2013-01-02/00"],
        ),
        ("d/{%H%M}", "2013-01-01T00:58", "2013-01-01T01:00", ["d/0058", "d/0059", "d/0100"]),
        ("d/{%Y-%j}", "2012-12-31T12:00", "2013-01-01T12:00", ["d/2012-366", "d/2013-001"]),
        # Months and years are of unequal length.
        (
            "d/{y=%Y/m=%m}",
            "2012-01-31T12:00",
            "2012-03-01T00:00",
            ["d/y=2012/m=01", "d/y=2012/m=02", "d/y=2012/m=03"],
        ),
        ("d/{%Y}/x", "2011-12-31T00:00", "2013-01-01T00:00", ["d/2011/x", "d/2012/x", "d/2013/x"]),
        # A pattern that comes round again gives each path once.
        ("d/{%m}", "2011-11-15T00:00", "2013-01-15T00:00",
         [f"d/{m:02}" for m in (11, 12, *range(1, 11))]),
        ("d/{%Y}", "2013-01-01T00:00", "2013-01-01T00:00", []),
        ("d/{100%%}", "2013-01-01T00:00", "2013-01-02T00:00", ["d/100%"]),
    ],
)  # fmt: skip
def test_placeholders_give_the_paths_of_a_slot(
    path: str, after: str, until: str, expected: list[str]
) -> None:
    source = Source(path=path, arrived_at="t")

    assert expected == source.paths_for(at(after), at(until))


def test_placeholders_are_in_utc() -> None:
    source = Source(path="d/{%Y-%m-%d}", arrived_at="t")
    after = datetime.fromisoformat("2013-01-01T20:00:00-05:00")

    assert source.paths_for(after, after + timedelta(hours=1)) == ["d/2013-01-02"]


DAY, HOUR, MINUTE = "d/{%Y-%m-%d}", "d/{%d}/{%H}", "d/{%H%M}"


@pytest.mark.parametrize(
    ("path", "after", "until", "expected"),
    [
        # Days of Paris begin at 22 or 23 hours in UTC; an edge belongs to both.
        (DAY, "2024-03-30T22:00", "2024-03-30T22:59", ["d/2024-03-30"]),
        (DAY, "2024-03-30T22:30", "2024-03-30T23:00", ["d/2024-03-30", "d/2024-03-31"]),
        (DAY, "2024-03-30T23:00", "2024-03-31T21:59", ["d/2024-03-31"]),
        (DAY, "2024-03-31T22:00", "2024-03-31T22:01", ["d/2024-04-01"]),
        (DAY, "2024-10-26T22:00", "2024-10-27T22:59", ["d/2024-10-27"]),
        # An hour that does not occur, and one that occurs twice.
        (HOUR, "2024-03-31T00:30", "2024-03-31T01:30", ["d/31/01", "d/31/03"]),
        (HOUR, "2024-10-27T00:10", "2024-10-27T00:50", ["d/27/02"]),
        (HOUR, "2024-10-27T01:10", "2024-10-27T01:50", ["d/27/02"]),
        (HOUR, "2024-10-27T01:50", "2024-10-27T02:10", ["d/27/02", "d/27/03"]),
        (MINUTE, "2024-10-27T00:58", "2024-10-27T01:01", ["d/0258", "d/0259", "d/0200", "d/0201"]),
        ("d/{%Y/%m}", "2024-02-29T22:30", "2024-02-29T23:30", ["d/2024/02", "d/2024/03"]),
        ("d/{%Y}", "2023-12-31T22:30", "2023-12-31T23:30", ["d/2023", "d/2024"]),
    ],
)  # fmt: skip
def test_placeholders_follow_the_clocks_of_a_zone(
    path: str, after: str, until: str, expected: list[str]
) -> None:
    source = Source(path=path, arrived_at="t", path_timezone="Europe/Paris")

    assert source.paths_for(at(after), at(until)) == expected


def test_a_zone_of_half_an_hour_and_a_day_that_was_left_out() -> None:
    source = Source(path=HOUR, arrived_at="t", path_timezone="Asia/Kolkata")
    assert source.paths_for(at("2024-03-01T00:00"), at("2024-03-01T00:40")) == [
        "d/01/05",
        "d/01/06",
    ]
    source = Source(path=DAY, arrived_at="t", path_timezone="Pacific/Apia")
    found = source.paths_for(at("2011-12-30T09:00"), at("2011-12-30T11:00"))
    assert {"d/2011-12-29", "d/2011-12-31"} <= set(found)


def test_without_a_zone_of_the_path_both_are_looked_at() -> None:
    """Folders of files that were written before there was a choice may be in either."""
    source = Source(path=DAY, arrived_at="t", timezone="Europe/Paris")
    assert source.path_zones == ("UTC", "Europe/Paris")
    found = source.paths_for(at("2024-03-30T23:30"), at("2024-03-30T23:40"))
    assert found == ["d/2024-03-30", "d/2024-03-31"]
    day = at("2024-03-30T12:00"), at("2024-03-30T23:40")
    assert source.expected_paths_for(*day) == ["d/2024-03-30"]
    assert source.path_span == timedelta(hours=25)
    assert Source(path=DAY, arrived_at="t").path_zones == ("UTC",)


@pytest.mark.parametrize(
    ("path", "zone", "first", "last"),
    [
        (DAY, "UTC", "2024-03-31T00:00", "2024-04-01T00:00"),
        (DAY, "Europe/Paris", "2024-03-30T23:00", "2024-03-31T22:00"),
        ("d/{%Y-%m-%d}/{%H}", "UTC", "2024-03-31T00:00", "2024-03-31T02:00"),
        ("d/{%Y}", "UTC", "2024-01-01T00:00", "2025-01-01T00:00"),
    ],
)
def test_when_the_rows_of_a_folder_may_have_arrived(
    path: str, zone: str, first: str, last: str
) -> None:
    source = Source(path=path, arrived_at="t", path_timezone=zone)
    assert source.reach(at("2024-03-31T00:30"), at("2024-03-31T01:30")) == (at(first), at(last))
    assert Source(path="d", arrived_at="t").reach(at(first), at(last)) is None
    assert Source(path="d/{%H}", arrived_at="t").reach(at(first), at(last)) is None


def test_an_hour_that_occurs_twice_reaches_over_both() -> None:
    source = Source(path="d/{%Y-%m-%d}/{%H}", arrived_at="t", path_timezone="Europe/Paris")
    for after, until in (("00:10", "00:20"), ("01:10", "01:20")):
        found = source.reach(at(f"2024-10-27T{after}"), at(f"2024-10-27T{until}"))
        assert found == (at("2024-10-27T00:00"), at("2024-10-27T02:00"))


def test_placeholders_need_times_in_order_with_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(path="d/{%M}", arrived_at="t")
    time = at("2013-01-01")

    with pytest.raises(ValueError, match="need a zone"):
        source.paths_for(time.replace(tzinfo=None), time)
    with pytest.raises(ValueError, match="lies before"):
        source.paths_for(time, time - timedelta(1))
    monkeypatch.setattr(path_pattern, "PATHS_MAX", 60)
    with pytest.raises(UserError, match="More than 60 paths, one for each minute"):
        source.paths_for(time, time + timedelta(hours=1))


@pytest.mark.parametrize(
    ("path", "span"),
    [
        ("d/{%Y-%m-%dT%H-%M}", timedelta(minutes=1)),
        ("d/{%Y-%m-%d}/{%H}", timedelta(hours=1)),
        ("d/{%Y}/{%j}", timedelta(days=1)),
        ("d/{%Y-%m-%d}", timedelta(days=1)),
        ("d/{%Y-%m}", timedelta(days=31)),
        ("d/{%Y}", timedelta(days=366)),
        ("d", None),
        ("d/{a,b}", None),
        ("d/{%%}", None),
        ("d/{%H}", None),
        ("d/{%m-%d}", None),
        ("d/{%Y-%d}", None),
        ("d/{%Y-%m-%d}/{%M}", None),
    ],
)
def test_how_much_time_one_path_holds(path: str, span: timedelta | None) -> None:
    assert path_pattern.span(path) == span


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/d/flights", "/d/flights"),
        ("/d/{%Y}/{%m}", "/d"),
        ("/d/year={%Y}", "/d"),
        ("/{%Y}", "/"),
        ("s3a://bucket/{%Y}", "s3a://bucket"),
        ("/d/{a,b}/{%Y}", "/d/{a,b}"),
    ],
)
def test_the_root_is_the_last_folder_before_the_first_placeholder(path: str, root: str) -> None:
    assert Source(path=path, arrived_at="t").root == root


# The schema for editors


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_shipped_schema_is_current() -> None:
    current = SCHEMA_PATH.read_text(encoding="utf-8") == schema_text()

    assert current, "run `python -m tidetable.config` to write it anew"


@pytest.mark.parametrize("text", [GOOD, FULL])
def test_the_schema_accepts_a_good_index(validator: Any, text: str) -> None:
    validator.validate(located.read(text).value)


@pytest.mark.parametrize(
    ("replaced", "by"),
    [
        ("30m", "30x"),
        ("00:00:00Z", "00:00:00"),
        ("key:", "kee:"),
        ("key: tail_number", "key: _g"),
        ("expires_at: landed_at\n", ""),
        ("groups: 8", "groups: 0"),
        ("name: sweep, ", ""),
        ("key:", "quality: {bad_rows_max: five}\nkey:"),
    ],
)
def test_the_schema_rejects_a_bad_index(validator: Any, replaced: str, by: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(located.read(GOOD.replace(replaced, by, 1)).value)
