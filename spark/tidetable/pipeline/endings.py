"""How a task fails: at once and for good where a retry would find the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidetable.core.errors import Remedy, Replay, TidetableError, Update
from tidetable.core.failures import failure
from tidetable.pipeline.dag_ids import by_hand_dag_id

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
            raise AirflowFailException(error.told(in_airflow)) from None
        except Exception as error:
            found = failure(error)
            if found.retry_can_help:
                raise
            raise AirflowFailException(found.text) from error

    return wrapped  # type: ignore[return-value]


def in_airflow(remedy: Remedy) -> str:
    """What to do next, for somebody in Airflow: what to choose in the form of which DAG."""
    match remedy:
        case Update():
            return f"Make it with the form of the DAG {by_hand_dag_id(remedy.index)}: update."
        case Replay():
            slot = (
                "a slot of your choice" if remedy.from_slot is None else f"slot {remedy.from_slot}"
            )
            source = ", from the source" if remedy.from_source else ""
            told = (
                f"Put it right with the form of the DAG {by_hand_dag_id(remedy.index)}: "
                f"replay from {slot}{source}."
            )
            return f"{remedy.also} {told}".lstrip()
    return str(remedy)
