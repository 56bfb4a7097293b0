"""Files grow with their table."""

from __future__ import annotations

import pytest

from tidetable.core.file_size import FILE_BYTES_MAX, target_file_bytes

MB, GB, TB = 1024**2, 1024**3, 10**12


@pytest.mark.parametrize(
    ("least", "table", "wanted"),
    [
        (64 * MB, 0, 64 * MB),
        (MB, 20 * 10**9, MB),  # what a user asks for counts as long as files are few
        (64 * MB, 2 * TB, 64 * MB),
        (64 * MB, 10 * TB, 384 * MB),
        (GB, 10 * TB, GB),
        (64 * MB, 100 * TB, 2 * GB),
        (64 * MB, 1000 * TB, 2 * GB),
        (4 * GB, 100 * TB, 4 * GB),
    ],
)
def test_the_size_of_a_file(least: int, table: int, wanted: int) -> None:
    assert target_file_bytes(least, table) == wanted


@pytest.mark.parametrize("least", [MB, 64 * MB])
def test_a_hundred_terabytes_are_below_fifty_thousand_files(least: int) -> None:
    for table in range(TB, 101 * TB, TB // 4):
        assert table / target_file_bytes(least, table) < 50_000


def test_it_never_shrinks_as_the_table_grows() -> None:
    sizes = [target_file_bytes(64 * MB, table * TB) for table in range(200)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == FILE_BYTES_MAX
