"""A request to stop is heard while the lock that its handler wants is held."""

import signal
import subprocess
import sys

import pytest

from t5repro.versions.sigterm import handle_sigterm_in_thread

SCRIPT = """
import os, signal, threading, time
from t5repro.versions.sigterm import handle_sigterm_in_thread
lock, heard, marks = threading.Lock(), [], []
def handler(number, frame):
    with lock:
        heard.append(number)
signal.signal(signal.SIGTERM, handler)
handle_sigterm_in_thread(on_signal=lambda: marks.append(lock.locked()))
handle_sigterm_in_thread()
with lock:
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
    assert not heard and marks == [True] * 3
while len(heard) < 3:
    time.sleep(0.01)
print(heard)
"""


def test_a_handler_that_wants_a_held_lock_is_called_when_it_is_free() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert ran.stdout == f"{[int(signal.SIGTERM)] * 3}\n", ran.stderr


@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_signal_without_a_handler_stays_as_it_is(disposition: signal.Handlers) -> None:
    before = signal.signal(signal.SIGTERM, disposition)
    try:
        handle_sigterm_in_thread()
        assert signal.getsignal(signal.SIGTERM) == disposition
    finally:
        signal.signal(signal.SIGTERM, before)
