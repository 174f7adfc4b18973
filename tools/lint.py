"""`snakemake --lint` as a gate: every finding fails."""

import re
import subprocess
import sys

FILE = re.compile(r"^Lints for (.*):$")
TITLE = re.compile(r"^    \* (.*):$")


def findings() -> list[str]:
    """Return one line for each finding."""
    process = subprocess.run(
        ["snakemake", "--lint", "--configfile", "configs/demo.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    output = process.stdout + process.stderr
    if process.returncode and "Lints for" not in output:
        return [output]  # Snakemake failed before linting
    file, refused = "", []
    for line in output.splitlines():
        if match := FILE.match(line):
            file = match[1]
        elif match := TITLE.match(line):
            refused.append(f"{file}: {match[1]}")
    return refused


if __name__ == "__main__":
    faults = findings()
    print("\n".join(faults) or "snakemake --lint: clean")
    sys.exit(bool(faults))
