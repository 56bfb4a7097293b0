"""Files of one batch whose columns differ: one outcome for each way, whichever file comes first.

| a file ...                                 | outcome                                       |
| lacks a column                             | refused: nothing is filled in with NULL       |
| has a column that the table has not        | left out, or refused: `source.new_columns`    |
| has a narrower type, such as int for bigint | read, and widened to the table's type        |
| has a wider type, or another one           | refused                                       |

Without a table the columns of all files together, in their widest types, are what is expected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import types as T

from tidetable.config.source import NewColumns
from tidetable.core.errors import UserError
from tidetable.engine.footer_schema import FileColumns

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_DIGITS = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 19}


@dataclass(frozen=True)
class Agreed:
    """What the files of a batch have in common, once every difference is dealt with."""

    names: tuple[str, ...]
    """The columns to read."""

    types: Mapping[str, T.DataType | None]
    """What each becomes; None where only Spark can tell, and for times."""

    groups: tuple[tuple[FileColumns, ...], ...]
    """Files that can be read together; mostly all of them."""

    new: Mapping[str, str] = field(default_factory=dict)
    """Columns that are left out, each with a file that has it."""


def agreed(
    files: Sequence[FileColumns],
    known: T.StructType | None,
    times: frozenset[str],
    new_columns: NewColumns,
    partitions: frozenset[str] = frozenset(),
) -> Agreed:
    """How to read these files; UserError if they do not fit the table, or each other.

    `known` are the user's columns of the table, `partitions` those that folders name.
    """
    if known is None:
        wanted = list(dict.fromkeys(name for one in files for name in one.types))
    else:
        wanted = [name for name in known.names if name not in partitions]
    for one in files:
        # First: of two names that Spark takes for one, the other is not missing.
        _check_names(one, list(one.types))
    for one in files:
        _check_complete(one, files, wanted, known)
        # Not before: in a CSV file without a header any value may be there twice.
        _check_names(one, [name.strip() for name in one.header])
    new = {} if known is None else _new(files, known, partitions)
    if new and new_columns is NewColumns.FAIL:
        name, file = next(iter(new.items()))
        raise UserError(
            f"The file {file} has the column {name!r}, which the table does not have, and "
            "source.new_columns is fail. Take it out of the source, or write new_columns: ignore "
            "to leave such columns out."
        )
    _check_times(files, times)
    types: dict[str, T.DataType | None] = dict.fromkeys(wanted)
    for name in wanted:
        if name not in times:
            types[name] = _type_of(name, files, known)
    if known is not None:
        types |= {name: known[name].dataType for name in partitions.intersection(known.names)}
    groups: dict[object, list[FileColumns]] = {}
    for one in files:
        groups.setdefault(_shape(one, wanted), []).append(one)
    return Agreed(tuple(wanted), types, tuple(map(tuple, groups.values())), new)


def fits(narrow: T.DataType, wide: T.DataType) -> bool:
    """Whether every value of the one type is a value of the other."""
    if _same(narrow, wide):
        return True
    if isinstance(narrow, _WHOLE):
        digits = _DIGITS[type(narrow)]
        if isinstance(wide, _WHOLE):
            return digits < _DIGITS[type(wide)]
        if isinstance(wide, T.DecimalType):
            return digits <= wide.precision - wide.scale
        return isinstance(wide, T.DoubleType) and digits <= 10
    if isinstance(narrow, T.FloatType):
        return isinstance(wide, T.DoubleType)
    if isinstance(narrow, T.DecimalType) and isinstance(wide, T.DecimalType):
        whole = narrow.precision - narrow.scale <= wide.precision - wide.scale
        return whole and narrow.scale <= wide.scale
    return False


def _same(one: T.DataType, other: T.DataType) -> bool:
    """Alike but for what may be null, which files tell in different ways."""
    return one == other or one.simpleString() == other.simpleString()


def _check_names(one: FileColumns, names: Sequence[str]) -> None:
    # Spark takes column names that differ only in case for the same.
    for name, times in Counter(name.lower() for name in names if name).items():
        if times > 1:
            twice = [found for found in names if found.lower() == name]
            raise UserError(
                f"The file {one.file} has the columns {', '.join(map(repr, twice))}: names must "
                "differ in more than upper and lower case. Rename one of them in the source."
            )


def _check_complete(
    one: FileColumns,
    files: Sequence[FileColumns],
    wanted: Sequence[str],
    known: T.StructType | None,
) -> None:
    if not one.is_complete:
        return
    lacking = next((name for name in wanted if name not in one.types), None)
    if lacking is None:
        return
    if known is not None:
        who = "the table has"
    else:
        who = f"the file {next(two.file for two in files if lacking in two.types)} has"
    raise UserError(
        f"The file {one.file} has no column {lacking!r}, which {who}; it has "
        f"{', '.join(one.types)}. Values are never made up: write the column into the file, or "
        "move the file away."
    )


def _new(
    files: Sequence[FileColumns], known: T.StructType, partitions: frozenset[str]
) -> dict[str, str]:
    found = {name: one.file for one in files for name in [*one.types, *partitions]}
    return {name: file for name, file in found.items() if name not in known.names}


def _check_times(files: Sequence[FileColumns], times: frozenset[str]) -> None:
    """Each time column is of one type in the whole batch; of which one may change with time."""
    for name in sorted(times):
        kinds: dict[str, str] = {}
        for one in files:
            if (kind := one.types.get(name)) is not None:
                kinds.setdefault(kind.simpleString(), one.file)
        if len(kinds) > 1:
            (a, in_a), (b, in_b) = sorted(kinds.items())[:2]
            raise UserError(
                f"The time {name!r} is of type {a} in the file {in_a} and of type {b} in {in_b}. "
                "Files that are read together must agree: write one of them again, or move it away."
            )


def _type_of(
    name: str, files: Sequence[FileColumns], known: T.StructType | None
) -> T.DataType | None:
    """The type that every file's values fit into; None if only Spark can tell."""
    found = [(kind, one.file) for one in files if (kind := one.types.get(name)) is not None]
    if any(one.header for one in files) or not (found or known):
        return None  # text, whatever it will be read as
    if known is not None:
        wide, whose = known[name].dataType, "the table has"
    else:
        wide, file = found[0]
        for kind, other in found:
            if fits(wide, kind):
                wide, file = kind, other
        whose = f"in the file {file} it is"
    for kind, file in found:
        if not fits(kind, wide):
            raise misfit(name, f"the file {file}", kind, whose, wide)
    return wide


def misfit(name: str, place: str, kind: T.DataType, whose: str, wide: T.DataType) -> UserError:
    """What to say of a type that another one does not hold."""
    return UserError(
        f"The column {name!r} of {place} is of type {kind.simpleString()}; {whose} "
        f"{wide.simpleString()}, which does not hold all such values. Write the file with that "
        "type, or make a new index for the new type."
    )


def _shape(one: FileColumns, wanted: Sequence[str]) -> object:
    """Equal for files that one read can take together."""
    if one.header:
        return one.header
    types = (one.types.get(name) for name in wanted)
    names = tuple(None if kind is None else kind.simpleString() for kind in types)
    return names, one.nanoseconds.intersection(wanted)
