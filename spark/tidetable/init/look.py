"""A look at a source: what its files are, and a sample of their rows. pyarrow and delta-rs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tidetable.core.errors import UserError
from tidetable.table.log import arrow, open_log
from tidetable.table.read import query

ROWS_MAX = 200_000
FILES_MAX = 40
"""At most so many rows are looked at, of at most so many files, evenly chosen."""

_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.]\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?$"
_ZONE = r"[T ].*(Z|[+-]\d{2}(:?\d{2})?)$"


@dataclass(frozen=True)
class Look:
    """What a source holds."""

    path: str
    """As it was given; absolute if it is local."""

    format: str
    columns: pa.Schema
    """As the files have them; times in text files are text."""

    sample: pa.Table
    """Some of the rows; columns that hold times as timestamps."""

    rows: int
    """In the whole source; a guess by size where only reading all of it would tell."""

    bytes_per_row: float
    """As Parquet."""

    zoneless: frozenset[str]
    """The columns with times that carry no zone."""

    folders: tuple[tuple[str, int], ...] = ()
    """The folder of each file that was looked at, below the path, and its rows in the sample."""

    def folders_by_time(self, arrived_at: str) -> str | None:
        """The placeholders of folders that hold what arrived in a day or an hour, by UTC."""
        patterns = {_pattern(folder) for folder, _ in self.folders}
        pattern = patterns.pop() if len(patterns) == 1 else None
        if pattern is None:
            return None
        place = 0
        for folder, rows in self.folders:
            part = self.sample[arrived_at].slice(place, rows).drop_null()
            place += rows
            if any(
                _filled(pattern, at) != folder for at in pc.min_max(part).as_py().values() if at
            ):
                return None
        return pattern

    @property
    def times(self) -> list[str]:
        """The columns that hold times, of which at least half are there."""
        return [
            name
            for name in self.sample.column_names
            if pa.types.is_timestamp(self.sample.schema.field(name).type)
            and self.sample[name].null_count <= self.sample.num_rows / 2
        ]


def look(source: str) -> Look:
    """Looks at the files, or the Delta table, at this place."""
    if "://" in source:
        return _delta(source, source)
    path = Path(source).absolute()
    if not path.exists():
        raise UserError(f"There is nothing at {source}. Give the folder or file of the rows.")
    if (path / "_delta_log").is_dir():
        return _delta(source, str(path))
    files = _files(path)
    known = Counter(_format(file) for file in files)
    known.pop(None, None)
    if not known:
        raise UserError(
            f"{source} holds no file that ends in {', '.join(_FORMATS)}, and is no Delta table. "
            "For other formats (orc, avro, xml) write the YAML by hand: docs/configuration.md."
        )
    if len(known) > 1:
        raise UserError(
            f"{source} holds files of several formats, {', '.join(map(str, known))}. "
            "Give a folder with one."
        )
    (name,) = known
    assert name is not None
    return _of_files(str(path), name, [file for file in files if _format(file) == name])


def _files(path: Path) -> list[Path]:
    """In order; what Spark takes for hidden is left out."""
    if path.is_file():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)
    )


def _format(file: Path) -> str | None:
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    return _FORMATS.get(suffixes[-1].lower()) if suffixes else None


def _of_files(path: str, name: str, files: list[Path]) -> Look:
    step = max(1, ceil(len(files) / FILES_MAX))
    chosen = files[::-1][::step][::-1]  # the newest is always one of them
    share = ceil(ROWS_MAX / len(chosen))
    parts, folders, counted, seen = [], [], 0, 0
    for file in chosen:
        try:
            dataset = ds.dataset(str(file), format=name)
            part = dataset.head(share)
            counted += dataset.count_rows() if name == "parquet" else part.num_rows
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{file} cannot be read as {name}: {error}") from error
        if part.num_rows < share or name == "parquet":
            seen += file.stat().st_size
        else:  # the head of a large text file: as many bytes as its rows have
            seen += min(file.stat().st_size, part.nbytes)
        parts.append(part)
        folders.append((_below(path, file), part.num_rows))
    try:
        sample = pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        raise UserError(f"The files of {path} have columns that do not go together: {error}") from (
            error
        )
    whole = sum(file.stat().st_size for file in files)
    rows = round(counted * max(1.0, whole / max(1, seen)))
    return replace(_look(path, name, sample, rows, None), folders=tuple(folders))


def _below(path: str, file: Path) -> str:
    inside = file.parent.is_relative_to(path)
    return str(file.parent.relative_to(path)) if inside else "."


def _pattern(folder: str) -> str | None:
    """`day=2024-03-01/05` with placeholders; None if it is not a day, or a day and an hour."""
    found = re.fullmatch(r"(\w+=)?\d{4}-\d{2}-\d{2}(/(\w+=)?\d{2})?", folder)
    if found is None:
        return None
    hour = f"/{found[3] or ''}{{%H}}" if found[2] else ""
    return f"{found[1] or ''}{{%Y-%m-%d}}{hour}"


def _filled(pattern: str, moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(pattern.replace("{", "").replace("}", ""))


def _delta(source: str, path: str) -> Look:
    log = open_log(path)
    if log is None:
        raise UserError(
            f"{source} is not a Delta table. Files are looked at on this machine only: give a "
            "local folder, or write the YAML by hand (docs/configuration.md)."
        )
    # Not of ours, so without cells: what Log says of files does not hold here.
    run = query(log.table)
    rows = int(arrow(run.execute("SELECT count(*) AS n FROM t")).read_all()["n"][0].as_py())
    share = ROWS_MAX / max(1, rows)
    where = "" if share >= 1 else f" WHERE random() < {share:.9f}"
    # DataFusion has text types of its own, of which pyarrow cannot do much.
    schema = pa.schema(log.table.schema().to_arrow())
    sample = arrow(run.execute(f"SELECT * FROM t{where}")).read_all().cast(schema)
    sizes = arrow(log.table.get_add_actions(flatten=True)).read_all()["size_bytes"]
    return _look(path, "delta", sample, rows, sum(sizes.to_pylist()) / max(1, rows))


def _look(path: str, name: str, sample: pa.Table, rows: int, size: float | None) -> Look:
    if not sample.num_rows:
        raise UserError(f"{path} holds no rows yet. Call this again when some have arrived.")
    columns = sample.schema
    zoneless = set()
    for place, field in enumerate(columns):
        moments, has_zone = _moments(sample[field.name])
        if moments is not None:
            sample = sample.set_column(place, field.name, moments)
            if not has_zone:
                zoneless.add(field.name)
    if size is None:
        size = _parquet_bytes(sample) / sample.num_rows
    return Look(path, name, columns, sample, rows, size, frozenset(zoneless))


def _parquet_bytes(sample: pa.Table) -> int:
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(sample, sink)
    except pa.ArrowException:  # a type that Parquet does not have, such as null
        return sample.nbytes
    return int(sink.getvalue().size)


def _moments(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray | None, bool]:
    """The column as microseconds of UTC if it holds times, and whether they carry a zone."""
    kind, utc = column.type, pa.timestamp("us", "UTC")
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(utc), kind.tz is not None
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us")).cast(utc), False
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None, False
    there = column.drop_null()
    if not len(there) or not pc.all(pc.match_substring_regex(there, _ISO)).as_py():
        return None, False
    zoned = pc.all(pc.match_substring_regex(there, _ZONE)).as_py()
    try:
        return column.cast(utc if zoned else pa.timestamp("us")).cast(utc), bool(zoned)
    except pa.ArrowException:
        return None, False
