"""Time, memory and disk of the index behind `t5repro trace --text`, on ids made here.

    python benchmarks/text_search.py [--ids 50000000] [--folder FOLDER]

The ids have the frequencies of words (Zipf), documents of 50 to 1,500 ids and 2,000 templates of
40 ids that every other document begins with, as pages of one site do. A question is a text of 250
ids, half of it copied in two pieces. The files are in the memory of the machine; from a disk, each
look-up adds its latency.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path
from statistics import median

import interleaved_runs as runs
import numpy as np

from t5repro.audit.suffix_array import Corpus, Segment, SuffixArray, build

VOCABULARY = 32_128
WORD_STARTS = 0.65  # of the pieces
QUESTION_IDS = 250
QUESTIONS = 50


def main() -> None:
    """Build an index, ask it and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, default=50_000_000)
    parser.add_argument("--folder", type=Path, help="for the index, in place of a temporary one")
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    corpus = made(random, arguments.ids)
    before = resource.getrusage(resource.RUSAGE_SELF)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        starts = build(corpus, folder)
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        disk = sum(file.stat().st_size for file in folder.iterdir())
        segments = [Segment.open(folder, number, first, 2) for number, first in enumerate(starts)]
        array = SuffixArray(corpus, segments)
        asked = [ask(array, question(random, corpus)) for _ in range(QUESTIONS)]
    row = [
        f"{len(corpus.ids):,}",
        str(len(segments)),
        f"{seconds / len(corpus.ids) * 1e9:.0f}",
        f"{after.ru_maxrss / 1e6:.1f}",
        f"{disk / corpus.ids.nbytes:.2f}",
        f"{median(asked) * 1e3:.1f}",
        f"{max(asked) * 1e3:.1f}",
    ]
    head = ["ids", "segments", "build, ns of processor time an id", "peak memory, GB"]
    head += ["bytes / bytes of the ids", "question, ms", "slowest, ms"]
    print(runs.machine())
    print(runs.table(head, [row]))


def made(random: np.random.Generator, count: int) -> Corpus:
    """Return a corpus of about `count` ids."""
    ranks = np.arange(1, VOCABULARY - 2)
    frequencies = 1 / (ranks + 2.7)
    drawn = random.choice(len(ranks), count, p=frequencies / frequencies.sum())
    ids = (drawn + 3).astype("<u2")
    lengths = random.integers(50, 1_500, count // 700)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    offsets = np.append(offsets[offsets < count], count).astype("<i8")
    templates = ids[: 2_000 * 40].reshape(2_000, 40).copy()
    for start in offsets[:-1:2]:
        size = min(40, count - start)
        ids[start : start + size] = templates[random.integers(2_000), :size]
    word_starts = random.random(VOCABULARY) < WORD_STARTS
    return Corpus(ids, offsets, word_starts)


def question(random: np.random.Generator, corpus: Corpus) -> np.ndarray:
    """Return a text of which half is in the corpus, in two pieces."""
    pieces = []
    for size in (75, 50):
        start = int(random.integers(len(corpus.ids) - size))
        pieces += [
            corpus.ids[start : start + size],
            corpus.ids[random.integers(len(corpus.ids), size=62)],
        ]
    return np.concatenate(pieces).astype(np.int64)


def ask(array: SuffixArray, text: np.ndarray) -> float:
    """Return the seconds of the longest matches of a text, and of the places of the longest one."""
    begin = time.perf_counter()
    starts = np.flatnonzero(array.corpus.word_starts[text])
    lengths = array.longest_matches(text, starts)
    best = int(np.argmax(lengths))
    array.find(text[starts[best] : starts[best] + lengths[best]], most=10)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
