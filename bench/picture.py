"""Plots as plain SVG: what an update costs against what a probe costs, and update by update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from bench.measured import Measured
from bench.systems.catalog import DEFAULT, SYSTEMS

INK, GREY, RULE, PAPER = "#1b2733", "#56636f", "#dde4ea", "#ffffff"
COLOURS = {
    "default": "#1f5fa0",
    "ours": "#6f9fcc",
    "delta": "#b5622a",
    "clickhouse": "#6b8e23",
    "iceberg": "#7a5aa6",
    "limit": "#8a949d",
}
MARKED = ("sweep", "rebuild", "zorder", "append_delete", "append_delete_dv", "liquid")
"""The lines of the second plot: more would be a tangle."""

DASHED = ("append_delete_dv", "liquid")

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 440, 74, 150, 66, 54
_LINE = 15
"""From one label to the next."""

_FONT = 'font-family="system-ui, -apple-system, &quot;Segoe UI&quot;, &quot;DejaVu Sans&quot;, '
_FONT += 'sans-serif"'


def colour(system: str) -> str:
    if system == DEFAULT:
        return COLOURS["default"]
    return COLOURS[SYSTEMS[system].kind]


def trade_off(found: Sequence[Measured], title: str) -> str:
    """A point for each system: to the left are cheap updates, at the bottom cheap probes."""
    shown = [one for one in found if one.probe_ms_delta_rs]
    xs = [one.update_s_mean for one in shown]
    ys = [float(one.probe_ms_delta_rs or 0) for one in shown]
    x, y = _logarithmic(xs, _LEFT, _WIDTH - _RIGHT), _logarithmic(ys, _HEIGHT - _BOTTOM, _TOP)
    drawn = [
        *_grid(_decades(xs), x, "s", upright=True),
        *_grid(_decades(ys), y, "ms", upright=False),
    ]
    points = sorted(zip(shown, xs, ys, strict=True), key=lambda point: -point[2])
    for (one, across, up), label_y in zip(
        points, _apart([y(up) for _, _, up in points]), strict=True
    ):
        at_x, at_y, ink = x(across), y(up), colour(one.system)
        drawn += [
            f'<line x1="{at_x:.1f}" y1="{at_y:.1f}" x2="{_WIDTH - _RIGHT + 4}" y2="{label_y:.1f}" '
            f'stroke="{ink}" stroke-width="0.5" opacity="0.6"/>',
            f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="5" fill="{ink}"/>',
            _label(one.system, label_y),
        ]
    drawn.append(
        _text(_LEFT, _HEIGHT - 12, "seconds of an update, mean (logarithmic)", 12, fill=GREY)
    )
    drawn.append(_text(12, _TOP - 12, "ms of a probe without Spark (logarithmic)", 12, fill=GREY))
    return _picture(title, drawn)


def update_by_update(found: Sequence[Measured], title: str) -> str:
    """A line for each of a few systems: seconds of every update."""
    shown = [one for one in found if one.system in MARKED]
    seconds = [value for one in shown for value in one.seconds]
    last = max(len(one.seconds) for one in shown)
    y = _logarithmic(seconds, _HEIGHT - _BOTTOM, _TOP)
    step = (_WIDTH - _RIGHT - _LEFT) / max(1, last - 1)
    drawn = _grid(_decades(seconds), y, "s", upright=False)
    lines = sorted(shown, key=lambda one: -one.seconds[-1])
    for one, label_y in zip(lines, _apart([y(one.seconds[-1]) for one in lines]), strict=True):
        points = " ".join(
            f"{_LEFT + n * step:.1f},{y(value):.1f}" for n, value in enumerate(one.seconds)
        )
        width = 3 if one.system == DEFAULT else 1.6
        dash = ' stroke-dasharray="5 3"' if one.system in DASHED else ""
        drawn += [
            f'<polyline points="{points}" fill="none" stroke="{colour(one.system)}" '
            f'stroke-width="{width}"{dash}/>',
            _label(one.system, label_y),
        ]
    drawn.append(_text(_LEFT, _HEIGHT - 12, f"update 1 to {last}", 12, fill=GREY))
    drawn.append(_text(12, _TOP - 12, "seconds (logarithmic)", 12, fill=GREY))
    return _picture(title, drawn)


def _apart(heights: Sequence[float]) -> list[float]:
    """Heights from top to bottom, moved so that no two labels overlap and none leaves the plot."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + _LINE) if placed else height)
    lowest = float(_HEIGHT - _BOTTOM)
    for n in range(len(placed) - 1, -1, -1):
        placed[n] = min(placed[n], lowest)
        lowest = placed[n] - _LINE
    return placed


def _label(system: str, height: float) -> str:
    return _text(_WIDTH - _RIGHT + 8, height + 4, system, 12, fill=colour(system))


def _logarithmic(values: Sequence[float], low: float, high: float) -> Callable[[float], float]:
    decades = _decades(values)
    first, last = log10(decades[0]), log10(decades[-1])

    def place(value: float) -> float:
        return low + (high - low) * (log10(max(value, 1e-6)) - first) / (last - first)

    return place


def _decades(values: Sequence[float]) -> list[float]:
    """Round numbers below and above all values: 1, 2 and 5 in every power of ten."""
    low, high = floor(log10(max(1e-6, min(values)))), ceil(log10(max(1e-6, *values)) + 1e-9)
    marks = [m * 10.0**power for power in range(low, high + 1) for m in (1, 2, 5)]
    least = max((mark for mark in marks if mark <= min(values)), default=marks[0])
    most = min((mark for mark in marks if mark >= max(values) and mark > least), default=marks[-1])
    return [mark for mark in marks if least <= mark <= most]


def _grid(
    marks: Sequence[float], place: Callable[[float], float], unit: str, *, upright: bool
) -> list[str]:
    drawn = []
    for mark in marks:
        at = place(mark)
        label = f"{mark:g} {unit}"
        if upright:
            line = f'x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"'
            words = _text(at, _HEIGHT - _BOTTOM + 17, label, 11, fill=GREY, text_anchor="middle")
        else:
            line = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"'
            words = _text(_LEFT - 8, at + 4, label, 11, fill=GREY, text_anchor="end")
        drawn += [f'<line {line} stroke="{RULE}"/>', words]
    return drawn


def _text(x: float, y: float, words: str, size: int, **style: str) -> str:
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{more}>{escape(words)}</text>'


def _picture(title: str, body: Sequence[str]) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" {_FONT} fill="{INK}" role="img" '
        'aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="10" fill="{PAPER}"/>',
        _text(_LEFT, 20, title, 14, font_weight="600"),
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
