"""What counts as Ctrl-C, which also reaches Spark's JVM and its workers."""

from __future__ import annotations

import pytest

from tidetable.cli.ending import is_interrupted, status_of


class PythonException(Exception):
    """As PySpark calls what a worker has raised."""


def raised_on_the_way_out() -> BaseException:
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError("the JVM is gone")  # as when a frame is to be given back
    except OSError as error:
        return error


def test_an_interrupt_is_seen_behind_what_it_has_caused() -> None:
    assert is_interrupted(KeyboardInterrupt())
    assert is_interrupted(raised_on_the_way_out())
    assert is_interrupted(PythonException("Traceback ...\nKeyboardInterrupt\n"))


def test_other_errors_are_what_they_are() -> None:
    assert not is_interrupted(OSError("KeyboardInterrupt"))
    assert not is_interrupted(PythonException("ZeroDivisionError"))


def test_it_ends_with_the_status_of_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(raised_on_the_way_out(), as_json=False) == 130
    assert "nothing is half done" in capsys.readouterr().err
