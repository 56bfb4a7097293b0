"""When a task fails for good, and when Airflow may try it again."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidetable.core.errors import TransientError, UserError
from tidetable.pipeline.endings import no_pointless_retry


@pytest.mark.parametrize(
    ("raised", "ends_as"),
    [
        (UserError("The YAML is wrong."), AirflowFailException),
        (RuntimeError("[ARITHMETIC_OVERFLOW] long overflow."), AirflowFailException),
        (PermissionError(13, "Permission denied"), AirflowFailException),
        (TransientError("Another was first."), TransientError),
        (OSError("No space left on device"), OSError),
        (RuntimeError("nobody knows"), RuntimeError),
        (AirflowSkipException("Nothing is due."), AirflowSkipException),
    ],
)
def test_what_stays_ends_the_task(raised: Exception, ends_as: type[Exception]) -> None:
    @no_pointless_retry
    def execute() -> None:
        raise raised

    with pytest.raises(ends_as) as caught:
        execute()
    assert type(caught.value) is ends_as
    assert str(caught.value)


def test_what_succeeds_is_handed_on() -> None:
    assert no_pointless_retry(lambda: 7)() == 7
