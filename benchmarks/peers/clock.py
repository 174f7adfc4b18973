"""Time calls, and tell how much of the machine others used meanwhile."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def task() -> dict[str, Any]:
    """Return what to measure, from the command line."""
    arguments: dict[str, Any] = json.loads(sys.argv[1])
    return arguments


def measure(call: Callable[[], Any], calls: int) -> None:
    """Call once to compile, then some times; print the fastest as JSON."""
    call()
    results = []
    for _ in range(calls):
        busy, own, begin = busy_seconds(), time.process_time(), time.perf_counter()
        call()
        seconds = time.perf_counter() - begin
        processor = time.process_time() - own
        other_seconds = busy_seconds() - busy - processor
        results.append(
            {
                "seconds": seconds,
                "processor": processor,
                "others": max(0.0, other_seconds / seconds),
            }
        )
    print(json.dumps(min(results, key=lambda result: result["seconds"])))


def busy_seconds() -> float:
    """Return the seconds that all cores were busy since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = (int(field) for field in fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
