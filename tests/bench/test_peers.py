"""Peers are set up as their documentation says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.systems.catalog import SYSTEMS
from bench.systems.peers import Habit

PLACE = Path("t")


def habit(name: str) -> Habit:
    return Habit(**SYSTEMS[name].make.keywords)  # type: ignore[attr-defined]


def test_deletion_vectors_are_on_or_off_as_the_name_says() -> None:
    assert "'delta.enableDeletionVectors' = 'false'" in habit("append_delete").create_sql(PLACE)
    assert "'delta.enableDeletionVectors' = 'true'" in habit("append_delete_dv").create_sql(PLACE)


def test_layouts() -> None:
    assert "CLUSTER BY (key)" in habit("liquid").create_sql(PLACE)
    assert "expiration_slot INT) USING delta PARTITIONED BY (expiration_slot)" in habit(
        "by_expiration"
    ).create_sql(PLACE)


def test_a_partition_is_dropped_by_its_column_alone() -> None:
    assert habit("by_expiration").delete_sql(PLACE, 3) == (
        "DELETE FROM delta.`t` WHERE expiration_slot <= 3"
    )
    assert habit("by_insertion").delete_sql(PLACE, 3) == (
        "DELETE FROM delta.`t` WHERE expires_at <= TIMESTAMP '2024-01-01 03:00:00'"
    )


def test_optimize() -> None:
    assert habit("zorder").optimize_sql(PLACE) == "OPTIMIZE delta.`t` ZORDER BY (key)"
    assert habit("liquid").optimize_sql(PLACE) == "OPTIMIZE delta.`t`"
    assert habit("zorder").optimize_every == 1


def test_zorder_without_deletion_vectors_differs_from_zorder_in_nothing_else() -> None:
    without = habit("zorder_no_dv")
    assert not without.deletion_vectors
    assert replace(without, deletion_vectors=True) == habit("zorder")
