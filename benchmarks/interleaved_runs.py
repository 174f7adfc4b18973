"""Compare the times of commands: interleaved, one process per run.

A command prints one line of JSON with `seconds`, measured inside it after its imports, and its
other counts. Rounds alternate (a b c, a b c, ...) so that a slow period of the machine affects all
commands; ratios are medians of the ratios within a round.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

Result = dict[str, Any]


def rounds(
    commands: Mapping[str, Sequence[str]],
    count: int,
    *,
    environment: Mapping[str, str] | None = None,
) -> dict[str, list[Result]]:
    """Run every command once per round; return the results of each, round by round."""
    results: dict[str, list[Result]] = {name: [] for name in commands}
    for number in range(count):
        for name, command in commands.items():
            print(f"round {number + 1}/{count}: {name}", file=sys.stderr, flush=True)
            results[name].append(_run(name, command, environment))
            print(f"  {json.dumps(results[name][-1])}", file=sys.stderr, flush=True)
    return results


def _run(name: str, command: Sequence[str], environment: Mapping[str, str] | None) -> Result:
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        sys.exit(f"{name} failed with {process.returncode}:\n{process.stderr[-2000:]}")
    result: Result = json.loads(lines[-1])
    return result


def seconds(results: Sequence[Result]) -> float:
    """Return the median of the measured seconds."""
    return median(result["seconds"] for result in results)


def ratio(slower: Sequence[Result], faster: Sequence[Result]) -> float:
    """Return how many times longer `slower` took, as the median over rounds."""
    return median(a["seconds"] / b["seconds"] for a, b in zip(slower, faster, strict=True))


def machine() -> str:
    """Return processor, cores, memory, Python and date, for the head of a table."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{len(models)} x {models[0]}, {memory:.0f} GB, Python {platform.python_version()}, "
        f"{datetime.date.today()}"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
