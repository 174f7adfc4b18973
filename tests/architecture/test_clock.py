"""No test judges by the clock: a busy machine is not a fault.

A test waits for an event, not for a number of seconds; `tests/support/hang_guard.py` ends one that
waits in vain. Work is counted in operations, and speed is measured in `benchmarks/`.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT, SUPPORT

STOPWATCHES = {
    f"{name}{unit}"
    for name in ("monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")
    for unit in ("", "_ns")
}
PROCESSOR_TIMES = {("resource", "getrusage"), ("os", "times")}
CALENDARS = {"time", "time_ns"}  # also used to date a file
LIMITS = {"timeout", "deadline"}  # arguments of `wait`, `run` and of Hypothesis


def uses_of_the_clock(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if clock_of(node) in STOPWATCHES | {name for _, name in PROCESSOR_TIMES}:
            yield f"{node.lineno}: a stopwatch"
        elif is_judgement(node) and clock_of(*ast.walk(node)) in CALENDARS:
            yield f"{node.lineno}: elapsed time"
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "timeit"):
            yield f"{node.lineno}: from {node.module} import"
        elif isinstance(node, ast.keyword) and node.arg in LIMITS and not is_none(node.value):
            yield f"{node.value.lineno}: {node.arg}= is a limit in seconds"


def clock_of(*nodes: ast.AST) -> str:
    """Return the first attribute of a module among nodes that is a clock."""
    for node in nodes:
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id == "time" and node.attr in STOPWATCHES | CALENDARS:
            return node.attr
        if (node.value.id, node.attr) in PROCESSOR_TIMES:
            return node.attr
    return ""


def is_judgement(node: ast.AST) -> bool:
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    return is_difference or isinstance(node, ast.Compare)


def is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_no_test_reads_the_clock_or_has_a_limit_of_its_own(path: Path) -> None:
    uses = list(uses_of_the_clock(ast.parse(path.read_text("utf-8"))))
    assert uses == [], (
        "wait for an event instead; tests/support/hang_guard.py ends a test that hangs"
    )


def test_comparisons_of_elapsed_time_are_detected() -> None:
    text = (
        "import time\n"
        "from time import perf_counter\n"
        "began = time.monotonic()\n"
        "assert time.perf_counter_ns() - began < 5\n"
        "assert time.time() - began < 5\n"
        "job.wait(timeout=3)\n"
        "time.sleep(1)\n"
        "job.wait(timeout=None)\n"
        "os.utime(path, (time.time() + 60, 0))\n"
        "resource.getrusage(resource.RUSAGE_CHILDREN)\n"
    )
    lines = {use.split(":")[0] for use in uses_of_the_clock(ast.parse(text))}
    assert lines == {"2", "3", "4", "5", "6", "10"}


def test_a_hanging_test_ends_and_one_on_a_busy_machine_has_more_time(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import os\n"
        "import hang_guard\n"
        "loads = iter([3.0, 3.0, 3.0])\n"
        "hang_guard.load_per_processor = lambda: next(loads)\n"
        "def pytest_timeout_set_timer(item, settings):\n"
        "    hang_guard.start(item, settings)\n"
        "    return True\n"
    )
    (tmp_path / "test_hanging.py").write_text(
        "import signal\n"
        "def test_hanging():\n"
        "    while True:\n"
        "        signal.pause()\n"
        "        print('a limit passed')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--timeout=1", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={"PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stdout.count("a limit passed\n") == 1, ran.stdout
    assert "Timeout (>1.0s) from pytest-timeout" in ran.stdout
