"""The sample tells the truth about real flights, and writing it twice changes nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from datetime import date
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow  # reads a year of flights

SCRIPT = Path(__file__).resolve().parents[2] / "include" / "sample" / "flights.py"


@pytest.fixture(scope="module")
def sample() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sample_flights", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def flights(sample: ModuleType) -> pd.DataFrame:
    return sample.read_flights()


@pytest.fixture(scope="module")
def two_days(
    sample: ModuleType, flights: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("flights")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "read_flights", lambda: flights)  # read once for all tests
        sample.write_flights(folder, [date(2013, 1, 3), date(2013, 1, 2)])
    return folder


def utc(text: str) -> pd.Timestamp:
    return pd.Timestamp(text, tz="UTC")


def the(flights: pd.DataFrame, carrier: str, flight: int, day: str) -> pd.Series:
    """The one flight with this number that was reported on this UTC day."""
    found = flights[
        (flights["carrier"] == carrier)
        & (flights["flight"] == flight)
        & (flights["reported_at"].dt.floor("D") == utc(day))
    ]
    assert len(found) == 1
    return found.iloc[0]


def test_first_flight_of_the_year_left_at_5_17_in_new_york(flights: pd.DataFrame) -> None:
    row = the(flights, "UA", 1545, "2013-01-01")
    assert row["tail_number"] == "N14228"
    assert row["departed_at"] == row["reported_at"] == utc("2013-01-01 10:17")
    assert row["landed_at"] == utc("2013-01-01 14:04")
    assert row["air_time_min"] == 227


def test_departure_at_2400_is_midnight_of_the_next_day(flights: pd.DataFrame) -> None:
    # 30 October, scheduled 23:59, dep_time 2400; daylight saving time, so 4 h behind UTC
    row = the(flights, "B6", 839, "2013-10-31")
    assert row["departed_at"] == utc("2013-10-31 04:00")
    assert row["landed_at"] == utc("2013-10-31 07:02")


def test_delayed_past_midnight_leaves_on_the_day_after_the_scheduled_one(
    flights: pd.DataFrame,
) -> None:
    # 2 January, scheduled 23:59, dep_time 42: 0:42 on 3 January, 5 h behind UTC
    row = the(flights, "B6", 707, "2013-01-03")
    assert row["tail_number"] == "N580JB"
    assert row["departed_at"] == utc("2013-01-03 05:42")


def test_cancelled_flight_is_reported_at_its_scheduled_time_and_has_no_departure(
    flights: pd.DataFrame,
) -> None:
    row = the(flights, "AA", 1925, "2013-01-01")  # 1 January, scheduled 15:00
    assert row["reported_at"] == utc("2013-01-01 20:00")
    assert row[["departed_at", "landed_at", "air_time_min"]].isna().all()


def test_flight_without_air_time_has_left_but_never_landed(flights: pd.DataFrame) -> None:
    row = the(flights, "MQ", 4525, "2013-01-01")
    assert row["departed_at"] == utc("2013-01-01 20:25")
    assert pd.isna(row["landed_at"])


def test_longest_flight_fits_into_twelve_hours(flights: pd.DataFrame) -> None:
    longest = flights.loc[flights["air_time_min"].idxmax()]
    assert (longest["carrier"], longest["flight"], longest["dest"]) == ("UA", 15, "HNL")
    assert longest["landed_at"] - longest["departed_at"] == pd.Timedelta(minutes=695)


def test_counts_are_those_of_the_readme(flights: pd.DataFrame) -> None:
    cancelled = flights["departed_at"].isna()
    no_landing = flights["landed_at"].isna()
    no_key = flights["tail_number"].isna()
    half_hour = flights["reported_at"].dt.ceil("30min")
    found = {
        "flights": len(flights),
        "cancelled": cancelled.sum(),
        "no air time": (no_landing & ~cancelled).sum(),
        "no tail number": no_key.sum(),
        "bad": (cancelled | no_landing | no_key).sum(),
        "planes": flights["tail_number"].nunique(),
        "midnight": (flights["reported_at"] == flights["reported_at"].dt.floor("D")).sum(),
        "dead on arrival": (flights["landed_at"] <= half_hour).sum(),
        "lands before it leaves": (flights["landed_at"] <= flights["departed_at"]).sum(),
    }
    assert found == {
        "flights": 336_776,
        "cancelled": 8_255,
        "no air time": 1_175,
        "no tail number": 2_512,
        "bad": 9_430,
        "planes": 4_043,
        "midnight": 529,
        "dead on arrival": 106,
        "lands before it leaves": 0,
    }


def test_every_day_has_flights(sample: ModuleType, flights: pd.DataFrame) -> None:
    assert sample.all_days() == sorted(set(flights["reported_at"].dt.date))


def test_a_file_holds_its_day_sorted_in_the_promised_columns(
    sample: ModuleType, flights: pd.DataFrame, two_days: Path
) -> None:
    table = pq.ParquetFile(two_days / "day=2013-01-02" / "flights.parquet").read()
    assert table.schema.remove_metadata() == sample.SCHEMA
    assert table.schema.field("landed_at").type == pa.timestamp("us", tz="UTC")
    reported = table.column("reported_at").to_pandas()
    assert reported.is_monotonic_increasing
    assert set(reported.dt.date) == {date(2013, 1, 2)}
    assert len(table) == (flights["reported_at"].dt.date == date(2013, 1, 2)).sum()


def test_only_the_days_asked_for_are_there_and_nothing_unfinished(two_days: Path) -> None:
    files = sorted(str(f.relative_to(two_days)) for f in two_days.rglob("*") if f.is_file())
    assert files == ["day=2013-01-02/flights.parquet", "day=2013-01-03/flights.parquet"]


def test_second_call_reads_and_writes_nothing(
    sample: ModuleType, two_days: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "read_flights", lambda: pytest.fail("read again"))
    before = {f: f.stat().st_mtime_ns for f in two_days.rglob("*")}
    assert sample.write_flights(two_days, [date(2013, 1, 2), date(2013, 1, 3)]) == []
    assert {f: f.stat().st_mtime_ns for f in two_days.rglob("*")} == before


def test_a_day_without_flights_is_refused(sample: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no flights on 2012-12-31"):
        sample.write_flights(tmp_path, [date(2012, 12, 31)])


def test_command_line(two_days: Path) -> None:
    call = [sys.executable, str(SCRIPT), "--folder", str(two_days)]
    done = subprocess.run(
        [*call, "--from", "2013-01-02", "--to", "2013-01-03"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 days written, 2 were there")
    refused = subprocess.run(
        [*call, "--from", "2013-01-03", "--to", "2013-01-02"], capture_output=True
    )
    assert refused.returncode == 2
