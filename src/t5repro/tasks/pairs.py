"""Texts without columns: aligned translations, plain or SGM, and DPR's blocks of lines."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from t5repro.errors import TaskDataError
from t5repro.tasks.lines import fault, read_lines
from t5repro.tasks.task import Row

SEGMENT = re.compile(r"<seg[^>]*>(.*)</seg>")
DPR_BLOCK_LINES = 5

# Translation


def read_pairs(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield source and target of files that are aligned line by line.

    Args:
        files: source file, target file, source file, target file, ...
        split: not looked at.
        left_out: counts ``empty_side``, pairs of which one text is empty (as TFDS does).
    """
    if len(files) % 2 or not files:
        raise TaskDataError(
            f"a translation task got the files {[str(path) for path in files]}; "
            "allowed: a source and a target file, in turn; name them so under tasks.files"
        )
    count = 0
    for source, target in zip(files[::2], files[1::2], strict=True):
        lines = zip_longest(_segments(source), _segments(target))
        for read, (left, right) in enumerate(lines):
            if left is None or right is None:
                longer = target if left is None else source
                total = read + 1 + sum(1 for _ in lines)
                raise TaskDataError(
                    f"{source} and {target} are not aligned: {longer} has {total} lines, "
                    f"the other {read}; allowed: equal numbers of lines; "
                    "download both again, from one release"
                )
            count += 1
            if not left[1].strip() or not right[1].strip():
                left_out["empty_side"] += 1
                continue
            yield {"source": left[1], "target": right[1], "idx": count - 1, "where": left[0]}


def _segments(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a plain file, or the segments of an SGM file."""
    if path.suffix != ".sgm":
        yield from read_lines(path)
        return
    for where, line in read_lines(path):
        if "<seg" not in line:
            continue
        found = SEGMENT.search(line)
        if found is None:
            raise fault(where, "found", line, "a whole <seg>…</seg> in one line")
        yield where, found[1]


# Definite pronoun resolution


def read_pronoun_blocks(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield blocks of five lines: sentence, pronoun, two candidates, the right one, blank."""
    count = 0
    for path in files:
        lines = [(where, line.strip()) for where, line in read_lines(path)]
        for start in range(0, len(lines), DPR_BLOCK_LINES):
            block = lines[start : start + DPR_BLOCK_LINES]
            texts = [line for _, line in block]
            where = block[0][0]
            if not any(texts):
                continue
            if len(texts) < DPR_BLOCK_LINES - 1 or not all(texts[:4]) or any(texts[4:]):
                raise fault(
                    where,
                    "found the block",
                    texts,
                    "sentence, pronoun, candidates, right candidate, blank line",
                )
            candidates = [name.strip() for name in texts[2].split(",")]
            if texts[3] not in candidates:
                raise fault(block[3][0], "found the answer", texts[3], f"one of {candidates}")
            yield {
                "sentence": texts[0],
                "pronoun": texts[1],
                "candidates": candidates,
                "label": candidates.index(texts[3]),
                "idx": count,
                "where": where,
            }
            count += 1
