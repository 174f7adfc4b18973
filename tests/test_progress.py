"""Progress on a terminal and in a log."""

import contextlib
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from t5repro import progress

JOB = """
import sys
import termios
from pathlib import Path
from t5repro import progress
progress.SECONDS_BETWEEN_LINES = 0
with progress.log_to(Path(sys.argv[1])):
    print("noise of a library")
    with progress.Progress("vocab", total=3, unit="pages") as bar:
        for _ in range(3):
            bar.advance(1, loss=2.5)
    progress.announce("t5repro vocab: finished")
"""


def test_a_log_gets_plain_lines_and_the_noise_and_the_screen_gets_no_noise(tmp_path: Path) -> None:
    log = tmp_path / "logs/vocab.log"
    ran = subprocess.run(
        [sys.executable, "-c", JOB, log], capture_output=True, text=True, check=True
    )
    lines = log.read_text().splitlines()
    assert "noise of a library" in lines
    assert "vocab: 0/3 pages (started)" in lines
    assert any(line.startswith("vocab: 2/3 pages loss=2.5 (") for line in lines)
    assert "vocab: 3/3 pages loss=2.5 (done)" in lines
    assert "noise" not in ran.stderr + ran.stdout
    assert "vocab: 3/3 pages loss=2.5 (done)" in ran.stderr


def test_a_terminal_gets_a_bar_and_the_log_still_plain_lines(tmp_path: Path) -> None:
    log = tmp_path / "vocab.log"
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    subprocess.run([sys.executable, "-c", JOB, log], stderr=theirs, check=True)
    os.close(theirs)
    screen = os.read(ours, 65536).decode()
    os.close(ours)
    assert "3/3" in screen
    assert "vocab:" in screen
    assert "noise" not in screen
    assert "vocab: 3/3 pages loss=2.5 (done)" in log.read_text().splitlines()


def test_jobs_at_the_same_time_have_bars_with_their_nodes(tmp_path: Path) -> None:
    log = "logs/demo/c4_clean/baseline_seed_1/007.log"
    ran = subprocess.run(
        [sys.executable, "-c", JOB, log], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    first, *_, announced = ran.stderr.splitlines()
    assert first == "vocab baseline_seed_1 007: 0/3 pages (started)"
    assert announced == "t5repro vocab: finished"
    assert first in (tmp_path / log).read_text()


def test_a_terminal_has_the_bar_of_one_job_and_lines_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)

    def shown() -> str:
        os.write(theirs, b"|END")
        screen = b""
        while not screen.endswith(b"|END"):
            screen += os.read(ours, 65536)
        return screen.decode()

    with (
        os.fdopen(theirs, "w") as screen,
        monkeypatch.context() as patch,
        contextlib.ExitStack() as beside,
    ):
        patch.setattr(sys, "stderr", screen)
        with progress.Progress("pretrain a", total=2, unit="steps") as first:
            second = beside.enter_context(progress.Progress("pretrain b", total=2, unit="steps"))
            second.advance()
            first.advance(2)
            begun = shown()
            assert "pretrain a:   0%|" in begun
            assert "\x1b[Kpretrain b: 0/2 steps (started)\r\n" in begun  # in place of the bar
            assert "\x1b[Kpretrain b: 1/2 steps (" in begun
            assert "pretrain b:  50%|" not in begun
        assert "pretrain a: 100%|" in shown()
        second.advance()  # the terminal is free
        assert "pretrain b: 100%|" in shown()
    os.close(ours)


def test_a_bar_says_what_happens_before_the_first_item(tmp_path: Path) -> None:
    job = JOB.replace('unit="pages"', 'unit="steps", begins="compiling"')
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    log = tmp_path / "a.log"
    subprocess.run([sys.executable, "-c", job, log], stderr=theirs, check=True)
    os.close(theirs)
    screen = os.read(ours, 65536).decode()
    os.close(ours)
    assert "compiling" in screen.partition("1/3")[0]
    assert "compiling" not in screen.partition("3/3")[2]
    assert "vocab: 0/3 steps (compiling)" in log.read_text().splitlines()


def test_the_remaining_time_leaves_out_what_the_first_item_took(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.Progress("pretrain", total=101, unit="steps", done=50) as bar:
        now[0] += 300  # to compile
        bar.advance(0, loss=3)
        for _ in range(3):
            bar.advance()
            now[0] += 10
        bar.advance()
    assert capfd.readouterr().err.splitlines() == [
        "pretrain: 50/101 steps (started)",
        "pretrain: 50/101 steps loss=3 (running for 5:00)",
        "pretrain: 53/101 steps loss=3 (0.1 steps/s, 8:00 left)",
        "pretrain: 54/101 steps loss=3 (done)",
    ]


def test_an_interrupted_stage_says_that_it_stopped(capfd: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        with progress.Progress("x", total=2, unit="steps") as bar:
            bar.advance()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "x: 1/2 steps (stopped)" in capfd.readouterr().err
