"""Writes the charts over compute of a committed study's report as pictures for a page of docs/.

Run ``python tools/study_pictures.py desk_scaling`` after the study was packed: `STUDY.svg` in
`docs/images` is the loss, `STUDY-TASK.svg` a task. A study without a series of computes has one
picture, the losses over the operations of each training. They have the report's light theme, and
the legend below the drawing.
"""

import argparse
import re
from pathlib import Path

from t5repro.files import write_bytes
from t5repro.report.charts import HEIGHT, LEFT, RIGHT, WIDTH

ROOT = Path(__file__).parents[1]
STYLE_SHEET = ROOT / "src/t5repro/report/report.css"
FIGURES = [  # the first of these that a report has
    re.compile(
        r'<ul class="legend">((?:(?!</?ul).)*)</ul>\s*'
        rf'(<svg class="chart"[^>]* aria-labelledby="{chart}(\S*)-t .*?</svg>)',
        re.DOTALL,
    )
    for chart in ("scaling-1", "loss-operations")
]
ENTRY = re.compile(r'class="line (series-\d+)".*?</svg>(.*?)</li>', re.DOTALL)
RULES = re.compile(r"^(?:\.(?:chart|line|dot|series-\d+)\b.*)$", re.MULTILINE)
COLOUR = re.compile(r"--([a-z0-9]+): (#[0-9a-f]{6})")
ATTRIBUTES = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" style="background:#fff"'
COLUMNS, ROW = 3, 20  # of the legend; a row in units of the chart


def style() -> str:
    """Return the rules of the report's style sheet for charts."""
    sheet = STYLE_SHEET.read_text(encoding="utf-8")
    colours = dict(COLOUR.findall(sheet.partition("@media")[0]))
    rules = "\n".join(RULES.findall(sheet))
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda match: colours[match[1]], rules)


def pictures(study: str) -> dict[str, bytes]:
    """Return file name -> bytes of each picture of a study.

    Args:
        study: a folder of `studies/` whose report has at most one series of computes.
    """
    report = (ROOT / "studies" / study / "report.html").read_text(encoding="utf-8")
    figures = next(filter(None, (figure.findall(report) for figure in FIGURES)), [])
    return {
        f"{study}{task}.svg": _picture(chart, ENTRY.findall(legend)).encode()
        for legend, chart, task in figures
    }


def _picture(chart: str, entries: list[tuple[str, str]]) -> str:
    """Return a chart with the legend, (class, name) of each line, as a file of its own."""
    height = HEIGHT + ROW * -(-len(entries) // COLUMNS)
    width = (WIDTH - LEFT - RIGHT) // COLUMNS
    parts = [
        re.sub(
            r'^<svg class="chart" viewBox="[^"]*"',
            f'<svg {ATTRIBUTES} class="chart" viewBox="0 0 {WIDTH} {height}"',
            chart.removesuffix("</svg>"),
        )
    ]
    for number, (series, name) in enumerate(entries):
        x, y = LEFT + number % COLUMNS * width, HEIGHT + number // COLUMNS * ROW + ROW // 2
        parts.append(f'<line class="line {series}" x1="{x}" x2="{x + 26}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{x + 32}" y="{y}" dy="0.32em">{name}</text>')
    return "\n".join([*parts, f"<style>\n{style()}\n</style></svg>", ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", help="a folder of studies/")
    for name, data in pictures(parser.parse_args().study).items():
        write_bytes(ROOT / "docs/images" / name, data)
        print(f"wrote docs/images/{name}")
