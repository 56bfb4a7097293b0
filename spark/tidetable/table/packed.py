"""A long list of counts as a short text: for the forecast in the note of each commit.

Neighbours are alike, so what is kept is how much each differs from the one before; by the places of
its bytes, as the upper ones are mostly 0 and zlib leaves little of them.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

_WIDTH = 8
COUNTS_MAX = 2_000_000
"""No window is longer; a text that says more is none of ours."""


def packed(counts: Sequence[int]) -> str:
    """The counts, none of them below 0, as text that JSON leaves as it is."""
    before = [0, *counts]
    steps = [now - last for last, now in zip(before, counts, strict=False)]
    folded = (2 * step if step >= 0 else -2 * step - 1 for step in steps)
    raw = struct.pack(f"<{len(counts)}Q", *folded)
    planes = b"".join(raw[place::_WIDTH] for place in range(_WIDTH))
    return base64.b64encode(zlib.compress(planes, 9)).decode()


def unpacked(text: str) -> list[int]:
    """The counts again; ValueError if the text is none of these."""
    inflate = zlib.decompressobj()
    try:
        planes = inflate.decompress(base64.b64decode(text, validate=True), COUNTS_MAX * _WIDTH)
    except zlib.error as error:
        raise ValueError(f"not packed counts: {error}") from error
    number, rest = divmod(len(planes), _WIDTH)
    if rest or not inflate.eof:
        raise ValueError("not packed counts: there is too much or too little")
    raw = bytearray(len(planes))
    for place in range(_WIDTH):
        raw[place::_WIDTH] = planes[place * number : (place + 1) * number]
    counts, last = [], 0
    for folded in struct.unpack(f"<{number}Q", raw):
        last += folded // 2 if folded % 2 == 0 else -(folded + 1) // 2
        counts.append(last)
    return counts
