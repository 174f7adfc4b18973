"""Hash what TensorFlow and NumPy compute on this CPU, and compare with other CPUs (D-043).

python tools/operation_hashes.py [--all]                 compare with every reference
python tools/operation_hashes.py [--all] --output FILE   and write the hashes, name by name
python tools/operation_hashes.py --reference FILE --cpu "AMD EPYC, Zen 4, 1 MiB of L2 cache"

The first two take seconds, with --all half a minute; they end with 1 if an operation differs. The
last writes a reference; the project's are in src/t5repro/model/operations/.
"""

import argparse
import json
import sys
from pathlib import Path

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import set_environment
from t5repro.files import write_text


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="the large products, too")
    parser.add_argument("--output", type=Path, help="JSON file for the hashes of this machine")
    parser.add_argument("--reference", type=Path, help="JSON file for a new reference")
    parser.add_argument("--cpu", help="maker, model and L2 cache, for a new reference")
    options = parser.parse_args()
    set_environment(DevicesSettings())  # before TensorFlow is imported
    from t5repro.model.operations import hashes

    if options.reference:
        if not options.cpu:
            parser.error("--reference needs --cpu, the CPU that the reader is told")
        hashes.write_reference(options.reference, cpu=options.cpu)
        return 0
    computed = hashes.operation_hashes(quick=not options.all)
    if options.output:
        write_text(options.output, json.dumps(computed, indent=1) + "\n")
    comparisons = [hashes.compare(computed, reference) for reference in hashes.references()]
    for comparison in comparisons:
        print(comparison)
    return int(any(comparison.differing for comparison in comparisons))


if __name__ == "__main__":
    sys.exit(main())
