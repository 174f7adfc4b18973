"""Line charts as inline SVG: axes, ticks, labels and a legend, without a library or script.

Coordinates are rounded to a tenth of a unit, so that equal numbers give equal bytes. Colours are
classes of `report.css`; lines also differ in their dashes, for print and for colour-blind readers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH = 520
HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 14, 50
MAX_POINTS = 240  # per line; neighbours are averaged
STYLES = 12  # classes series-0 … series-11 of the style sheet
NICE_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def style_class(number: int) -> str:
    """Return the class of the style sheet for an experiment or line, by its number."""
    return f"series-{number % STYLES}"


@dataclass(frozen=True)
class Series:
    """A named line.

    Attributes:
        name: name in the legend.
        points: (x, y), by x.
        style: number of its colour and dashes.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    style: int


def ticks(low: float, high: float, *, max_steps: int) -> list[float]:
    """Return at most `max_steps` + 1 equidistant round numbers that cover `low` to `high`.

    Steps are 1, 2, 2.5 or 5 times a power of ten.
    """
    if high <= low:
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, low + margin
    # One step less than allowed, because rounding both ends outwards can add one.
    smallest_step = (high - low) / (max_steps - 1)
    power = 10.0 ** math.floor(math.log10(smallest_step))
    step = next(
        factor * power for factor in NICE_STEPS if factor * power >= smallest_step * (1 - 1e-9)
    )
    # The tolerance absorbs rounding: 0.3 / 0.1 is below 3.
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def downsample(
    points: Sequence[tuple[float, float]], *, max_points: int
) -> list[tuple[float, float]]:
    """Return at most `max_points` points, each the mean of a group of neighbours."""
    if len(points) <= max_points:
        return list(points)
    size = math.ceil(len(points) / max_points)
    groups = [points[first : first + size] for first in range(0, len(points), size)]
    return [
        (math.fsum(x for x, _ in group) / len(group), math.fsum(y for _, y in group) / len(group))
        for group in groups
    ]


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten from `low` to `high`, both above 0."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
    return [value for value in values if low <= value <= high]


def line_chart(
    name: str,
    series: Sequence[Series],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
) -> Markup:
    """Draw lines over one pair of axes.

    Args:
        name: prefix of ids, unique within the page.
        series: at least one line of at least one finite point.
        title: title for screen readers.
        description: description for screen readers.
        x_label: title of the horizontal axis.
        y_label: title of the vertical axis.
        logarithmic: whether the horizontal axis is; then its values are above 0.
    """
    points = [point for line in series for point in line.points]
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    if logarithmic and x_low < x_high:
        x_ticks = logarithmic_ticks(x_low, x_high)
    else:
        x_low, x_high, x_ticks = _linear(x_low, x_high)
    y_ticks = ticks(min(y for _, y in points), max(y for _, y in points), max_steps=6)
    axes = _Axes(x_low, x_high, y_ticks[0], y_ticks[-1], math.log10 if logarithmic else float)
    elements = [
        Markup(
            '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-labelledby="{}-t {}-d">'
            '<title id="{}-t">{}</title><desc id="{}-d">{}</desc>'
        ).format(WIDTH, HEIGHT, name, name, name, title, name, description),
        *(_grid_line(axes, value) for value in y_ticks),
        *(_tick(axes, value) for value in x_ticks),
        Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            _short((LEFT + WIDTH - RIGHT) / 2), HEIGHT - 8, x_label
        ),
        Markup(
            '<text class="axis" x="{}" y="{}" text-anchor="end" transform="rotate(-90 {} {})">'
            "{}</text>"
        ).format(12, TOP, 12, TOP, y_label),
        *(_line(axes, line) for line in series),
        Markup("</svg>"),
    ]
    return Markup("").join(elements)


def _linear(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return the ends of a horizontal axis and its ticks."""
    if 0 < low < high / 10:
        low = 0.0  # steps count from the start of the phase
    values = ticks(low, high, max_steps=6)
    # Ticks outside the data would leave empty space on the left and right; a single point needs it.
    if low < high:
        return low, high, [value for value in values if low <= value <= high]
    return values[0], values[-1], values


@dataclass(frozen=True)
class _Axes:
    """Value ranges of the axes, and the mapping of values to coordinates of the drawing."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    x_scale: Callable[[float], float] = float

    def x(self, value: float) -> str:
        low, high, at = map(self.x_scale, (self.x_low, self.x_high, value))
        fraction = (at - low) / (high - low)
        return _short(LEFT + fraction * (WIDTH - LEFT - RIGHT))

    def y(self, value: float) -> str:
        # SVG counts downwards.
        fraction = (value - self.y_low) / (self.y_high - self.y_low)
        return _short(HEIGHT - BOTTOM - fraction * (HEIGHT - TOP - BOTTOM))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def number_label(value: float) -> str:
    """Return the label of a tick: ``1.5k`` for 1,500, ``2M`` for two million."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * unit or (abs(value) >= unit and value % (unit / 10) == 0):
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}".replace("-", "−")


def _grid_line(axes: _Axes, value: float) -> Markup:
    y = axes.y(value)
    return Markup(
        '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text class="tick" x="{}" y="{}" dy="0.32em" text-anchor="end">{}</text>'
    ).format(LEFT, WIDTH - RIGHT, y, y, LEFT - 7, y, number_label(value))


def _tick(axes: _Axes, value: float) -> Markup:
    x, floor = axes.x(value), HEIGHT - BOTTOM
    return Markup(
        '<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>'
    ).format(x, x, floor, floor + 4, x, floor + 20, number_label(value))


def _line(axes: _Axes, line: Series) -> Markup:
    style = style_class(line.style)
    points = [(axes.x(x), axes.y(y)) for x, y in downsample(line.points, max_points=MAX_POINTS)]
    if len(points) == 1:
        return Markup('<circle class="dot {}" cx="{}" cy="{}" r="4"/>').format(style, *points[0])
    path = " ".join(f"{x},{y}" for x, y in points)
    return Markup('<polyline class="line {}" points="{}"/>').format(style, path)


def legend(series: Sequence[Series]) -> Markup:
    """Return the legend: a sample of each line with its name."""
    items = Markup("").join(
        Markup(
            '<li><svg class="key" viewBox="0 0 28 10" aria-hidden="true">'
            '<line class="line {}" x1="1" x2="27" y1="5" y2="5"/></svg>{}</li>'
        ).format(style_class(line.style), escape(line.name))
        for line in series
    )
    return Markup('<ul class="legend">{}</ul>').format(items)
