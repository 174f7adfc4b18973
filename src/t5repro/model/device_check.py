"""Whether the device of a run is there; also the program that asks TensorFlow.

It asks in a process of its own: a TPU has one process at a time, and the run has no TensorFlow.
"""

import subprocess
import sys

from t5repro.config.sections.devices import TITLES, DevicesSettings
from t5repro.engines.devices import prepare
from t5repro.errors import DeviceError

LONGEST_SECONDS = 300  # a TPU starts in one or two minutes
MARK = "fault: "  # before the message, among lines of libraries


def device_fault(settings: DevicesSettings) -> str:
    """Return why the device cannot be used, in one line; empty if it can."""
    if settings.kind == "cpu":
        return ""
    library = TITLES[settings.engine]
    try:
        process = subprocess.run(
            [sys.executable, "-m", "t5repro.model.device_check", settings.model_dump_json()],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return (
            f"devices.kind is {settings.kind!r} and {library} did not start on it within "
            f"{LONGEST_SECONDS} seconds; set devices.kind to 'cpu', or end what uses the device"
        )
    faults = [line for line in process.stdout.splitlines() if line.startswith(MARK)]
    if process.returncode and not faults:
        last_line = process.stderr.strip().splitlines()[-1:] or ["no message"]
        return f"devices.kind is {settings.kind!r} and {library} cannot use it: {last_line[0]}"
    return faults[0].removeprefix(MARK) if faults else ""


def main() -> None:
    """Print why the device of the settings in the first argument cannot be used, if it cannot."""
    try:
        prepare(DevicesSettings.model_validate_json(sys.argv[1]))
    except DeviceError as error:
        print(f"{MARK}{error}")


if __name__ == "__main__":
    main()
