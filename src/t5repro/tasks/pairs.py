"""Files without columns: aligned translations, plain or SGM, and DPR's blocks of lines."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from t5repro.errors import TaskDataError
from t5repro.tasks.lines import invalid_data, read_lines
from t5repro.tasks.task import Row

SEGMENT = re.compile(r"<seg[^>]*>(.*)</seg>")
DPR_BLOCK_LINES = 5

# Translation


def read_pairs(files: Sequence[Path], split: str, excluded: Counter[str]) -> Iterator[Row]:
    """Yield source and target of files that are aligned line by line.

    Args:
        files: source file, target file, source file, target file, ...
        split: unused.
        excluded: counts ``empty_side``, pairs with an empty text, which TFDS excludes, too.
    """
    if len(files) % 2 or not files:
        raise TaskDataError(
            f"a translation task got the files {[str(path) for path in files]}; "
            "allowed: source and target files in turn; name them in this order under tasks.files"
        )
    count = 0
    for source, target in zip(files[::2], files[1::2], strict=True):
        pairs = zip_longest(_segments(source), _segments(target))
        for complete_pairs, (source_line, target_line) in enumerate(pairs):
            if source_line is None or target_line is None:
                longer = target if source_line is None else source
                # The rest is counted, so that the message has both numbers of lines.
                longer_lines = complete_pairs + 1 + sum(1 for _ in pairs)
                raise TaskDataError(
                    f"{source} and {target} are not aligned: {longer} has {longer_lines} lines, "
                    f"the other {complete_pairs}; allowed: equal numbers of lines; "
                    "download both again, from one release"
                )
            # Counted before empty sides are left out, so that `idx` counts the lines of the files.
            count += 1
            location, source_text = source_line
            _, target_text = target_line
            if not source_text.strip() or not target_text.strip():
                excluded["empty_side"] += 1
                continue
            yield {
                "source": source_text,
                "target": target_text,
                "idx": count - 1,
                "location": location,
            }


def _segments(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a plain file, or the segments of an SGM file."""
    if path.suffix != ".sgm":
        yield from read_lines(path)
        return
    for location, line in read_lines(path):
        if "<seg" not in line:
            continue
        match = SEGMENT.search(line)
        if match is None:
            raise invalid_data(location, "found", line, "a complete <seg>…</seg> in one line")
        yield location, match[1]


# Definite pronoun resolution


def read_pronoun_blocks(files: Sequence[Path], split: str, excluded: Counter[str]) -> Iterator[Row]:
    """Yield blocks of five lines: sentence, pronoun, two candidates, the correct one, blank."""
    count = 0
    for path in files:
        lines = [(location, line.strip()) for location, line in read_lines(path)]
        for first in range(0, len(lines), DPR_BLOCK_LINES):
            block = lines[first : first + DPR_BLOCK_LINES]
            texts = [line for _, line in block]
            location = block[0][0]
            if not any(texts):
                continue  # blank lines at the end of the file
            # The last block may lack its blank line.
            if len(texts) < DPR_BLOCK_LINES - 1 or not all(texts[:4]) or any(texts[4:]):
                raise invalid_data(
                    location,
                    "found the block",
                    texts,
                    "sentence, pronoun, candidates, correct candidate, blank line",
                )
            candidates = [name.strip() for name in texts[2].split(",")]
            if texts[3] not in candidates:
                raise invalid_data(
                    block[3][0], "found the answer", texts[3], f"one of {candidates}"
                )
            yield {
                "sentence": texts[0],
                "pronoun": texts[1],
                "candidates": candidates,
                "label": candidates.index(texts[3]),
                "idx": count,
                "location": location,
            }
            count += 1
