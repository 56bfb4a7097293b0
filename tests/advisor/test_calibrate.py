"""What a calibration makes of the seconds that it has measured, without measuring any."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from tidetable.advisor import Calibration, Machine
from tidetable.advisor.calibrate import MANY_GROUPS, ROUNDS_MIN, Reads, Round, agree, fitted
from tidetable.advisor.model import PROBED_BYTES
from tidetable.advisor.trial import ReadTimes

TRUE = Calibration(
    machine=Machine(2),
    commit_s=0.2,
    vectors_s=1.5,
    insert_s_per_row=1.5e-6,
    insert_s_per_byte=8e-9,
    rewrite_s_per_row=7e-7,
    rewrite_s_per_byte=6e-9,
    file_s=0.001,
    probe_s=0.007,
    probe_s_per_file=0.0004,
    probe_s_per_marked_file=0.002,
    probe_s_per_byte=1e-10,
    scan_s=0.006,
    scan_s_per_row=2e-8,
    scan_s_per_byte=7e-10,
    scan_s_per_file=0.0008,
)
WIDE, WIDE_BYTES = 40_000, 40_000_000
NARROW, NARROW_BYTES = 400_000, 8_000_000


def of_round(prices: Calibration) -> Round:
    """How long the updates of a round take at these prices."""
    few = prices.commit_s + prices.file_s

    def new(rows: int, size: int) -> float:
        return few + rows * prices.insert_s_per_row + size * prices.insert_s_per_byte

    def again(rows: int, size: int) -> float:
        return few + rows * prices.rewrite_s_per_row + size * prices.rewrite_s_per_byte

    return Round(
        few=few,
        few_in_many_cells=few + (MANY_GROUPS - 1) * prices.file_s,
        few_with_vectors=few + prices.vectors_s,
        wide_new=new(WIDE, WIDE_BYTES),
        wide_again=again(WIDE, WIDE_BYTES),
        wide_gone=few,
        narrow_new=new(NARROW, NARROW_BYTES),
        narrow_again=again(NARROW, NARROW_BYTES),
        narrow_gone=few,
    )


def of_reads(prices: Calibration) -> Reads:
    """How long it takes to read the tables at these prices.

    The wide rows of one cell lie in two files, of which a probe opens one.
    """

    def table(rows: int, size: int, files: int, probe_s: float, marked: int = 0) -> ReadTimes:
        opening = (files - 1) * prices.scan_s_per_file
        reading = rows * prices.scan_s_per_row + size * prices.scan_s_per_byte
        return ReadTimes(
            rows, size, files, marked, prices.probe_s + probe_s, prices.scan_s + opening + reading
        )

    vectors_s = 6 * prices.probe_s_per_file + 2 * prices.probe_s_per_marked_file
    opening_s = (MANY_GROUPS - 1) * prices.probe_s_per_file
    reading_s = WIDE_BYTES * prices.probe_s_per_byte
    return Reads(
        few=table(0, 0, 1, 0.0),
        few_with_vectors=table(0, 0, 7, vectors_s, marked=2),
        wide=table(WIDE, WIDE_BYTES, 2, PROBED_BYTES * prices.probe_s_per_byte),
        wide_in_many_cells=table(WIDE, WIDE_BYTES, MANY_GROUPS + 1, opening_s + reading_s),
        narrow=table(NARROW, NARROW_BYTES, 1, 0.0),
    )


def test_the_constants_are_those_that_explain_what_was_measured() -> None:
    found = fitted(TRUE.machine, of_round(TRUE), of_reads(TRUE))
    expected = {name: price for name, price in asdict(TRUE).items() if name != "machine"}
    assert {name: asdict(found)[name] for name in expected} == pytest.approx(expected)


def test_noise_makes_no_constant_negative() -> None:
    """Everything that should take longer than the least took no longer."""
    least = Round(*[0.2] * 9)
    reads = Reads(*[ReadTimes(100, 1000, 3, 1, 0.01, 0.01)] * 5)
    found = asdict(fitted(TRUE.machine, least, reads))
    assert all(price >= 0 for name, price in found.items() if name != "machine")
    assert found["commit_s"] == pytest.approx(0.2)
    assert found["insert_s_per_byte"] == found["probe_s_per_file"] == 0


def test_rounds_go_on_until_two_agree() -> None:
    slow, usual, like_it = (
        replace(of_round(TRUE), wide_new=seconds) for seconds in (9.0, 1.0, 1.1)
    )
    assert ROUNDS_MIN > 2
    assert not agree([usual, usual])
    assert not agree([usual, usual, slow])
    assert not agree([usual, slow, usual])
    assert agree([slow, usual, like_it])


def test_the_quicker_of_two_updates_counts() -> None:
    one = replace(of_round(TRUE), few=0.1, wide_new=2.0)
    other = replace(of_round(TRUE), few=0.3, wide_new=1.0)
    assert Round.least([one, other]) == replace(one, wide_new=1.0)
