"""Where source and table are: one form for every spelling, and whether two places are apart."""

from __future__ import annotations

import os
import posixpath
import re
from itertools import product
from pathlib import Path

from tidetable.config.mistakes import shown

QUARANTINE, UPDATES = "_quarantine", "_updates"
"""What the paths of the two tables beside an index's own end with."""

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_FILE = re.compile(r"file:(?://(?:localhost)?)?(?=/(?!/))", re.IGNORECASE)
_CATALOG_NAME = re.compile(r"`?[A-Za-z_]\w*`?(?:\.`?\w+`?){1,2}")
# delta-rs panics at the first four, takes a backslash for a slash and %41 for an A.
_NOT_IN_TABLE_PATHS = re.compile(r"[\[\]|^\\\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "wasbs": "az", "abfss": "az", "gs": "gs"}
_LOG = "_delta_log"


def resolved(path: str, base: str) -> str:
    """A path of this machine: absolute, without file:, `~`, `..` and `//`. Another URI as it is.

    A relative path starts at `base`. ValueError if nothing can be at such a path.
    """
    if path[:5].lower() == "file:":
        path = _without_scheme(path)
    elif _URI.match(path):
        return path
    return _normal(str(Path(base, _at_home(path))))


def _at_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~name of nobody: a folder of that name
        return Path(path)


def _without_scheme(path: str) -> str:
    scheme = _FILE.match(path)
    if scheme is None:
        raise ValueError(
            f"{shown(path)} is no folder of this machine; write file:///folder, or the folder alone"
        )
    return path[scheme.end() :]


def _normal(path: str) -> str:
    """As the file system sees it: `..` behind a link leads to where the link leads."""
    parts = path.split("/")
    if ".." in parts:
        after = len(parts) - parts[::-1].index("..")
        path = str(Path(os.path.realpath("/".join(parts[:after])), *parts[after:]))
    return "/" + os.path.normpath(path).lstrip("/")


def table_place(path: str, base: str) -> str:
    """A table's path in its one form; ValueError if no table can be there."""
    place = resolved(path, base)
    # One that was made when such names were still taken for folders stays where it is.
    if _CATALOG_NAME.fullmatch(path) and not Path(place, _LOG).is_dir():
        raise ValueError(
            f"{shown(path)} is a name in a catalog, not a path; write a folder or a URI, "
            f"or ./{path} if a folder of that name is meant"
        )
    if found := _NOT_IN_TABLE_PATHS.search(place):
        odd = found[0] if found[0].isprintable() else ascii(found[0])[1:-1]
        raise ValueError(
            f"{_visible(place)} has {odd} in it, which not all readers of Delta tables can cope "
            "with; write a path without [ ] | ^ \\, control characters and escapes such as %20"
        )
    return place


def _visible(path: str) -> str:
    return shown("".join(one if one.isprintable() else ascii(one)[1:-1] for one in path))


# -- apart -----------------------------------------------------------------------------------------


def tables_at(table: str) -> list[str]:
    """The paths of an index's three tables: its own, the quarantine, the table of updates."""
    return [table, *(table.rstrip("/") + suffix for suffix in (QUARANTINE, UPDATES))]


def overlap(source: str, table: str) -> bool:
    """Whether one may lie in the other: then the source is read, or vacuumed, with the table.

    Paths of this machine are compared as the file system sees them, through links and however
    they are spelled. Placeholders stand for digits, so there is room for a table beside the
    folders that they make.
    """
    return any(_meet(pattern, table) for pattern in _alternatives(_with_digits(source)))


_PLACEHOLDER = re.compile(r"\{([^{}]*%[^{}]*)\}")
_BRACES = re.compile(r"\{([^{}]*)\}")
_DIGITS = {"Y": 4, "j": 3, "%": 0}
_DIGIT = "\0"


def _with_digits(path: str) -> str:
    """`{%Y-%m}` as four digits, a dash, two digits; for which _DIGIT stands."""

    def digits(directive: re.Match[str]) -> str:
        return "%" if directive[1] == "%" else _DIGIT * _DIGITS.get(directive[1], 2)

    return _PLACEHOLDER.sub(lambda found: re.sub("%(.)", digits, found[1]), path)


def _alternatives(path: str) -> list[str]:
    """`data/{a,b}` -> `data/a`, `data/b`."""
    pieces = _BRACES.split(path)
    choices = [piece.split(",") if odd % 2 else [piece] for odd, piece in enumerate(pieces)]
    return ["".join(chosen) for chosen in product(*choices)]


def _meet(pattern: str, table: str) -> bool:
    if (_URI.match(pattern) is None) != (_URI.match(table) is None):
        return False
    names = pattern.split("/")
    fixed = next((n for n, name in enumerate(names) if set(name) & set("*?[\\" + _DIGIT)), None)
    head, rest = "/".join(names[:fixed]) or "/", [] if fixed is None else names[fixed:]
    below = _below(table, head)
    if below is None:
        return _below(head, table) is not None
    return all(_may_be(name, part) for name, part in zip(below, filter(None, rest), strict=False))


def _below(path: str, folder: str) -> list[str] | None:
    """The names that lead from the folder to the path; None if it is not in there."""
    wanted, here = _identity(_real(folder)), _real(path)
    names: list[str] = []
    while _identity(here) != wanted:
        here, name = posixpath.split(here)
        if not name:
            return None
        names.insert(0, name)
    return names


def _real(path: str) -> str:
    """Without links, as far as it exists; of a URI with one name for each store."""
    found = _URI.match(path)
    if found is None:
        return os.path.realpath(path)
    scheme = _SAME_STORE.get(found[1].lower(), found[1].lower())
    bucket, _, key = path[found.end() :].lstrip("/").partition("/")
    return posixpath.normpath(f"/{scheme}:/{bucket.lower()}/{key}")


def _identity(path: str) -> object:
    """Equal for two paths of the same folder, whatever their letters' case says on that disk."""
    if ":/" in path:
        return path
    try:
        status = Path(path).stat()
    except OSError:  # not there yet: a name in a folder
        folder, name = posixpath.split(path)
        return (_identity(folder), name) if name else path
    return status.st_dev, status.st_ino


def _may_be(name: str, part: str) -> bool:
    """Whether a name can be what a part of a pattern stands for."""
    glob = re.escape(part).replace(re.escape(_DIGIT), "[0-9]")
    glob = glob.replace(r"\*", ".*").replace(r"\?", ".")
    glob = re.sub(r"\\\[.*?\\\]", ".", glob)  # one of several characters: any
    return re.fullmatch(glob, name) is not None
