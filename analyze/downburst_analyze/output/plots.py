"""Line plots as SVG text, with linear or logarithmic axes, for a page that needs no script and no other file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot."""

    name: str
    points: Points
    filled: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """The label and range of an axis."""

    label: str
    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def over(
        cls, label: str, values: Sequence[float], *, logarithmic: bool = False, from_zero: bool = False
    ) -> "Axis":
        """An axis that holds all values; a logarithmic one only values above zero, and no more than nine decades."""
        usable = [value for value in values if math.isfinite(value) and (value > 0 or not logarithmic)]
        low, high = (min(usable), max(usable)) if usable else (1.0, 10.0)
        if logarithmic:
            low = max(low, high / 1e9)
            return cls(label, low, high if high > low else low * 10, logarithmic=True)
        low = 0.0 if from_zero else low
        return cls(label, low, high if high > low else low + 1)

    def place(self, value: float) -> float:
        """The position of a value, from 0 to 1; values outside are at the border."""
        if self.logarithmic:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Round values to mark."""
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max((last - first) // 6, 1)
            found = [10.0**power for power in range(first, last + 1, every)]
            return found if len(found) > 1 else [self.low, self.high]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= MOST_TICKS)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


def plot(title: str, lines: Sequence[Line], across: Axis, up: Axis) -> str:
    """A figure with a title, and a legend if there are several lines."""
    drawn = "".join(_line(line, number, across, up) for number, line in enumerate(lines))
    legend = _legend(lines) if len(lines) > 1 else ""
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{grid(across, up)}{drawn}</svg>{legend}</figure>"
    )


def _line(line: Line, number: int, across: Axis, up: Axis) -> str:
    if not line.points:
        return ""
    places = [(x_of(across.place(x)), y_of(up.place(y))) for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    area = ""
    if line.filled:
        corners = f"{places[0][0]:.1f},{y_of(0):.1f} {path} {places[-1][0]:.1f},{y_of(0):.1f}"
        area = f'<polygon class="c{number % COLOURS} area" points="{corners}"/>'
    return f'{area}<polyline class="c{number % COLOURS}" points="{path}"{dash}/>'


def grid(across: Axis, up: Axis) -> str:
    """Lines at the ticks of both axes, with their values and labels."""
    parts = []
    for tick in across.ticks():
        x = x_of(across.place(tick))
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{y_of(0)}" x2="{x:.1f}" y2="{y_of(1)}"/>')
        parts.append(f'<text x="{x:.1f}" y="{y_of(0) + 16}" text-anchor="middle">{short(tick)}</text>')
    for tick in up.ticks():
        y = y_of(up.place(tick))
        parts.append(f'<line class="grid" x1="{x_of(0)}" y1="{y:.1f}" x2="{x_of(1)}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{x_of(0) - 6}" y="{y + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    parts.append(f'<text x="{x_of(0.5)}" y="{HEIGHT - 4}" text-anchor="middle">{escape(across.label)}</text>')
    parts.append(f'<text x="{x_of(0)}" y="12">{escape(up.label)}</text>')
    return "".join(parts)


def _legend(lines: Sequence[Line]) -> str:
    entries = (f'<li class="c{number % COLOURS}">{escape(line.name)}</li>' for number, line in enumerate(lines))
    return f"<ul>{''.join(entries)}</ul>"


def short(value: float) -> str:
    """A number for an axis."""
    if value == 0:
        return "0"
    for factor, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {suffix}"
    return f"{value:.3g}"


def x_of(share: float) -> float:
    """The place in the drawing of a share of the way along the horizontal axis."""
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def y_of(share: float) -> float:
    """The place in the drawing of a share of the way up the vertical axis."""
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 22, 42
COLOURS = 5
MOST_TICKS = 6
