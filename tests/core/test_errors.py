"""Errors as data: each edge says the remedy in its own words."""

from __future__ import annotations

import pickle

import pytest

from tidetable.config import ConfigError, Mistake
from tidetable.core.errors import Replay, TidetableError, TransientError, Update, UserError
from tidetable.output.remedies import as_command
from tidetable.table.damage import Damage, DamagedLog, DamagedTable

ERRORS = [
    UserError("Only this."),
    UserError("There are 3.", "There may be 2.", "Take one away."),
    TransientError("Another was first.", code="lost_race"),
    DamagedTable("2 rows are missing.", remedy=Replay("things", 3)),
    DamagedLog("/t", Damage("1.json", "is empty"), "things"),
    ConfigError("a.yaml", iter([Mistake(3, "key", "is missing"), Mistake(1, "", "is odd")])),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_to_another_process(error: TidetableError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    for one in ("found", "required", "remedy", "code", "retry_can_help"):
        assert getattr(copy, one) == getattr(error, one), one
    assert (type(copy), str(copy)) == (type(error), str(error))


def test_the_text_is_all_that_it_knows() -> None:
    assert str(ERRORS[0]) == "Only this."
    assert str(ERRORS[1]) == "There are 3. There may be 2. Take one away."
    assert str(ERRORS[3]) == "2 rows are missing. Replay things, from slot 3."
    assert str(ERRORS[5]) == "a.yaml:1: is odd\na.yaml:3: key: is missing"


def test_the_command_line_says_which_command_helps() -> None:
    assert ERRORS[3].told(as_command) == (
        "2 rows are missing. Put it right with: tidetable replay things --from 3 (it restores the "
        "slot before and goes again)."
    )
    assert as_command(Update("things")) == "Make it: tidetable update things"
    assert as_command(Replay("things", None, from_source=True, also="Or wait.")) == (
        "Or wait. Load it again: tidetable replay things --from J --from-source, J being the first "
        "slot to apply again."
    )
    assert as_command("Take one away.") == "Take one away."


def test_each_class_has_a_code_of_its_own() -> None:
    assert [one.code for one in ERRORS] == [
        "bad_input", "bad_input", "lost_race", "damaged_table", "damaged_log", "bad_index_file",
    ]  # fmt: skip
