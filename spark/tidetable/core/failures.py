"""Errors of others, sorted by what helps: whether the same call can succeed, and what to do.

Spark, Delta, delta-rs and the file system say it in words and class names only, and by way of Py4J
or Spark Connect the same error comes as different types: so the text decides. What is not known
here may pass by itself, and a retry costs little; what is known to stay must not be tried for ever.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PASSES = re.compile(
    r"No space left on device|Disk quota exceeded|Too many open files|OutOfMemoryError|"
    r"Connection (?:refused|reset)|Broken pipe|[Tt]imed out|TimeoutException|SlowDown|"
    r"Too Many Requests|Service Unavailable|ExecutorLostFailure|cancelled because|"
    r"Concurrent\w*Exception|\[DELTA_CONCURRENT|PATH_NOT_FOUND|FileNotFoundException|"
    r"FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND"
)
"""Whatever else such an error says."""

_OTHER_COLUMNS = (
    "The columns of the source and of the table no longer go together: put the source's "
    "columns back, or give the index a new `table:`."
)
_NO_RIGHT = (
    "Give this user the right to read the source and to write the table, or choose other "
    "places in the YAML."
)
_CANNOT = (
    "This version cannot do that with this table or source: use one that can, or another "
    "format, type or table feature."
)
_STAYS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(?i)catalog[-_ ]?(?:managed|owned)|Max catalog version"),
        "A catalog manages the table there, and only by way of it may it be read or written: "
        "choose another place in the YAML (table:, or source.path). It was not touched.",
    ),
    (
        re.compile(
            r"\[(?:BINARY_|INTERVAL_)?ARITHMETIC_OVERFLOW|\[(?:CAST|DATETIME|DECIMAL)_OVERFLOW|"
            r"\[CAST_OVERFLOW_IN|\[NUMERIC_VALUE_OUT_OF_RANGE|\[DIVIDE_BY_ZERO|"
            r"\[DATETIME_FIELD_OUT_OF_BOUNDS|\[INTERVAL_DIVIDED_BY_ZERO"
        ),
        "A value of the source cannot be computed with: correct that row, or take it out.",
    ),
    (
        re.compile(
            r"\[CAST_INVALID_INPUT|\[CANNOT_PARSE_|\[CONVERSION_INVALID_INPUT|"
            r"\[MALFORMED_RECORD_IN_PARSING|\[INVALID_(?:DATETIME|TIMEZONE|VARIANT)|"
            r"\[INCONSISTENT_BEHAVIOR_CROSS_VERSION"
        ),
        "A value of the source is not of the type that its column has to be: correct that row, or "
        "take it out.",
    ),
    (
        re.compile(
            r"\[?DELTA_(?:METADATA_MISMATCH|FAILED_TO_MERGE_FIELDS|MERGE_INCOMPATIBLE|"
            r"SCHEMA_(?:NOT_|CHANGED)|COLUMN_NOT_FOUND|NOT_NULL_|VIOLATE_CONSTRAINT)|"
            r"SchemaMismatchError|\[CANNOT_MERGE_(?:SCHEMAS|INCOMPATIBLE)|"
            r"\[FAILED_READ_FILE\.PARQUET_COLUMN_DATA_TYPE_MISMATCH"
        ),
        _OTHER_COLUMNS,
    ),
    (
        re.compile(
            r"Permission denied|AccessControlException|Access ?Denied|Read-only file system|"
            r"Not a directory|No FileSystem for scheme|Operation not permitted|403 Forbidden"
        ),
        _NO_RIGHT,
    ),
    (
        re.compile(
            r"\[?(?:DELTA_)?UNSUPPORTED_|_(?:UNSUPPORTED|NOT_SUPPORTED)\b|"
            r"DELTA_INVALID_PROTOCOL|UnsupportedOperationException|Kernel error: Unsupported|"
            r"[Uu]nsupported (?:table|reader|writer) feature|[Rr]eader features|"
            r"DELTA_READ_FEATURE_PROTOCOL"
        ),
        _CANNOT,
    ),
    (
        re.compile(r"\[PARSE_|ParseException|\[UNRESOLVED_|\[DATATYPE_MISMATCH|\[INVALID_SCHEMA"),
        "Spark does not understand what it was asked for: correct source.schema, lifetime or the "
        "column names in the YAML.",
    ),
)
_STAY_BY_TYPE = {
    "AnalysisException": "Spark cannot do what it was asked for: correct the source or the YAML.",
    "PermissionError": _NO_RIGHT,
    "SchemaMismatchError": _OTHER_COLUMNS,
    "DeltaProtocolError": _CANNOT,
    "PanicException": "The reader of Delta tables gave up, and will again: look at the table's log "
    "and path.",
    **dict.fromkeys(
        ("TypeError", "AttributeError", "NameError", "NotImplementedError", "ModuleNotFoundError"),
        "This is a fault in Tidetable, not in your data: please report it, with what "
        "TIDETABLE_DEBUG=1 shows.",
    ),
}


@dataclass(frozen=True)
class Failure:
    """What somebody is told about an error that nobody raised on purpose."""

    what: str
    remedy: str | None
    """None where only another try can tell."""

    @property
    def retry_can_help(self) -> bool:
        return self.remedy is None

    @property
    def text(self) -> str:
        return self.what if self.remedy is None else f"{self.what} {self.remedy}"


def failure(error: BaseException) -> Failure:
    """What an error of others means to whoever called."""
    said = str(error)
    what = gist(error)
    remedy = None if _PASSES.search(said) else _remedy(error, said)
    if remedy is None:
        return Failure(what, None)
    return Failure(f"{_ended(what)}{_place(said)}", remedy)


def _remedy(error: BaseException, said: str) -> str | None:
    """What helps where a retry does not; None if that is not known."""
    for pattern, remedy in _STAYS:
        if pattern.search(said):
            return remedy
    names = (one.__name__ for one in type(error).__mro__)
    return next((_STAY_BY_TYPE[name] for name in names if name in _STAY_BY_TYPE), None)


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


# -- where -----------------------------------------------------------------------------------------

_FILE = re.compile(r"(?:file:)?/[^\s'\"`,;()]+\.(?:parquet|orc|avro|csv|json|txt)(?:\.gz)?\b")
_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(.*?)\n\s*\^", re.DOTALL)
_QUOTED_NAME = re.compile(r"`((?:[^`]|``)+)`")
_MERGED = re.compile(r"[Ff]ailed to merge fields '([^']+)'")


def _place(said: str) -> str:
    """The column and the file that the error names, as a sentence; nothing if it names none."""
    fragment, merged = _FRAGMENT.search(said), _MERGED.search(said)
    column = _QUOTED_NAME.search(fragment[1]) if fragment else merged
    files = [one for one in _FILE.findall(said) if "/_delta_log/" not in one]
    told = [f"the column {column[1].replace('``', '`')!r}"] if column else []
    told += [f"the file {files[0]}"] if files else []
    return f" It comes from {' of '.join(told)}." if told else ""


# -- in a line -------------------------------------------------------------------------------------

_NOT_THE_GIST = re.compile(r"An error occurred while calling|JVM stacktrace|Traceback|\s+at |$")
_VAGUE = re.compile(r"Job aborted|\[TASK_WRITE_FAILED|\[FAILED_READ_FILE|Writing job aborted")
_JAVA_CLASS = re.compile(r"^:? ?(?:[a-z]\w*\.)+[A-Z][\w$]*: ")
_TO_PROGRAMMERS = re.compile(r" (?:If necessary set |Use `try_|To (?:tolerate|return) ).*$")
_STATE = re.compile(r" SQLSTATE: \w{5}")


def gist(error: BaseException) -> str:
    """What an unexpected error says, in a line: of Spark's the message, not the stack."""
    lines = str(error).splitlines()
    telling = [line for line in lines if not _NOT_THE_GIST.match(line)]
    if not telling:
        return type(error).__name__
    first = _JAVA_CLASS.sub("", telling[0]).strip()
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    if causes and _VAGUE.match(first):
        first = f"{first} {_JAVA_CLASS.sub('', causes[-1]).strip()}"
    first = _TO_PROGRAMMERS.sub("", _STATE.sub("", first))
    # Python's own errors are often a bare value: KeyError: 'x'.
    is_bare = type(error).__module__ == "builtins" and not isinstance(error, OSError)
    return f"{type(error).__name__}: {first}" if is_bare else first
