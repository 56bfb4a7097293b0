"""The search: every candidate is simulated and priced; the cheapest that keeps the limits wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidetable.advisor.calibration import Calibration
from tidetable.advisor.candidates import candidates, runs_allowed
from tidetable.advisor.model import Prediction, Simulated, predict
from tidetable.advisor.wishes import Wishes
from tidetable.advisor.workload import Workload
from tidetable.config.scheme import SchemeConfig, as_written

SHOWN = 5

Progress = Callable[[int, int], None]
"""Called with the settings looked at and the settings to look at."""


@dataclass(frozen=True)
class Choice:
    """One setting, what it will cost, and which limits it breaks."""

    setting: SchemeConfig
    prediction: Prediction
    parts: dict[str, float]
    """Seconds of an update interval by what they are spent on."""

    broken: tuple[tuple[str, float, float], ...] = ()
    """(option, what is predicted, what is allowed) of the limits that it does not keep."""

    @property
    def label(self) -> str:
        return self.prediction.label

    @property
    def total_s(self) -> float:
        """Seconds of work in an update interval: the update, the probes and the scans."""
        return sum(self.parts.values())

    @property
    def scheme(self) -> dict[str, Any]:
        """As it is written in the YAML."""
        return as_written(self.setting)

    @property
    def excess(self) -> float:
        """How far the worst broken limit is missed, as a multiple of it."""
        return max((found / max(allowed, 1e-9) for _, found, allowed in self.broken), default=0.0)

    def as_json(self) -> dict[str, Any]:
        return {
            "scheme": self.scheme,
            "label": self.label,
            "total_s": round(self.total_s, 3),
            **self.prediction.as_json(),
            "breaks": [option for option, _, _ in self.broken],
        }


@dataclass(frozen=True)
class Advice:
    """What the search found."""

    workload: Workload
    wishes: Wishes
    best: tuple[Choice, ...]
    """The best few that keep all limits, the best one first; empty if none does."""

    nearest: tuple[Choice, ...]
    """If none does: those that miss the limits by least."""

    looked_at: int
    too_many_runs: int
    """How many were left out by the rule for the number of runs."""

    obstacle: str = ""
    """If none does: which limit is in the way."""

    @property
    def why(self) -> str:
        """Why the first one wins, in a sentence or two."""
        return reason(self.best) if self.best else self.obstacle

    def as_json(self) -> list[dict[str, Any]]:
        """An object for each setting that is shown; the best one says why."""
        return [
            choice.as_json() | {"why": self.why if self.best and place == 0 else None}
            for place, choice in enumerate(self.best or self.nearest)
        ]


def advise(
    workload: Workload,
    calibration: Calibration,
    wishes: Wishes,
    *,
    progress: Progress | None = None,
    shown: int = SHOWN,
) -> Advice:
    """The best settings by seconds of work in an update interval, under the limits."""
    simulated = Simulated(workload)
    allowed = runs_allowed(workload)
    settings = list(candidates(simulated.slots, coarse=simulated.factor > 1))
    found: list[Choice] = []
    crowded = 0
    for place, setting in enumerate(settings, start=1):
        # What has more cells than runs are allowed need not be simulated.
        prediction = None
        if len(setting.build(simulated.slots).cells()) <= allowed:
            prediction = predict(setting, simulated, calibration)
        if prediction is None or prediction.runs > allowed:
            crowded += 1
        else:
            found.append(choice(setting, prediction, wishes))
        if progress is not None:
            progress(place, len(settings))
    found.sort(key=lambda one: (one.total_s, one.prediction.files, one.label))
    keeping = [one for one in found if not one.broken]
    nearest = sorted(found, key=lambda one: one.excess)
    return Advice(
        workload=workload,
        wishes=wishes,
        best=tuple(keeping[:shown]),
        nearest=() if keeping else tuple(nearest[:shown]),
        looked_at=len(settings),
        too_many_runs=crowded,
        obstacle="" if keeping else _obstacle(found),
    )


def choice(setting: SchemeConfig, prediction: Prediction, wishes: Wishes) -> Choice:
    broken = tuple(limit for limit in wishes.limits(prediction) if limit[1] > limit[2])
    return Choice(setting, prediction, wishes.parts(prediction), broken)


# -- in words --------------------------------------------------------------------------------------


def reason(best: Sequence[Choice]) -> str:
    """What the first one spends its time on, and on what the next one would spend more."""
    first = best[0]
    spent = sorted(first.parts.items(), key=lambda part: -part[1])
    most = ", ".join(f"{seconds:.2f} s {_on(what)}" for what, seconds in spent[:3] if seconds > 0)
    told = f"{first.label}: {first.total_s:.2f} s in each update interval, of which {most}."
    other = next((one for one in best[1:] if one.total_s > first.total_s * 1.001), None)
    if other is None:
        return told
    losses = {what: other.parts[what] - first.parts[what] for what in first.parts}
    worst = max(losses, key=lambda what: losses[what])
    gains = {what: -loss for what, loss in losses.items() if loss < -0.005}
    for_it = ""
    if gains:
        saved = max(gains, key=lambda what: gains[what])
        for_it = f", though {gains[saved]:.2f} s less {_on(saved)}"
    return (
        f"{told} {other.label} would take {other.total_s - first.total_s:.2f} s more: "
        f"{losses[worst]:.2f} s more {_on(worst)}{for_it}."
    )


def _on(what: str) -> str:
    return {
        "commit": "on the commit itself",
        "deletion vectors": "on deletion vectors",
        "new rows": "on the new rows",
        "rewriting": "on rewriting rows",
        "files": "on the number of files written",
        "probes": "on probes",
        "scans": "on scans",
    }.get(what, f"on {what}")


def _obstacle(found: Sequence[Choice]) -> str:
    """Which limits no setting keeps; if each has one that does, that they do not go together."""
    if not found:
        return "no setting has few enough files"
    by_option: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        for option, value, allowed in one.broken:
            by_option.setdefault(option, []).append((value, allowed))
    never = {option: limits for option, limits in by_option.items() if len(limits) == len(found)}
    if not never:
        return f"{' and '.join(sorted(by_option))} can each be kept, but not together"
    return "; ".join(
        f"{option} is {limits[0][1]:g}, and the least that any setting reaches is "
        f"{min(value for value, _ in limits):.4g}"
        for option, limits in sorted(never.items())
    )
