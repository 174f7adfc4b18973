"""`rules.clean_page` for many pages at once, on columns of their lines.

Most lines of a crawl are menus: their last byte shows that they have no terminal punctuation. The
few remaining lines are tested by operations on whole columns (Arrow). The definition itself
(`rules.clean_line`) decides each line that is long, contains a bracket or may contain a text that a
rule searches for, and `clean_page` each page that one of its lines drops.
"""

import sys
from collections.abc import Sequence
from functools import reduce
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from t5repro.c4.reasons import FEW_WORDS, LINE_REASONS, LONG_WORD, NO_TERMINAL_PUNCTUATION
from t5repro.c4.text.rules import (
    CURLY_BRACKET_TEXT,
    ELLIPSIS,
    JAVASCRIPT_TEXT,
    LOREM_IPSUM_TEXT,
    POLICY_TEXTS,
    TERMINAL_PUNCTUATION,
    Cleaned,
    CleanRules,
    check_sentences,
    clean_line,
    clean_page,
    has_long_word,
    has_paragraphs,
)
from t5repro.c4.wet.pages import Page

WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
# Last bytes of a line that may have terminal punctuation: the punctuation itself, a bracket of a
# citation mark behind it, white space that is stripped, or nothing.
CANDIDATE_LAST_BYTES = frozenset(
    (b"", *(text.encode()[-1:] for text in (*TERMINAL_PUNCTUATION, "]", *WHITE_SPACE)))
)
# The rules that search for text change no line without any of these.
RULE_TEXTS = (LOREM_IPSUM_TEXT, JAVASCRIPT_TEXT, CURLY_BRACKET_TEXT, *POLICY_TEXTS)
# RE2 folds cases as `str.lower` does, the Kelvin sign too. Of the other letters whose lower case
# is ASCII none completes a rule text: a capital I with dot becomes two characters.
DECIDED_ALONE = "|".join(rf"\Q{text}\E" for text in ("[", *RULE_TEXTS))

# What becomes of a line: a position in `LINE_REASONS`, or one of these.
_KEPT, _BLANK, _DROPS_PAGE = range(len(LINE_REASONS), len(LINE_REASONS) + 3)
_FATES = _DROPS_PAGE + 1
_LONG_WORD = LINE_REASONS.index(LONG_WORD)
_FEW_WORDS = LINE_REASONS.index(FEW_WORDS)
_NO_TERMINAL_PUNCTUATION = LINE_REASONS.index(NO_TERMINAL_PUNCTUATION)

_LAST_BYTES = pa.array(sorted(CANDIDATE_LAST_BYTES), pa.large_binary())


def clean_bodies(pages: Sequence[Page], rules: CleanRules) -> list[Cleaned]:
    """Return the result of `clean_page` for the text of each page.

    Args:
        pages: pages without a fault, so that their bytes are UTF-8.
        rules: the rules with their parameters.
    """
    is_plain = [_is_plain(page, rules) for page in pages]
    by_columns = iter(_clean_plain([page.body for page in compress(pages, is_plain)], rules))
    return [
        (next(by_columns) if plain else None) or clean_page(page.text, rules)
        for page, plain in zip(pages, is_plain, strict=True)
    ]


def _is_plain(page: Page, rules: CleanRules) -> bool:
    r"""Return whether lines end at ``\n`` only and the rules for columns are all that apply."""
    settings = rules.settings
    if not settings.enabled or rules.has_bad_word is not None or page.has_other_newlines:
        return False
    return not settings.min_paragraphs or has_paragraphs(page.text, settings)


def _clean_plain(bodies: Sequence[bytes], rules: CleanRules) -> list[Cleaned | None]:
    """Return the result for each page; None if a line drops it, which `clean_page` then counts."""
    raw_lines = pc.split_pattern(_column(bodies), b"\n")
    is_candidate = _candidates(raw_lines.flatten(), _max_chars(rules))
    lines = raw_lines.flatten().filter(is_candidate).cast(pa.string())
    lines, fates = _fates(pc.utf8_trim_whitespace(lines), rules)
    pages = pc.list_parent_indices(raw_lines).filter(is_candidate).to_numpy()
    counts = np.bincount(pages * _FATES + fates, minlength=len(bodies) * _FATES)
    counts = counts.reshape(len(bodies), _FATES)
    # Lines that were not candidates have no terminal punctuation.
    all_lines = pc.list_value_length(raw_lines).to_numpy()
    counts[:, _NO_TERMINAL_PUNCTUATION] += all_lines - counts.sum(axis=1)
    ends = np.append(0, np.cumsum(counts[:, _KEPT])).astype(np.int32)
    kept = pa.ListArray.from_arrays(ends, lines.filter(pa.array(fates == _KEPT)))
    return [
        None if row[_DROPS_PAGE] else check_sentences(text, row[_KEPT], tuple(row[:_KEPT]), rules)
        for text, row in zip(pc.binary_join(kept, "\n").to_pylist(), counts.tolist(), strict=True)
    ]


def _max_chars(rules: CleanRules) -> int:
    """Return the length up to which a line has no word that is too long."""
    return rules.settings.max_word_chars or sys.maxsize


def _column(values: Sequence[bytes]) -> pa.Array:
    """Return byte strings as a column."""
    # `pa.array` takes three times as long.
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def _candidates(lines: pa.Array, max_chars: int) -> pa.Array:
    """Return whether each line may have terminal punctuation or a word that is too long."""
    is_candidate = pc.is_in(pc.binary_slice(lines, -1), _LAST_BYTES)
    # Bytes are at least characters, so a short line has no long word.
    return pc.or_(is_candidate, pc.greater(pc.binary_length(lines), max_chars))


def _fates(lines: pa.Array, rules: CleanRules) -> tuple[pa.Array, NDArray[Any]]:
    """Return stripped lines without citation marks, and what becomes of each."""
    min_words, max_chars = rules.settings.min_words_per_line, _max_chars(rules)
    fates = np.full(len(lines), _KEPT)
    # In the reverse order of the rules: the first one of them that applies has the last word.
    # A limited split stops at the last word that is needed.
    words = pc.utf8_split_whitespace(lines, max_splits=min_words - 1)
    fates[pc.list_value_length(words).to_numpy() < min_words] = _FEW_WORDS
    ends = reduce(pc.or_, (pc.ends_with(lines, mark) for mark in TERMINAL_PUNCTUATION))
    is_sentence = _flags(pc.and_not(ends, pc.ends_with(lines, ELLIPSIS)))
    fates[~is_sentence] = _NO_TERMINAL_PUNCTUATION
    sizes = pc.binary_length(lines).to_numpy()
    fates[sizes == 0] = _BLANK
    long_lines = np.flatnonzero(sizes > max_chars)
    with_long_word = [has_long_word(line, max_chars) for line in _texts(lines, long_lines)]
    fates[long_lines[with_long_word]] = _LONG_WORD
    is_alone = pc.match_substring_regex(lines, DECIDED_ALONE, ignore_case=True)
    alone = np.flatnonzero(_flags(is_alone))
    decided = [clean_line(line, rules) for line in _texts(lines, alone)]
    fates[alone] = [_fate(reason) for _, reason in decided]
    without_marks = pa.array([line for line, _ in decided], pa.string())
    return pc.replace_with_mask(lines, is_alone, without_marks), fates


def _flags(column: pa.Array) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return flags


def _texts(lines: pa.Array, numbers: NDArray[Any]) -> list[str]:
    texts: list[str] = lines.take(pa.array(numbers)).to_pylist()
    return texts


def _fate(reason: str | None) -> int:
    """Return what becomes of a line for which `clean_line` gives a reason, or none."""
    if reason is None:
        return _KEPT
    return LINE_REASONS.index(reason) if reason in LINE_REASONS else _DROPS_PAGE
