"""Which characters go to a screen, a file or another program."""

from __future__ import annotations

import json
import re

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f\ud800-\udfff]"
)
"""Control characters, marks that turn the direction of text round, and others that nobody sees but
a terminal obeys or a reader is misled by. Not the joiners that some scripts are written with."""


def visible(text: str, *, lines: bool = False) -> str:
    """The text with such characters written as escapes; told so, the ends of lines stay."""
    return _UNSEEN.sub(
        lambda found: found[0] if lines and found[0] == "\n" else _escape(found[0]), text
    )


def visible_json(line: str) -> str:
    """JSON that means the same, with what JSON itself would let through written as \\uXXXX."""
    return _UNSEEN.sub(
        lambda found: json.dumps(found[0])[1:-1] if found[0] > "\x1f" else found[0], line
    )


def _escape(character: str) -> str:
    """As Python writes it, which people know from elsewhere: \\n, \\x1b, \\u202e."""
    return character.encode("unicode_escape", "surrogatepass").decode()
