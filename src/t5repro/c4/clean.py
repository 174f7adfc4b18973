"""The rules for one page: which lines stay, and whether the page does (paper section 2.2).

The order of the tests decides what later ones see, so it is part of the definition and is that of
the released code: a line with ``{`` that has no end mark drops itself and not its page. Every
dropped line and page carries one of the reasons below; each is counted, and lines after the one
that drops a page are not looked at.

To add a rule: add its reason, its test in `_line_fate` in the right place, and a case in
``tests/c4/cases``.
"""

import re
from collections.abc import Callable, Collection
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick

from t5repro.c4.sentences import SentenceSplitter, Splitters
from t5repro.config.schema import CleanSettings

END_MARKS = (".", "?", "!", '"')
ELLIPSIS = "..."
CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
LOREM_IPSUM_TEXT = "lorem ipsum"
JAVASCRIPT_TEXT = "javascript"
CURLY_BRACKET_TEXT = "{"
POLICY_TEXTS = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)

# A line that ends in anything else has no end mark, whatever citation marks are taken out of it.
MAY_END_WELL = frozenset((*END_MARKS, "]"))
OTHER_LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
# A text without any of these is not touched by a rule that looks for text.
RULE_TEXTS = (LOREM_IPSUM_TEXT, JAVASCRIPT_TEXT, CURLY_BRACKET_TEXT, *POLICY_TEXTS)

_ANY_RULE_TEXT = BytesAhoCorasick([text.encode() for text in RULE_TEXTS])
KELVIN_SIGN = "\u212a"  # its lower case is "k"

LONG_WORD = "long_word"
NO_END_MARK = "no_end_mark"
FEW_WORDS = "few_words"
JAVASCRIPT = "javascript"
POLICY = "policy"
LINE_REASONS = (LONG_WORD, NO_END_MARK, FEW_WORDS, JAVASCRIPT, POLICY)

LOREM_IPSUM = "lorem_ipsum"
CURLY_BRACKET = "curly_bracket"
BAD_WORD_IN_LINE = "bad_word_in_line"
FEW_SENTENCES = "few_sentences"
FEW_PARAGRAPHS = "few_paragraphs"
PAGE_REASONS = (FEW_PARAGRAPHS, LOREM_IPSUM, CURLY_BRACKET, BAD_WORD_IN_LINE, FEW_SENTENCES)


class Cleaned(NamedTuple):
    """What the rules made of a page.

    Attributes:
        text: what is left; empty if the page is dropped.
        reason: why the page is dropped; None if it stays.
        kept_lines: lines that no rule dropped.
        dropped_lines: dropped lines, one count for each of `LINE_REASONS`.
    """

    text: str
    reason: str | None
    kept_lines: int
    dropped_lines: tuple[int, ...]


class CleanRules(NamedTuple):
    """The rules with their parameters.

    Attributes:
        settings: thresholds.
        splitter: counts sentences, in each page with the parameters of its language.
        has_bad_word: tells whether a lower-cased line drops its page; None: no such rule.
        withdrawn: tells of a URL whether its page may not be used; None: every page may.
        address_fault: says why a page of this normalised URL is not read; None: all are.
    """

    settings: CleanSettings
    splitter: SentenceSplitter | Splitters
    has_bad_word: Callable[[str], bool] | None = None
    withdrawn: Callable[[str], bool] | None = None
    address_fault: Callable[[str], str | None] | None = None


def clean_page(text: str, rules: CleanRules, lines: list[str] | None = None) -> Cleaned:
    r"""Apply the rules to the text of one page.

    Args:
        text: of the page.
        rules: with their parameters.
        lines: what ``\n`` divides `text` into, each stripped, if that is known.

    Source: released code, ``c4_utils.clean_page``; `has_bad_word`: the code of 2019.
    """
    if not _has_paragraphs(text, rules.settings):
        return Cleaned("", FEW_PARAGRAPHS, 0, (0,) * len(LINE_REASONS))
    if not rules.settings.enabled:
        return Cleaned(text, None, 0, (0,) * len(LINE_REASONS))
    cleaned = None if rules.has_bad_word is not None else _clean_plain_page(text, rules, lines)
    return cleaned or _clean_line_by_line(text, rules)


def _has_paragraphs(text: str, settings: CleanSettings) -> bool:
    """Return whether a page has enough lines that are long.

    Source: released code, ``c4_utils.paragraph_filter``: the third-longest line decides.
    """
    if not settings.min_paragraphs:
        return True
    long_lines = (len(line) >= settings.paragraph_chars for line in text.split("\n"))
    return sum(long_lines) >= settings.min_paragraphs


def _has_sentences(kept: list[str], rules: CleanRules) -> bool:
    """Return whether the lines that stay hold enough sentences; Punkt is asked only in doubt."""
    least = rules.settings.min_sentences
    if len(kept) >= least:  # no line is blank, so each has one
        return True
    return rules.splitter.for_text("\n".join(kept).strip()).lines_have_at_least(least, kept)


def _clean_plain_page(text: str, rules: CleanRules, known: list[str] | None) -> Cleaned | None:
    """Clean a page in which no text rule applies; None if one may, and order decides.

    The rules that look at the end and the words of a line go first and leave little text; that is
    searched once for everything the other rules look for. Most pages hold none of it.
    """
    settings = rules.settings
    longest = settings.max_word_chars or len(text)
    least = settings.min_words_per_line
    lines = _stripped_lines(text) if known is None or _has_other_ends(text) else known
    long_words = few_words = 0
    kept: list[str] = []
    for line in _promising(lines, longest):
        if len(line) > longest and _has_long_word(line, longest):
            long_words += 1
            continue
        if "[" in line:
            line = CITATION.sub("", line)
        if not line.endswith(END_MARKS) or line.endswith(ELLIPSIS):
            continue
        if len(line.split(None, least - 1)) < least:
            few_words += 1
            continue
        kept.append(line)
    joined = "\n".join(kept)
    if _may_hold_rule_text(joined):
        return None
    no_end_mark = len(lines) - long_words - few_words - len(kept)
    counts = (long_words, no_end_mark, few_words, 0, 0)
    if not _has_sentences(kept, rules):
        return Cleaned("", FEW_SENTENCES, len(kept), counts)
    return Cleaned(joined.strip(), None, len(kept), counts)


def _may_hold_rule_text(text: str) -> bool:
    """Return whether a rule that looks for text may find some in `text`, whatever its case.

    The texts are ASCII. Of other letters the Kelvin sign alone becomes one of theirs: a capital I
    with a dot becomes two characters, which none of the texts holds one after the other.
    """
    found = _ANY_RULE_TEXT.find_matches_as_indexes(text.encode("utf-8").lower())
    return bool(found) or KELVIN_SIGN in text


def _promising(lines: list[str], longest: int) -> list[str]:
    """Return the lines that end well, or are longer than a word may be."""
    if max(map(len, lines), default=0) > longest:
        return [line for line in lines if line[-1:] in MAY_END_WELL or len(line) > longest]
    return [line for line in lines if line[-1:] in MAY_END_WELL]


def _stripped_lines(text: str) -> list[str]:
    return list(map(str.strip, text.splitlines()))


def _has_other_ends(text: str) -> bool:
    r"""Return whether `text` holds an end of a line, as Python knows them, that is no ``\n``."""
    return any(end in text for end in OTHER_LINE_ENDS)


def _clean_line_by_line(text: str, rules: CleanRules) -> Cleaned:
    """Clean a page with every rule in its order."""
    kept: list[str] = []
    dropped = dict.fromkeys(LINE_REASONS, 0)
    for raw_line in text.splitlines():
        line, fate = _line_fate(raw_line, rules)
        if fate is None:
            kept.append(line)
        elif fate in dropped:
            dropped[fate] += 1
        else:
            return Cleaned("", fate, len(kept), tuple(dropped.values()))
    counts = tuple(dropped.values())
    if not _has_sentences(kept, rules):
        return Cleaned("", FEW_SENTENCES, len(kept), counts)
    return Cleaned("\n".join(kept).strip(), None, len(kept), counts)


def first_dropped_lines(
    text: str, rules: CleanRules, reasons: Collection[str] = (*LINE_REASONS, *PAGE_REASONS)
) -> dict[str, str]:
    """Return the first line of a page that each of `reasons` drops, as an example of it."""
    found: dict[str, str] = {}
    for raw_line in text.splitlines() if rules.settings.enabled else ():
        if all(reason in found for reason in reasons):
            break
        _, fate = _line_fate(raw_line, rules)
        if fate is not None:
            found.setdefault(fate, raw_line)
        if fate in PAGE_REASONS:
            break
    return found


def _line_fate(line: str, rules: CleanRules) -> tuple[str, str | None]:
    """Return the line without citation marks, and why it is dropped: None if it stays."""
    settings = rules.settings
    line = line.strip()
    longest = settings.max_word_chars
    if longest and len(line) > longest and _has_long_word(line, longest):
        return line, LONG_WORD
    if "[" in line:
        line = CITATION.sub("", line)
    if not line.endswith(END_MARKS) or line.endswith(ELLIPSIS):
        return line, NO_END_MARK
    if len(line.split()) < settings.min_words_per_line:
        return line, FEW_WORDS
    lowered = line.lower()
    if LOREM_IPSUM_TEXT in lowered:
        return line, LOREM_IPSUM
    if JAVASCRIPT_TEXT in lowered:
        return line, JAVASCRIPT
    if CURLY_BRACKET_TEXT in line:
        return line, CURLY_BRACKET
    if any(policy in lowered for policy in POLICY_TEXTS):
        return line, POLICY
    if rules.has_bad_word is not None and rules.has_bad_word(lowered):
        return line, BAD_WORD_IN_LINE
    return line, None


def _has_long_word(line: str, longest: int) -> bool:
    return max(map(len, line.split()), default=0) > longest
