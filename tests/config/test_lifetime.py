"""`lifetime` computes an interval and does nothing else, and Spark runs what was checked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidetable.config import lifetime
from tidetable.config.lifetime import lifetime_sql

ALLOWED = {
    "interval 90 minutes": "INTERVAL '90' MINUTES",
    "INTERVAL '3' HOUR": "INTERVAL '3' HOUR",
    "interval -3 hours": "INTERVAL '-3' HOURS",
    "interval '1 day 2 hours'": "INTERVAL '1 day 2 hours'",
    "interval '1 2:03' day to minute": "INTERVAL '1 2:03' DAY TO MINUTE",
    "interval 1 day 2 hours * 2": "((INTERVAL '1' DAY + INTERVAL '2' HOURS) * 2)",
    "make_dt_interval(0, 0, minutes)": "make_dt_interval(0, 0, `minutes`)",
    "make_dt_interval(0, 0, minutes * 2 + 1)": "make_dt_interval(0, 0, ((`minutes` * 2) + 1))",
    "make_interval(0, 0, 0, 0, 0, minutes)": "make_interval(0, 0, 0, 0, 0, `minutes`)",
    "make_ym_interval(0, minutes)": "make_ym_interval(0, `minutes`)",
    "MAKE_DT_INTERVAL(minutes) /* of the ticket */": "make_dt_interval(`minutes`)",
    "due - opened -- as agreed": "(`due` - `opened`)",
    "least(due - opened, interval 2 days)": "least((`due` - `opened`), INTERVAL '2' DAYS)",
    "coalesce(due - opened, interval 1 hour)": "coalesce((`due` - `opened`), INTERVAL '1' HOUR)",
    "nvl(due - opened, interval 1 hour)": "coalesce((`due` - `opened`), INTERVAL '1' HOUR)",
    "if(minutes > 9, interval 1 day, interval 1 hour)": (
        "if((`minutes` > 9), INTERVAL '1' DAY, INTERVAL '1' HOUR)"
    ),
    "case tier when 'gold' then interval 2 days else interval 1 day end": (
        "(CASE `tier` WHEN 'gold' THEN INTERVAL '2' DAYS ELSE INTERVAL '1' DAY END)"
    ),
    "case when tier in ('gold', 'silver') and not minutes is null then interval 2 days end": (
        "(CASE WHEN ((`tier` IN ('gold', 'silver')) AND (NOT (`minutes` IS NULL))) "
        "THEN INTERVAL '2' DAYS END)"
    ),
    "case when minutes between 1 and 9 or tier <=> 'x' then interval 1 day end": (
        "(CASE WHEN ((`minutes` BETWEEN 1 AND 9) OR (`tier` <=> 'x')) THEN INTERVAL '1' DAY END)"
    ),
    "make_dt_interval(0, 0, cast(minutes / 2 as int))": (
        "make_dt_interval(0, 0, CAST((`minutes` / 2) AS INT))"
    ),
    "make_dt_interval(0, 0, try_cast(tier as int))": (
        "make_dt_interval(0, 0, TRY_CAST(`tier` AS INT))"
    ),
    "make_dt_interval(0, 0, ceil(minutes / 7))": "make_dt_interval(0, 0, ceil((`minutes` / 7)))",
    "- interval 1 day + minutes % 3 * interval 2 days": (
        "((- INTERVAL '1' DAY) + ((`minutes` % 3) * INTERVAL '2' DAYS))"
    ),
    "timestamp '2030-01-01 00:00:00' - due": "(CAST('2030-01-01 00:00:00' AS TIMESTAMP) - `due`)",
    "make_dt_interval(0, 0, `odd ``name`)": "make_dt_interval(0, 0, `odd ``name`)",
    "make_dt_interval(0, 0, trip.minutes)": "make_dt_interval(0, 0, `trip`.`minutes`)",
}

HOSTILE = {
    # code
    "reflect('java.lang.System', 'exit', 1)": "the function 'reflect'",
    "java_method('java.lang.System', 'getenv', 'HOME')": "the function 'java_method'",
    "try_reflect('java.lang.Runtime', 'getRuntime')": "the function 'try_reflect'",
    "`reflect`('java.lang.System', 'exit', 1)": "the function 'reflect'",
    "REFLECT /* a */ ('java.lang.System', 'exit', 1)": "the function 'reflect'",
    "make_dt_interval(0, 0, int(reflect('java.lang.Math', 'random')))": "the function 'reflect'",
    "if(reflect('a', 'b') is null, interval 1 day, interval 2 days)": "the function 'reflect'",
    "case when java_method('a', 'b') = 'c' then interval 1 day end": "the function 'java_method'",
    "coalesce(interval 1 day, reflect('a', 'b'))": "the function 'reflect'",
    "interval 1 day in (reflect('a', 'b'))": "the function 'reflect'",
    "minutes between 1 and reflect('a', 'b')": "the function 'reflect'",
    "cast(reflect('a', 'b') as interval day)": "the function 'reflect'",
    "my_udf(minutes)": "the function 'my_udf'",
    "system.builtin.reflect('a', 'b')": "a name of several parts",
    "main.default.my_udf(minutes)": "a name of several parts",
    "minutes.reflect('a', 'b')": "a name of several parts",
    # files and tables
    "(select interval 1 day)": "a subquery",
    "(select max(length(value)) from text.`/etc/passwd`) * interval 1 day": "a subquery",
    "minutes in (select 1 from parquet.`/tmp/x`)": "a subquery",
    "exists (select 1 from csv.`/etc/hosts`)": "is not allowed",
    "(with a as (select 1) select * from a)": "is not allowed",
    "(table secrets)": "is not",
    "(values (1))": "is not allowed",
    "read_files('/etc/passwd')": "the function 'read_files'",
    "input_file_name()": "the function 'input_file_name'",
    # statements and several expressions
    "interval 1 day; drop table secrets": "is not an expression",
    "drop table secrets": "is not an expression",
    "set x = 1": "is not an expression",
    "interval 1 day as _g": "is not an expression",
    "interval 1 day, reflect('a', 'b')": "is not an expression",
    "interval 1 day) as x, (interval 1 day": "is not an expression",
    "interval 1 day) or (true": "is not an expression",
    "(interval 1 day, interval 2 days)": "is not allowed",
    # what Spark replaces before it parses
    "interval '${spark.app.id}' hours": "has a ${",
    "make_dt_interval(0, 0, ${env:HOME})": "has a ${",
    "`${system:user.home}`": "has a ${",
    "interval '$' hours": "is a number",
    "make_dt_interval(0, 0, :minutes)": "is not allowed",
    "make_dt_interval(0, 0, ?)": "is not allowed",
    "make_dt_interval(0, 0, @minutes)": "is not allowed",
    "identifier('reflect')('a', 'b')": "is not",
    "identifier('minutes')": "the function 'identifier'",
    # what does not depend on the row alone
    "current_timestamp - due": "the function 'current_timestamp'",
    "current_timestamp() - due": "the function 'current_timestamp'",
    "now() - due": "the function 'now'",
    "current_date - due": "the function 'current_date'",
    "make_dt_interval(current_timestamp)": "the function 'current_timestamp'",
    "rand() * interval 1 day": "the function 'rand'",
    "uuid()": "the function 'uuid'",
    "max(due) over () - due": "a window",
    "lag(due) over (order by due) - due": "a window",
    "max(due) - min(due)": "the function 'max'",
    # everything else that nobody listed
    "transform(array(1), x -> x)[0] * interval 1 day": "is not allowed",
    "aggregate(array(1), 0, (a, x) -> a + x) * interval 1 day": "is not allowed",
    "x -> interval 1 day": "is not",
    "trips[0]": "is not allowed",
    "from_json(tier, 'a interval day')": "is not allowed",
    "tier like '%gold%'": "is not allowed",
    "tier rlike '(a+)+$'": "is not allowed",
    "explode(trips)": "the function 'explode'",
    "raise_error('x')": "the function 'raise_error'",
    "assert_true(false)": "the function 'assert_true'",
    "sleep(1000)": "the function 'sleep'",
    "java.lang.System": "is not",
    "trips.*": "is not allowed",
    "*": "is not",
    "cast(minutes as array<int>)": "is not allowed",
    "coalesce(distinct minutes)": "is not allowed",
    "coalesce(minutes) filter (where true)": "is not allowed",
    "make_interval(hours => 3)": "is not allowed",
    "tier = 'a\\' or reflect(1) = \\'b'": "no quote, backslash or dollar",
    'tier = "it\'s"': "no quote, backslash or dollar",
    "12 parsecs": "is not an expression",
    "interval 12 parsecs": "is not a unit",
    "interval minutes hours": "is a number",
    "if(true, interval 1 day)": "takes a condition and two values",
    "interval": "is not allowed",
    "'unfinished": "is not an expression",
    "": "is not an expression",
    # size
    "(" * 500 + "minutes" + ")" * 500: "levels inside each other",
    "not " * 400 + "true": "levels inside each other",
    "- " * 900 + "1": "levels inside each other",
    "+".join(["minutes"] * 240): "levels inside each other",
    "case when true then " * 60 + "1" + " end" * 60: "levels inside each other",
    "minutes + " * 300 + "1": "write at most 2000",
}


@pytest.mark.parametrize(("text", "sql"), ALLOWED.items())
def test_what_computes_an_interval_is_written_anew(text: str, sql: str) -> None:
    assert lifetime_sql(text) == sql


@pytest.mark.parametrize(("text", "told"), HOSTILE.items(), ids=[text[:40] for text in HOSTILE])
def test_everything_else_is_refused_with_a_sentence(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)) as refused:
        lifetime_sql(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("sql", ALLOWED.values())
def test_what_is_written_is_allowed_and_stays_as_it_is(sql: str) -> None:
    assert lifetime_sql(sql) == sql


@pytest.mark.parametrize("text", list(ALLOWED)[:2] + list(ALLOWED)[6:7] + list(ALLOWED)[8:10])
def test_the_usual_forms_need_no_parser_and_come_out_the_same(text: str) -> None:
    plain = lifetime._plain(text)
    assert plain is not None
    assert plain == lifetime._Writer().sql(lifetime._parsed(text))


def test_the_parser_is_not_imported_for_them() -> None:
    """Commands that only read would take longer to start."""
    program = (
        "import sys; from tidetable.config.lifetime import lifetime_sql; "
        "lifetime_sql('interval 90 minutes'); lifetime_sql('make_dt_interval(0, 0, minutes)'); "
        "sys.exit('sqlglot' in sys.modules)"
    )
    here = Path(__file__).parent
    assert subprocess.run([sys.executable, "-c", program], cwd=here, check=False).returncode == 0


@pytest.mark.spark
def test_spark_gives_what_was_written_and_what_runs_the_same_value(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT id AS minutes, timestamp '2024-01-02 00:00:00' AS due, "
        "timestamp '2024-01-01 00:00:00' AS opened, elt(id + 1, 'gold', 'x', '7') AS tier, "
        "id AS `odd ``name`, struct(id AS minutes) AS trip FROM "
        "(SELECT CAST(id AS int) AS id FROM range(3))"
    )
    found = rows.selectExpr(
        # As text: PySpark cannot take in an interval that may hold months.
        *(f"CAST({text}\n AS STRING) AS written{n}" for n, text in enumerate(ALLOWED)),
        *(f"CAST({sql} AS STRING) AS runs{n}" for n, sql in enumerate(ALLOWED.values())),
    ).collect()
    assert len(found) == 3
    for line in found:
        for n, text in enumerate(ALLOWED):
            assert line[f"written{n}"] == line[f"runs{n}"], text
