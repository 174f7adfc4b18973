"""Charts: round ticks that span the data, thinned lines, escaped words, equal bytes."""

import itertools
import math
import re
from html.parser import HTMLParser

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st

from t5repro.report.charts import (
    STYLES,
    Series,
    downsample,
    legend,
    line_chart,
    number_label,
    ticks,
)

FINITE = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 3))


@given(FINITE, FINITE, st.integers(3, 9))
def test_ticks_span_the_data_in_equal_steps(one: float, other: float, most: int) -> None:
    low, high = min(one, other), max(one, other)
    marks = ticks(low, high, max_steps=most)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert marks[0] <= low + slack
    assert marks[-1] >= high - slack
    assert 2 <= len(marks) <= most + 1
    steps = {round((b - a) / (marks[1] - marks[0]), 6) for a, b in itertools.pairwise(marks)}
    assert steps == {1.0}


def test_ticks_are_round_numbers() -> None:
    assert ticks(0.0, 300.0, max_steps=6) == [0, 100, 200, 300]
    assert ticks(1.93, 6.4, max_steps=6) == [1, 2, 3, 4, 5, 6, 7]
    assert ticks(0.0, 524288.0, max_steps=6) == [0, 200000, 400000, 600000]


def test_equal_ends_still_give_a_scale() -> None:
    assert ticks(5.0, 5.0, max_steps=5)[0] < 5.0 < ticks(5.0, 5.0, max_steps=5)[-1]
    assert ticks(0.0, 0.0, max_steps=5) == [-1, -0.5, 0, 0.5, 1]


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=400), st.integers(1, 50))
def test_downsampling_keeps_the_mean(points: list[tuple[float, float]], most: int) -> None:
    points = points[: len(points) // most * most] or points[:1]
    thinned = downsample(points, max_points=most)
    assert len(thinned) <= most
    mean = math.fsum(y for _, y in points) / len(points)
    assert math.fsum(y for _, y in thinned) / len(thinned) == pytest.approx(mean, abs=1e-3)


def test_few_points_are_unchanged() -> None:
    assert downsample([(1, 2), (3, 4)], max_points=2) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (-2, "−2"),
        (1000, "1k"),
        (1500, "1.5k"),
        (1250, "1250"),
        (20000, "20k"),
        (524288, "524.3k"),
        (2_000_000, "2M"),
    ],
)
def test_tick_labels_are_short(value: float, text: str) -> None:
    assert number_label(value) == text


def chart(*series: Series, name: str = "loss") -> str:
    return line_chart(
        name, series, title="Loss <1>", description="falls & falls", x_label="step", y_label="loss"
    )


def test_a_point_has_the_coordinates_of_its_values() -> None:
    svg = chart(Series("a", ((0.0, 0.0), (100.0, 4.0)), 0))
    assert '<polyline class="line series-0" points="58,250 504,14"/>' in svg


def test_a_line_of_one_point_is_a_dot() -> None:
    assert '<circle class="dot series-1"' in chart(Series("a", ((1.0, 2.0),), 1))


def test_title_and_description_are_there_for_screen_readers_and_escaped() -> None:
    svg = chart(Series("a", ((0.0, 1.0), (1.0, 2.0)), 0))
    assert 'role="img" aria-labelledby="loss-t loss-d"' in svg
    assert '<title id="loss-t">Loss &lt;1&gt;</title>' in svg
    assert '<desc id="loss-d">falls &amp; falls</desc>' in svg


def test_the_legend_names_every_line_and_escapes_names() -> None:
    key = legend([Series("a<b", (), 0), Series("c", (), 7), Series("d", (), 13)])
    assert "a&lt;b</li>" in key
    assert "series-7" in key
    assert 'series-1"' in key  # styles repeat after twelve


def test_each_style_has_a_colour_and_another_form_than_its_like() -> None:
    css = (ROOT / "src/t5repro/report/report.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"\.series-(\d+) \{ color: var\((--c\d)\); \}", css))
    assert sorted(map(int, colours)) == list(range(STYLES))
    hollow = re.findall(r"\.series-(\d+)(?=[^{}]*:is\(\.swatch, \.mark\))", css)
    assert sorted(map(int, hollow)) == list(range(STYLES // 2, STYLES))
    for style in range(STYLES // 2):
        assert colours[f"{style}"] == colours[f"{style + STYLES // 2}"]


def test_a_chart_is_balanced_markup() -> None:
    open_tags: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            open_tags.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            assert open_tags.pop() == tag

    Parser().feed(chart(Series("a", tuple((float(x), 1 / (x + 1)) for x in range(999)), 0)))
    assert open_tags == []


def test_equal_numbers_give_equal_bytes() -> None:
    points = tuple((float(x), math.sin(x)) for x in range(1000))
    assert chart(Series("a", points, 0)) == chart(Series("a", points, 0))
