"""A task of ours outside of Airflow's runner."""

from __future__ import annotations

from typing import Any

import pytest


def logged(monkeypatch: pytest.MonkeyPatch, task: type[Any]) -> list[str]:
    """What tasks of this kind say from now on, in a list that grows."""
    said: list[str] = []

    class Log:
        def info(self, text: str, *words: object) -> None:
            said.append(text % words if words else text)

        warning = info  # Airflow remarks that this is no task runner

    monkeypatch.setattr(task, "log", Log())
    return said
