"""Evaluates SQL expressions with delta-rs's engine, so that no JVM is needed."""

from __future__ import annotations

from collections.abc import Sequence

from deltalake import QueryBuilder


def evaluated(
    expressions: Sequence[str], slots: Sequence[tuple[int, int]]
) -> list[tuple[int, ...]]:
    """For each pair of slots, columns `ins` and `exp`, the values of the expressions."""
    values = ", ".join(f"({insertion}, {expiration})" for insertion, expiration in slots)
    columns = ", ".join(f"{sql} AS x{i}" for i, sql in enumerate(expressions))
    rows = f"(SELECT column1 AS ins, column2 AS exp FROM (VALUES {values}))"
    table = QueryBuilder().execute(f"SELECT {columns} FROM {rows}").read_all()
    lists = (table.column(i).to_pylist() for i in range(len(expressions)))
    return list(zip(*lists, strict=True))
