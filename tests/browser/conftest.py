"""Debian's Chromium, driven by Playwright, on the pages of a finished run.

`make browser` installs the driver; without it, or without Chromium, the tests are skipped. The
screenshots lie in ``tmp/outputs``. ``T5REPRO_FINISHED_RUN`` names a checkout with a finished run to
look at instead of a small one, which takes minutes.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

CHROMIUM = shutil.which("chromium")
SCREENSHOTS = ROOT / "tmp/outputs"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, NARROW = 1280, 400


@pytest.fixture(scope="module")
def report(browser: Any, request: pytest.FixtureRequest) -> Path:
    """Return the folder of the report of a finished run, which is made only for a browser."""
    named = os.environ.get("T5REPRO_FINISHED_RUN")
    run = Path(named) if named else request.getfixturevalue("finished")
    return Path(run.resolve() / "results/demo/report")


@pytest.fixture(scope="module")  # Playwright's loop of events would stop those of other tests
def browser() -> Iterator[Any]:
    """Return a headless Chromium with an empty profile."""
    driver = pytest.importorskip("playwright.sync_api", reason="`make browser` installs Playwright")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with driver.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any, report: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page of the report; what the browser complains of fails."""
    contexts, complaints = [], []

    def visit(name: str, *, width: int = WIDE, scheme: str = "light") -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((report / name).as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
