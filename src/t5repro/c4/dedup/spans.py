"""Units of text as 16-byte keys: lines, or spans of three sentences.

`docs/three_sentence_spans.md` defines spans.
"""

import hashlib
from typing import Literal

import numpy as np

from t5repro.c4.keys import md5
from t5repro.c4.tables import POSITION
from t5repro.c4.text.rules import TERMINAL_PUNCTUATION
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.config.sections.c4 import DedupUnit

Unit = Literal["three_sentence_span", "line"]
SPAN_SENTENCES = 3


def hashed_unit(dedup: DedupUnit) -> Unit | None:
    """Return the unit of text that deduplication compares; None if it is off."""
    return dedup.unit if dedup.unit != "off" else None


def line_keys(text: str) -> bytes:
    r"""Return the concatenated keys of the lines of `text`, split at ``\n``.

    Source: released code, ``c4_utils._emit_url_to_lines``.
    """
    lines = [line.lower().strip().encode("utf-8") for line in text.split("\n")]
    return b"".join([hashlib.md5(line, usedforsecurity=False).digest() for line in lines])


def span_keys(text: str, splitter: SentenceSplitter) -> tuple[bytes, bytes]:
    """Return keys and positions of the spans of `text`: `SPAN_SENTENCES` sentences of one line.

    A line with fewer sentences is one span. Spans that contain only punctuation are skipped.

    Source: released code of 2019, ``c4_utils._emit_url_to_sentences``.
    """
    keys: list[bytes] = []
    positions: list[tuple[int, int, int]] = []
    for number, line in enumerate(text.splitlines()):
        sentences = [sentence.lower() for sentence in splitter.split(line.strip())]
        width = min(len(sentences), SPAN_SENTENCES)
        for start in range(len(sentences) - width + 1 if sentences else 0):
            span = sentences[start : start + width]
            if not all(sentence in TERMINAL_PUNCTUATION for sentence in span):
                keys.append(md5("\n".join(span)))
                positions.append((number, start, width))
    return b"".join(keys), np.array(positions, dtype=POSITION).tobytes()
