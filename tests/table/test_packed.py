"""Counts as a text, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidetable.table.packed import packed, unpacked


@given(st.lists(st.integers(0, 2**62)))
def test_what_was_packed_comes_out_again(counts: list[int]) -> None:
    assert unpacked(packed(counts)) == counts


def test_counts_that_are_alike_take_next_to_nothing() -> None:
    assert len(packed([1_000_000] * 10_000)) < 250


@pytest.mark.parametrize("change", [lambda text: text[:-4], lambda text: "AAAA" + text])
def test_a_damaged_text_is_refused(change) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="not packed counts"):
        unpacked(change(packed([1, 2, 3])))
