"""The note in a commit: written and read again, and not taken from anybody else."""

from __future__ import annotations

import json
from math import sqrt
from random import Random

import pytest

from tidetable.table.note import LISTED_SLOTS_MAX, Note, NoteKind


@pytest.mark.parametrize(
    "note",
    [
        Note(index="things", slot=0, previous=None, run="a", kind="load"),
        Note(index="things", slot=-3, previous=None, run="a", live=2, live_by_expiration={-2: 2}),
        Note(
            index="things",
            slot=7,
            previous=0,
            run="b",
            read=10,
            inserted=5,
            dead_on_arrival=2,
            quarantined=3,
            expired=1,
            live=9,
            arrivals={-1: 3, 0: 1, 7: 6},
            late={-4: 1},
            live_by_expiration={8: 1, 12: 8},
            reasons={"no key": 3},
        ),
    ],
    ids=["empty", "below_zero", "full"],
)
def test_a_note_is_read_as_it_was_written(note: Note) -> None:
    assert Note.loads(note.dumps()) == note


@pytest.mark.parametrize(
    "text", [None, "", "by hand", "{", "[1]", '{"slot": 3}', '{"tidetable": 99, "slot": 3}']
)
def test_what_others_write_into_a_commit_is_no_note(text: str | None) -> None:
    assert Note.loads(text) is None


def test_fields_of_a_later_version_are_passed_over() -> None:
    note = Note("things", slot=3, previous=2, run="r", live=2, live_by_expiration={4: 2})
    later = json.loads(note.dumps()) | {"mood": "good", "hash": [1, 2]}
    assert Note.loads(json.dumps(later)) == note


def test_a_kind_is_one_of_ours_or_the_text_of_a_later_version() -> None:
    note = Note("things", slot=3, previous=2, run="r")
    rebuilt = Note.loads(note.as_rebuilt("s").dumps())
    assert rebuilt is not None
    assert rebuilt.kind is NoteKind.REBUILD
    later = Note.loads(json.dumps(json.loads(note.dumps()) | {"kind": "merge"}))
    assert later is not None
    assert (later.kind, later.slot) == ("merge", 3)
    assert Note.loads(later.dumps()) == later


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"tidetable":1}',
        '{"tidetable":1,"slot":"soon","run":"r","index":"things"}',
        '{"tidetable":1,"slot":3}',
        '{"tidetable":1,"slot":3,"run":7,"index":"things"}',
        '{"tidetable":1,"slot":3,"run":"r","index":"things","live":"many"}',
        '{"tidetable":1,"slot":3,"run":"r","index":"things","live_by_expiration":5}',
        '{"tidetable":1,"slot":3,"run":"r","index":"things","arrivals":[1]}',
        '{"tidetable":2,"slot":3,"run":"r","index":"things"}',
    ],
)
def test_what_only_looks_like_a_note_is_somebody_else_s(text: str) -> None:
    assert Note.loads(text) is None


def long_note(slots: int) -> Note:
    """As in a table where a million rows come in each slot and lifetimes are uniform."""
    rate, chance = 1_000_000, Random(1)
    means = ((x, rate * (slots - x) / slots) for x in range(slots))
    forecast = {8 + x: round(chance.gauss(mean, sqrt(mean))) for x, mean in means}
    return Note("things", 7, 6, "r", live=sum(forecast.values()), live_by_expiration=forecast)


def test_a_long_forecast_takes_a_third_of_the_room_of_a_list() -> None:
    note = long_note(10_000)
    listed = json.dumps(list(note.live_by_expiration.values()), separators=(",", ":"))
    assert len(listed) > 65_000
    assert len(note.dumps()) < 25_000
    assert Note.loads(note.dumps()) == note


def test_a_short_forecast_can_be_read_by_people() -> None:
    assert "live_by_expiration" in json.loads(long_note(LISTED_SLOTS_MAX).dumps())
    said = json.loads(long_note(LISTED_SLOTS_MAX + 1).dumps())
    assert "live_by_expiration" not in said
    assert isinstance(said["forecast"], str)


def test_a_long_list_of_an_earlier_version_is_read() -> None:
    note = long_note(1_000)
    said = json.loads(note.dumps())
    del said["forecast"]
    listed = [note.live_by_expiration[8 + x] for x in range(1_000)]
    assert Note.loads(json.dumps(said | {"live_by_expiration": listed})) == note


@pytest.mark.parametrize("text", [5, "", "AAAA", "eNo=", "not base64 at all", "eJwLAgAAVABU"])
def test_a_forecast_that_nobody_packed_makes_no_note(text: object) -> None:
    said = {"tidetable": 1, "index": "things", "slot": 1, "run": "r", "forecast": text}
    assert Note.loads(json.dumps(said)) is None
