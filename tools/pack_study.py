"""Packs the evidence of a finished, sealed run of this checkout into a folder of `studies/`."""

import argparse
from pathlib import Path

from t5repro.lineage.study_archive import pack_study

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="name of the run")
    parser.add_argument("study", type=Path, help="folder to write to")
    arguments = parser.parse_args()
    pack_study(Path(), arguments.run, arguments.study)
