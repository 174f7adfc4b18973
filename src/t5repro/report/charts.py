"""Line charts as inline SVG: axes, ticks, labels and a legend, no library, no script.

Coordinates are rounded to a tenth of a unit, so that equal numbers give equal bytes. Colours are
classes of `report.css`; lines differ by their dashes too, for print and for readers who do not
tell colours apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH = 520
HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 14, 50
MOST_POINTS = 240  # a line has no more; neighbours are averaged
SERIES_STYLES = 6  # classes series-0 … series-5 of the style sheet
NICE_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Series:
    """A named line.

    Attributes:
        name: what the legend calls it.
        points: (x, y), in the order of x.
        style: number of its colour and dashes.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    style: int


def ticks(low: float, high: float, *, most: int) -> list[float]:
    """Return at most `most` + 1 round numbers that span from `low` to `high` inclusive.

    The first is at most `low`, the last at least `high`; steps are 1, 2, 2.5 or 5 times a power
    of ten.
    """
    if high <= low:
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, low + margin
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in NICE_STEPS if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def thin(points: Sequence[tuple[float, float]], *, most: int) -> list[tuple[float, float]]:
    """Return at most `most` points: means of neighbours, the ends of x kept by their groups."""
    if len(points) <= most:
        return list(points)
    group = math.ceil(len(points) / most)
    thinned = []
    for start in range(0, len(points), group):
        part = points[start : start + group]
        thinned.append(
            (math.fsum(x for x, _ in part) / len(part), math.fsum(y for _, y in part) / len(part))
        )
    return thinned


def line_chart(
    name: str, series: Sequence[Series], *, title: str, description: str, x_label: str, y_label: str
) -> Markup:
    """Draw lines over one pair of axes.

    Args:
        name: prefix of the ids inside the page, unique in it.
        series: at least one line of at least one finite point.
        title: what a screen reader calls the chart.
        description: what it says of it.
        x_label: name of the horizontal axis.
        y_label: name of the vertical axis.
    """
    points = [point for line in series for point in line.points]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    if 0 < left < right / 10:
        left = 0.0  # steps are counted from the start of the phase
    across = ticks(left, right, most=6)
    if left < right:
        across = [value for value in across if left <= value <= right]
    else:
        left, right = across[0], across[-1]
    upward = ticks(min(y for _, y in points), max(y for _, y in points), most=6)
    axis = _Axes(left, right, upward[0], upward[-1])
    parts = [
        Markup(
            '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-labelledby="{}-t {}-d">'
            '<title id="{}-t">{}</title><desc id="{}-d">{}</desc>'
        ).format(WIDTH, HEIGHT, name, name, name, title, name, description),
        *(_grid_line(axis, value) for value in upward),
        *(_tick(axis, value) for value in across),
        Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            _short((LEFT + WIDTH - RIGHT) / 2), HEIGHT - 8, x_label
        ),
        Markup(
            '<text class="axis" x="{}" y="{}" text-anchor="end" transform="rotate(-90 {} {})">'
            "{}</text>"
        ).format(12, TOP, 12, TOP, y_label),
        *(_line(axis, line) for line in series),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)


@dataclass(frozen=True)
class _Axes:
    left: float
    right: float
    bottom: float
    top: float

    def x(self, value: float) -> str:
        share = (value - self.left) / (self.right - self.left)
        return _short(LEFT + share * (WIDTH - LEFT - RIGHT))

    def y(self, value: float) -> str:
        share = (value - self.bottom) / (self.top - self.bottom)
        return _short(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def number_label(value: float) -> str:
    """Return a tick's number: thousands and millions shortened, no useless zeros."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * unit or (abs(value) >= unit and value % (unit / 10) == 0):
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}".replace("-", "−")


def _grid_line(axis: _Axes, value: float) -> Markup:
    y = axis.y(value)
    return Markup(
        '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text class="tick" x="{}" y="{}" dy="0.32em" text-anchor="end">{}</text>'
    ).format(LEFT, WIDTH - RIGHT, y, y, LEFT - 7, y, number_label(value))


def _tick(axis: _Axes, value: float) -> Markup:
    x, floor = axis.x(value), HEIGHT - BOTTOM
    return Markup(
        '<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>'
    ).format(x, x, floor, floor + 4, x, floor + 20, number_label(value))


def _line(axis: _Axes, line: Series) -> Markup:
    style = line.style % SERIES_STYLES
    places = [(axis.x(x), axis.y(y)) for x, y in thin(line.points, most=MOST_POINTS)]
    if len(places) == 1:
        return Markup('<circle class="dot series-{}" cx="{}" cy="{}" r="4"/>').format(
            style, *places[0]
        )
    path = " ".join(f"{x},{y}" for x, y in places)
    return Markup('<polyline class="line series-{}" points="{}"/>').format(style, path)


def legend(series: Sequence[Series]) -> Markup:
    """Return the key to the lines as a list, a sample of each line beside its name."""
    items = Markup("").join(
        Markup(
            '<li><svg class="key" viewBox="0 0 28 10" aria-hidden="true">'
            '<line class="line series-{}" x1="1" x2="27" y1="5" y2="5"/></svg>{}</li>'
        ).format(line.style % SERIES_STYLES, escape(line.name))
        for line in series
    )
    return Markup('<ul class="legend">{}</ul>').format(items)
