"""What a source may be: the formats of files that Spark reads, and the options of each.

Spark takes the name of any class on its class path as a format, and hands it any option: a
database, another file system, a file of the machine that it runs on. A YAML names none of these.
The options are those that Spark and Delta document for reading, less the few that name another
place to read from or a column that the index makes itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidetable.config.mistakes import shown, suggestion

_FILES = (
    "ignoreCorruptFiles", "ignoreMissingFiles", "modifiedAfter", "modifiedBefore",
    "pathGlobFilter", "recursiveFileLookup",
)  # fmt: skip
_TEXT = (
    "dateFormat", "enableDateTimeParsingFallback", "encoding", "locale", "mode", "samplingRatio",
    "timestampFormat", "timestampNTZFormat", "timeZone",
)  # fmt: skip
FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": (*_FILES, "datetimeRebaseMode", "int96RebaseMode", "mergeSchema"),
    "csv": (
        *_FILES, *_TEXT, "charset", "charToEscapeQuoteEscaping", "comment", "delimiter",
        "emptyValue", "enforceSchema", "escape", "header", "ignoreLeadingWhiteSpace",
        "ignoreTrailingWhiteSpace", "inferSchema", "lineSep", "maxCharsPerColumn", "maxColumns",
        "multiLine", "nanValue", "negativeInf", "nullValue", "positiveInf", "preferDate", "quote",
        "sep", "timeFormat", "unescapedQuoteHandling",
    ),
    "json": (
        *_FILES, *_TEXT, "allowBackslashEscapingAnyCharacter", "allowComments",
        "allowNonNumericNumbers", "allowNumericLeadingZeros", "allowSingleQuotes",
        "allowUnquotedControlChars", "allowUnquotedFieldNames", "charset", "dropFieldIfAllNull",
        "lineSep", "multiLine", "prefersDecimal", "primitivesAsString", "timeFormat",
    ),
    "delta": ("timestampAsOf", "versionAsOf"),
    "orc": (*_FILES, "mergeSchema"),
    "avro": (
        *_FILES, "avroSchema", "datetimeRebaseMode", "enableStableIdentifiersForUnionType",
        "ignoreExtension", "mode", "positionalFieldMatching", "recursiveFieldMaxDepth",
        "stableIdentifierPrefixForUnionType",
    ),
    "xml": (
        *_FILES, *_TEXT, "attributePrefix", "charset", "excludeAttribute", "ignoreNamespace",
        "ignoreSurroundingSpaces", "inferSchema", "nullValue", "rowTag", "valueTag",
        "wildcardColName",
    ),
}  # fmt: skip
"""The options of each format, as Spark spells them; it takes them in any case."""


def checked_format(name: str) -> str:
    """The format as Spark spells it; ValueError if it is none of the list."""
    if name.lower() not in FORMATS:
        raise ValueError(
            f"{shown(name)} is not a format of files that an index reads; allowed are "
            f"{', '.join(FORMATS)}{suggestion(name.lower(), FORMATS)}"
        )
    return name.lower()


def option_mistakes(names: list[str], format_name: str) -> Iterator[tuple[str, str]]:
    """The options that the format does not have, each with a sentence."""
    allowed = {name.lower(): name for name in FORMATS[format_name]}
    seen: dict[str, str] = {}
    for name in names:
        small = name.lower()
        if small not in allowed:
            near = suggestion(name, allowed.values())
            yield (
                name,
                f"not an option for {format_name}; allowed are "
                f"{', '.join(sorted(allowed.values(), key=str.lower))}{near}",
            )
        elif small in seen:
            yield name, f"the same option as {seen[small]}; keep one of the two"
        seen[small] = name


def as_spark_spells(options: Mapping[str, str], format_name: str) -> dict[str, str]:
    """The options under one spelling, so that ours and the user's cannot stand side by side."""
    spelled = {name.lower(): name for name in FORMATS[format_name]}
    return {spelled[name.lower()]: value for name, value in options.items()}
