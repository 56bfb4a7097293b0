"""`lifetime`: an SQL expression that may compute an interval from columns, and nothing else.

Spark's SQL can call any Java method (`reflect`), read any file (a subquery) and replace `${...}`
before it parses. So the text of a YAML never reaches Spark. It is parsed here, everything that is
not on the lists below is refused, and Spark gets SQL that is written anew from what was found:
what was checked is what runs, without comments, with every name in backticks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from tidetable.config.mistakes import shown

if TYPE_CHECKING:
    from sqlglot.expressions import Condition, Expr

LENGTH_MAX = 2_000
DEPTH_MAX = 20
"""Parentheses in parentheses, and CASE in CASE."""

FUNCTIONS = (
    "abs", "ceil", "coalesce", "floor", "greatest", "if", "ifnull", "least", "make_dt_interval",
    "make_interval", "make_ym_interval", "nullif", "nvl", "round", "try_make_interval",
)  # fmt: skip
ALLOWED = (
    "allowed are intervals, columns, numbers, text, + - * / % div, comparisons, AND, OR, NOT, IN, "
    f"BETWEEN, IS NULL, CASE, CAST and the functions {', '.join(FUNCTIONS)}"
)
_UNITS = re.compile(
    r"(YEAR|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND|MICROSECOND)S?", re.IGNORECASE
)
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_INTERVAL_TEXT = re.compile(r"[A-Za-z0-9 .:+-]*")
# By far the most lifetimes are of these two forms, and the parser takes longer to import than a
# command that reads needs for everything else: they do without it.
_PLAIN_INTERVAL = re.compile(rf"interval\s+(\d+|'\d+')\s+({_UNITS.pattern})", re.IGNORECASE)
_PLAIN_CALL = re.compile(
    r"(make_dt_interval|make_interval|make_ym_interval)\s*\(([a-z0-9_,\s]*)\)", re.IGNORECASE
)
_PLAIN_ARGUMENT = re.compile(r"\d+|[a-z_][a-z0-9_]*", re.IGNORECASE)
_TOO_DEEP = f"more than {DEPTH_MAX} levels inside each other; write it simpler"
_WORDS = frozenset({"null", "true", "false", "interval", "case", "not", "current_timestamp",
                    "current_date", "current_time", "localtimestamp"})  # fmt: skip
"""Not columns, though they look so."""


@cache
def lifetime_sql(text: str) -> str:
    """The expression as Spark is to run it. ValueError with a sentence if it is not allowed."""
    plain = _plain(text.strip())
    if plain is not None:
        return plain
    if len(text) > LENGTH_MAX:
        raise ValueError(f"an expression of {len(text)} characters; write at most {LENGTH_MAX}")
    if "${" in text:
        raise ValueError(f"{shown(text)} has a ${{, which Spark would replace; {ALLOWED}")
    if _depth(text) > DEPTH_MAX:
        raise ValueError(_TOO_DEEP)
    try:
        return _Writer().sql(_parsed(text))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _plain(text: str) -> str | None:
    """The two usual forms, as `_Writer` would write them; None for all others."""
    if found := _PLAIN_INTERVAL.fullmatch(text):
        return f"INTERVAL '{found[1].strip(chr(39))}' {found[2].upper()}"
    found = _PLAIN_CALL.fullmatch(text)
    arguments = [one.strip() for one in found[2].split(",")] if found else []
    if found is None or not all(
        _PLAIN_ARGUMENT.fullmatch(one) and one.lower() not in _WORDS for one in arguments
    ):
        return None
    written = (one if one.isdigit() else _name(one) for one in arguments)
    return f"{found[1].lower()}({', '.join(written)})"


def _depth(text: str) -> int:
    """How deep it is at most; before parsing, which would go as deep itself."""
    deepest = depth = 0
    for mark in re.findall(r"\(|\)|\[|\]|\b(?:case|end|not)\b|[-+~!](?=\s*[-+~!])", text.lower()):
        depth += -1 if mark in (")", "]", "end") else 1
        deepest = max(deepest, depth)
    return deepest


def _parsed(text: str) -> Condition:
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    try:
        # Into a condition: a statement, an alias or a second expression is an error then.
        return sqlglot.parse_one(text, dialect="spark", into=exp.Condition)
    except (SqlglotError, ValueError) as error:
        raise ValueError(
            f"{shown(text)} is not an expression that gives an interval, such as "
            f"INTERVAL 90 MINUTES or make_dt_interval(0, 0, minutes_valid); {ALLOWED}"
        ) from error


class _Writer:
    """Writes SQL from a parsed expression; what it does not know it refuses."""

    def __init__(self) -> None:
        from sqlglot import expressions as exp

        self._exp = exp
        binary = {
            exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "DIV",
            exp.Mod: "%", exp.EQ: "=", exp.NEQ: "<>", exp.NullSafeEQ: "<=>", exp.LT: "<",
            exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.And: "AND", exp.Or: "OR", exp.Is: "IS",
        }  # fmt: skip
        functions = {
            exp.Abs: "abs", exp.Ceil: "ceil", exp.Coalesce: "coalesce", exp.Floor: "floor",
            exp.Greatest: "greatest", exp.Least: "least", exp.MakeInterval: "make_interval",
            exp.Nullif: "nullif", exp.Round: "round",
        }  # fmt: skip
        self._writers: dict[type, Callable[[Any], str]] = {
            **{kind: self._binary(sign) for kind, sign in binary.items()},
            **{kind: self._function(name) for kind, name in functions.items()},
            exp.Anonymous: self._named_function,
            exp.Between: self._between,
            exp.Boolean: lambda node: "true" if node.this else "false",
            exp.Case: self._case,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Column: self._column,
            exp.If: self._if,
            exp.In: self._in,
            exp.Interval: self._interval,
            exp.Literal: self._literal,
            exp.Neg: lambda node: f"(- {self._part(node, 'this')})",
            exp.Not: lambda node: f"(NOT {self._part(node, 'this')})",
            exp.Null: lambda node: "NULL",
            exp.Paren: lambda node: self._part(node, "this"),
        }

    def sql(self, node: Expr) -> str:
        write = self._writers.get(type(node))
        if write is None:
            raise self._refusal(node)
        return write(node)

    def _part(self, node: Expr, *names: str) -> str:
        """The only part that the node has, besides flags."""
        (part,) = self._parts(node, *names)
        return part

    def _parts(self, node: Expr, *names: str) -> list[str]:
        self._has_only(node, names)
        return [self.sql(child) for name in names for child in _listed(node.args.get(name))]

    def _has_only(self, node: Expr, names: Iterable[str]) -> None:
        """No part of a node may get lost unseen: the query of an IN, the format of a CAST."""
        for name, value in node.args.items():
            if name not in names and value not in (None, [], True, False):
                raise self._refusal(node)

    def _binary(self, sign: str) -> Callable[[Any], str]:
        def write(node: Any) -> str:
            left, right = self._parts(node, "this", "expression")
            return f"({left} {sign} {right})"

        return write

    def _function(self, name: str) -> Callable[[Any], str]:
        def write(node: Any) -> str:
            return f"{name}({', '.join(self._parts(node, *node.arg_types))})"

        return write

    def _named_function(self, node: Any) -> str:
        name = node.name.lower()
        if not isinstance(node.this, str) or name not in FUNCTIONS:
            raise ValueError(f"the function {shown(name)} is not allowed in a lifetime; {ALLOWED}")
        self._has_only(node, ("this", "expressions"))
        return f"{name}({', '.join(self.sql(one) for one in node.expressions)})"

    def _between(self, node: Any) -> str:
        value, low, high = self._parts(node, "this", "low", "high")
        return f"({value} BETWEEN {low} AND {high})"

    def _case(self, node: Any) -> str:
        self._has_only(node, ("this", "ifs", "default"))
        words = ["CASE"]
        if node.this is not None:
            words.append(self.sql(node.this))
        for branch in node.args["ifs"]:
            condition, value = self._parts(branch, "this", "true")
            words += ["WHEN", condition, "THEN", value]
        if node.args.get("default") is not None:
            words += ["ELSE", self.sql(node.args["default"])]
        return f"({' '.join(words)} END)"

    def _if(self, node: Any) -> str:
        parts = self._parts(node, "this", "true", "false")
        if len(parts) != 3:
            raise ValueError("if takes a condition and two values: if(vip, INTERVAL 2 DAYS, ...)")
        return f"if({', '.join(parts)})"

    def _in(self, node: Any) -> str:
        value, *members = self._parts(node, "this", "expressions")
        return f"({value} IN ({', '.join(members)}))"

    def _column(self, node: Any) -> str:
        self._has_only(node, ("this", "table"))
        names = [part for part in (node.args.get("table"), node.this) if part is not None]
        if not all(type(part) is self._exp.Identifier for part in names):
            raise self._refusal(node)
        if len(names) == 1 and not names[0].quoted and names[0].name.lower() in _WORDS:
            raise self._refusal(node)
        return ".".join(_name(part.name) for part in names)

    def _literal(self, node: Any) -> str:
        text = str(node.this)
        if not node.is_string:
            if not _NUMBER.fullmatch(text):
                raise ValueError(f"{shown(text)} is not a number; {ALLOWED}")
            return text
        if not text.isprintable() or any(mark in text for mark in "'\"\\$"):
            raise ValueError(f"{shown(text)}: text in a lifetime has no quote, backslash or dollar")
        return f"'{text}'"

    def _interval(self, node: Any) -> str:
        self._has_only(node, ("this", "unit"))
        value, sign = node.this, ""
        if type(value) is self._exp.Neg:
            value, sign = value.this, "-"
        text = str(value.this) if type(value) is self._exp.Literal else None
        if text is None or not _INTERVAL_TEXT.fullmatch(text):
            raise ValueError(
                "the value of an INTERVAL is a number; write make_dt_interval(days, hours, "
                "minutes, seconds) to take it from a column"
            )
        unit = node.args.get("unit")
        return f"INTERVAL {sign}'{text}'" + ("" if unit is None else f" {self._unit(unit)}")

    def _unit(self, unit: Any) -> str:
        if type(unit) is self._exp.IntervalSpan:
            return f"{self._unit(unit.this)} TO {self._unit(unit.expression)}"
        if type(unit) is not self._exp.Var or not _UNITS.fullmatch(str(unit.this)):
            raise ValueError(
                f"{shown(str(unit.this))} is not a unit of an interval; write YEAR, MONTH, WEEK, "
                "DAY, HOUR, MINUTE, SECOND, MILLISECOND or MICROSECOND"
            )
        return str(unit.this).upper()

    def _cast(self, node: Any) -> str:
        self._has_only(node, ("this", "to"))
        word = "TRY_CAST" if node.args.get("safe") else "CAST"
        return f"{word}({self.sql(node.this)} AS {self._type(node.args['to'])})"

    def _type(self, to: Any) -> str:
        names = self._exp.DataType.Type
        types = {
            names.TINYINT: "TINYINT", names.SMALLINT: "SMALLINT", names.INT: "INT",
            names.BIGINT: "BIGINT", names.FLOAT: "FLOAT", names.DOUBLE: "DOUBLE",
            names.DECIMAL: "DECIMAL", names.DATE: "DATE", names.TIMESTAMPTZ: "TIMESTAMP",
            names.BOOLEAN: "BOOLEAN", names.TEXT: "STRING",
        }  # fmt: skip
        if type(to.this) is self._exp.Interval and to.this.this is None:
            return f"INTERVAL {self._unit(to.this.args.get('unit'))}"
        if to.this not in types or to.args.get("nested"):
            raise self._refusal(to)
        sizes = [self._literal(one.this) for one in to.expressions]
        return types[to.this] + (f"({', '.join(sizes)})" if sizes else "")

    def _refusal(self, node: Any) -> ValueError:
        exp = self._exp
        if isinstance(node, exp.Query) or node.args.get("query") is not None:
            what = "a subquery"
        elif isinstance(node, exp.Lambda):
            what = "a lambda"
        elif isinstance(node, exp.Window):
            what = "a window"
        elif isinstance(node, exp.Dot):
            what = f"{shown(node.sql('spark'))}, a name of several parts,"
        elif isinstance(node, exp.Func):
            what = f"the function {shown(node.sql_name().lower())}"
        else:
            what = shown(node.sql("spark"))
        return ValueError(f"{what} is not allowed in a lifetime; {ALLOWED}")


def _listed(value: Any) -> list[Any]:
    if value is None or isinstance(value, bool):
        return []
    return value if isinstance(value, list) else [value]


def _name(name: str) -> str:
    if not name.isprintable() or "${" in name:
        raise ValueError(f"{shown(name)} is not a name of a column that a lifetime can use")
    return f"`{name.replace('`', '``')}`"
