"""Processor time and memory of the search behind `t5repro contamination`, on ids made here.

    python benchmarks/contamination_scan.py [--ids 20000000] [--ngrams 1000000]

The ids have the frequencies of words (Zipf), in documents of 700. Evaluated fields are 50 ids each;
every hundredth is copied from the corpus. The time is that of one n-gram length, with what is
measured of hits.
"""

import argparse
import resource
import time

import interleaved_runs as runs
import numpy as np

from t5repro.contamination.ngrams import NgramIndex
from t5repro.contamination.passages import Measuring, merge
from t5repro.contamination.texts import BATCH_UNITS, Documents

VOCABULARY = 32_128
FIELD_IDS = 50
DOCUMENT_IDS = 700
SEED = 13


def main() -> None:
    """Search a corpus and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, default=20_000_000)
    parser.add_argument("--ngrams", type=int, default=1_000_000)
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    frequencies = 1 / (np.arange(1, VOCABULARY) + 2.7)
    frequencies /= frequencies.sum()
    corpus = random.choice(VOCABULARY - 1, arguments.ids, p=frequencies).astype(np.uint16) + 1
    count = arguments.ngrams // (FIELD_IDS - SEED + 1)
    fields = list(random.choice(VOCABULARY - 1, (count, FIELD_IDS), p=frequencies) + 1)
    for number in range(0, count, 100):
        start = int(random.integers(arguments.ids // DOCUMENT_IDS)) * DOCUMENT_IDS
        fields[number] = corpus[start : start + FIELD_IDS]
    begin = time.process_time()
    index = NgramIndex([field.astype(np.uint32) for field in fields], SEED, shortest=1 << 30)
    indexed = time.process_time()
    measuring = Measuring(index, {}, [""] * count, is_aligned=False, is_covered=False)
    found: dict = {}
    size = BATCH_UNITS // DOCUMENT_IDS * DOCUMENT_IDS
    for first in range(0, arguments.ids, size):
        units = corpus[first : first + size]
        starts = np.append(np.arange(0, len(units), DOCUMENT_IDS), len(units))
        documents = Documents(np.arange(len(starts) - 1), units, starts)
        merge(found, measuring.passages_in(documents, 0))
    seconds = time.process_time() - indexed
    row = [
        f"{arguments.ids:,}",
        f"{count * (FIELD_IDS - SEED + 1):,}",
        f"{indexed - begin:.1f}",
        f"{seconds / arguments.ids * 1e9:.0f}",
        f"{len(found):,}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f}",
    ]
    head = ["ids", "evaluated n-grams", "index, s", "search, ns of processor time an id"]
    print(runs.machine())
    print(runs.table([*head, "fields found", "peak memory, GB"], [row]))


if __name__ == "__main__":
    main()
