"""Time, memory and disk of the index behind `t5repro trace --text`, on ids made here.

    python benchmarks/text_search.py --like results/demo/tokens/baseline --ids 5000000000

The ids are drawn from real ones, the training ids of a job of the rule `tokens`, and so have their
frequencies; the lengths of the documents are real as well. Every other document begins with one of
2,000 templates of 40 ids, as pages of one site do. `--copies N` repeats the ids and the files of
their segments, which depend on no other segment: a search of 10 GB without the hours of sorting.

A question is a text as long as an answer; half of it is copied in two pieces. It is asked twice:
first after the system has forgotten the files, then again. Of one question of each length the
longest match is compared with a search through all ids. Each step is a process of its own, so that
its memory is its own. A build that was stopped continues. `--folder` takes up to three times the
bytes of the ids.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import interleaved_runs as runs
import numpy as np

from t5repro.audit.suffix_array import Corpus, Segment, SuffixArray, files_of
from t5repro.audit.suffix_build import CONTENT, build
from t5repro.files import read_json, write_json
from t5repro.vocab.token_files import read_ids, read_offsets, split_files

VOCABULARY = 32_128
WORD_STARTS = 0.65  # of the pieces
TEMPLATES, TEMPLATE_IDS = 2_000, 40
DOCUMENTS_AT_ONCE = 20_000
QUESTION_IDS = (25, 60, 250)  # a sentence, a paragraph, an answer of a page
QUESTIONS = 7  # of each length
Facts = dict[str, str]


def main() -> None:
    """Make ids, build their index, ask it and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--like", type=Path, required=True, help="folder with real train.ids")
    parser.add_argument("--ids", type=int, default=50_000_000)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("work/text_search"))
    parser.add_argument("--step", choices=list(STEPS), help="one step; prints JSON")
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(STEPS[arguments.step](arguments)))
        return
    facts: Facts = {}
    for step in STEPS:
        command = [sys.executable, *sys.argv, "--step", step]
        facts |= json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    print(runs.machine())
    print(runs.table(["", ""], [list(fact) for fact in facts.items()]))


def make(arguments: argparse.Namespace) -> Facts:
    """Write ids and offsets, unless they exist."""
    ids_file, offsets_file = split_files(arguments.folder, "train")
    if not ids_file.exists():
        arguments.folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(0)
        real_ids_file, real_offsets_file = split_files(arguments.like, "train")
        real_lengths = np.diff(read_offsets(real_offsets_file))
        lengths = random.choice(real_lengths, int(2 * arguments.ids / real_lengths.mean()) + 9)
        lengths[0] = lengths.max()  # so that a copy begins with a segment of its own
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        offsets = np.append(offsets[offsets < arguments.ids], arguments.ids)
        offsets.astype("<i8").tofile(offsets_file)
        with ids_file.open("wb") as handle:
            for part in drawn(random, np.array(read_ids(real_ids_file, VOCABULARY)), offsets):
                part.tofile(handle)
    corpus = opened(arguments.folder)
    return {"ids made": f"{len(corpus.ids):,}", "documents": f"{len(corpus.offsets) - 1:,}"}


def drawn(random: np.random.Generator, real_ids: np.ndarray, offsets: np.ndarray) -> Iterator:
    """Yield the ids of some documents after another."""
    templates = real_ids[: TEMPLATES * TEMPLATE_IDS].reshape(TEMPLATES, TEMPLATE_IDS)
    for first in range(0, len(offsets) - 1, DOCUMENTS_AT_ONCE):
        bounds = offsets[first : first + DOCUMENTS_AT_ONCE + 1]
        ids = real_ids[random.integers(len(real_ids), size=bounds[-1] - bounds[0], dtype="u4")]
        for start, end in zip(bounds[:-1:2] - bounds[0], bounds[1::2] - bounds[0], strict=False):
            size = min(TEMPLATE_IDS, end - start)
            ids[start : start + size] = templates[random.integers(TEMPLATES), :size]
        yield ids


def opened(folder: Path) -> Corpus:
    """Return the ids that were made."""
    ids_file, offsets_file = split_files(folder, "train")
    word_starts = np.random.default_rng(1).random(VOCABULARY) < WORD_STARTS
    return Corpus(read_ids(ids_file, VOCABULARY), read_offsets(offsets_file), word_starts)


def build_index(arguments: argparse.Namespace) -> Facts:
    """Build the index, or what is missing of it."""
    corpus = opened(arguments.folder)
    begin = time.perf_counter()
    build(corpus, arguments.folder / "index")
    wall = time.perf_counter() - begin
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = usage.ru_utime + usage.ru_stime
    disk = sum(file.stat().st_size for file in (arguments.folder / "index").iterdir())
    return {
        "build, minutes of processor time": f"{seconds / 60:.1f}",
        "build, ns of processor time an id": f"{seconds / len(corpus.ids) * 1e9:.0f}",
        "build, minutes": f"{wall / 60:.1f}",
        "peak memory of the build, GB": f"{usage.ru_maxrss / 1e6:.2f}",
        "bytes of the index / bytes of the ids": f"{disk / corpus.ids.nbytes:.2f}",
    }


def copy(arguments: argparse.Namespace) -> Facts:
    """Repeat all whole segments: ids, offsets and index."""
    if arguments.copies == 1:
        return {}
    index = arguments.folder / "index"
    ids_file, offsets_file = split_files(arguments.folder, "train")
    starts = recorded_starts(arguments.folder)
    segments, size = len(starts) - 1, starts[-1]  # the last one may have room
    offsets = np.array(read_offsets(offsets_file))
    offsets = offsets[: np.searchsorted(offsets, size)]
    block = np.array(read_ids(ids_file, VOCABULARY)[:size])
    hashes = read_json(index / CONTENT)
    with ids_file.open("wb") as handle:
        for number in range(arguments.copies):
            block.tofile(handle)
            for segment in range(segments if number else 0):
                sources = files_of(index, segment)
                for source, target in zip(
                    sources, files_of(index, number * segments + segment), strict=True
                ):
                    shutil.copyfile(source, target)
                    hashes[target.name] = hashes[source.name]
    ends = np.arange(1, arguments.copies)[:, None] * size + offsets
    all_offsets = [offsets, ends.ravel(), [arguments.copies * size]]
    np.concatenate(all_offsets).astype("<i8").tofile(offsets_file)
    write_json(index / CONTENT, hashes)
    return {}


def recorded_starts(folder: Path) -> list[int]:
    """Return the first id of each segment; the hashes of the files are believed."""
    hashes = read_json(folder / "index" / CONTENT)
    return build(opened(folder), folder / "index", lambda path: hashes.get(path.name))


def ask(arguments: argparse.Namespace) -> Facts:
    """Ask questions, first with nothing of the files in memory."""
    random = np.random.default_rng(2)
    corpus = opened(arguments.folder)
    starts = recorded_starts(arguments.folder)
    facts = {
        "ids searched": f"{len(corpus.ids):,}",
        "segments": str(len(starts)),
        "bytes of ids and index, GB": f"{size_of(arguments.folder) / 1e9:.1f}",
    }
    array, opening = None, []
    for length in QUESTION_IDS:
        cold, warm = [], []
        for _ in range(QUESTIONS):
            text = question(random, corpus, length)
            array = corpus = None  # the system keeps pages that are mapped
            forget(arguments.folder)
            seconds, array = timed(partial(open_array, arguments.folder, starts))
            opening.append(seconds)
            cold.append(timed(partial(answer, array, text))[0])
            seconds, (sequence, count) = timed(partial(answer, array, text))
            warm.append(seconds)
            corpus = array.corpus
        check(corpus, sequence, count)
        facts[f"question of {length} ids, cold, s (of the processor)"] = summary(cold)
        facts[f"question of {length} ids, warm, s (of the processor)"] = summary(warm)
    facts["opening, cold, s (of the processor)"] = summary(opening)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return facts | {"peak memory with the check, GB": f"{peak / 1e6:.2f}"}


def open_array(folder: Path, starts: list[int]) -> SuffixArray:
    """Open the index."""
    segments = [files_of(folder / "index", number) for number in range(len(starts))]
    opened_segments = [
        Segment.open(files, start, 2) for files, start in zip(segments, starts, strict=True)
    ]
    return SuffixArray(opened(folder), opened_segments)


def question(random: np.random.Generator, corpus: Corpus, length: int) -> np.ndarray:
    """Return a text of which half is in the corpus, in two pieces."""
    pieces = []
    for size in (length * 3 // 10, length // 5):
        start = int(random.integers(len(corpus.ids) - size))
        pieces.append(corpus.ids[start : start + size])
        pieces.append(corpus.ids[random.integers(len(corpus.ids), size=length // 4)])
    return np.concatenate(pieces).astype(np.int64)


def answer(array: SuffixArray, text: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the longest sequence of a text that the corpus has, and how often it has it."""
    starts = np.flatnonzero(array.corpus.word_starts[text])
    lengths = array.longest_matches(text, starts)
    best = int(np.argmax(lengths))
    sequence = text[starts[best] : starts[best] + lengths[best]]
    return sequence, array.find(sequence, most=10).count


def check(corpus: Corpus, sequence: np.ndarray, count: int) -> None:
    """Compare the number of occurrences with a search through all bytes."""
    mapped, wanted = corpus.ids.base, sequence.astype("<u2").tobytes()
    found, place = 0, mapped.find(wanted)
    while place >= 0:
        document = np.searchsorted(corpus.offsets, place // 2, "right")
        is_inside = place // 2 + len(sequence) <= corpus.offsets[document]
        found += place % 2 == 0 and bool(is_inside)
        place = mapped.find(wanted, place + 1)
    if found != count:
        sys.exit(f"{sequence.tolist()} is found {count} times; a search finds it {found} times")


def forget(folder: Path) -> None:
    """Make the system forget the files, so that they are read from the disk."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def size_of(folder: Path) -> int:
    """Return the bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


Times = tuple[float, float]  # seconds by the clock, and of the processor


def timed(work: Callable[[], Any]) -> tuple[Times, Any]:
    """Return the times of a call, and its result."""
    begin, processor = time.perf_counter(), time.process_time()
    result = work()
    return (time.perf_counter() - begin, time.process_time() - processor), result


def summary(times: list[Times]) -> str:
    """Return the medians, and the slowest by the clock."""
    wall, processor = zip(*times, strict=True)
    return f"{median(wall):.2f} ({median(processor):.2f}), slowest {max(wall):.2f}"


STEPS = {"make": make, "build": build_index, "copy": copy, "ask": ask}

if __name__ == "__main__":
    main()
