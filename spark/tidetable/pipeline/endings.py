"""How a task fails: at once and for good where a retry would find the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidetable.core.errors import TidetableError
from tidetable.core.failures import failure

Execute = TypeVar("Execute", bound=Callable[..., Any])


def no_pointless_retry(execute: Execute) -> Execute:
    """For a task's `execute`: what stays wrong until somebody mends it ends the task."""

    @wraps(execute)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        try:
            return execute(*arguments, **named)
        except AirflowException:
            raise  # skips, waits and ends of the task's own
        except TidetableError as error:
            if error.retry_can_help:
                raise
            raise AirflowFailException(str(error)) from None
        except Exception as error:
            found = failure(error)
            if found.retry_can_help:
                raise
            raise AirflowFailException(found.text) from error

    return wrapped  # type: ignore[return-value]
