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

from t5repro.c4.text.sentences import SentenceSplitter, Splitters
from t5repro.c4.wet.warc_records import text_of
from t5repro.config.sections.c4 import CleanSettings

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

# A line whose last byte is another has no end mark, whatever citation marks are taken out of it: it
# is an end mark or bracket, or belongs to white space that is stripped, or the line is empty.
WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
MAY_END_WELL = frozenset((b"", *(text.encode()[-1:] for text in (*END_MARKS, "]", *WHITE_SPACE))))
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


def clean_page(text: str, rules: CleanRules) -> Cleaned:
    """Apply the rules to the text of one page, each in its order.

    Source: released code, ``c4_utils.clean_page``; `has_bad_word`: the code of 2019.
    """
    if not _has_paragraphs(text, rules.settings):
        return Cleaned("", FEW_PARAGRAPHS, 0, (0,) * len(LINE_REASONS))
    if not rules.settings.enabled:
        return Cleaned(text, None, 0, (0,) * len(LINE_REASONS))
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
    return _finished(kept, "\n".join(kept), tuple(dropped.values()), rules)


def clean_body(body: bytes, rules: CleanRules, other_ends: bool) -> Cleaned:
    r"""Return what `clean_page` makes of the text of a page, and mostly without making that text.

    Args:
        body: of the page, as it was read, in UTF-8.
        rules: with their parameters.
        other_ends: whether `body` holds ends of lines other than ``\n``.
    """
    settings = rules.settings
    plain = settings.enabled and rules.has_bad_word is None and not other_ends
    if plain and settings.min_paragraphs:
        plain = _has_paragraphs(text_of(body), settings)
    return (_clean_plain_body(body, rules) if plain else None) or clean_page(text_of(body), rules)


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


def _clean_plain_body(body: bytes, rules: CleanRules) -> Cleaned | None:
    """Clean a page in which no text rule applies; None if one may, and order decides.

    The rules that look at the end and the words of a line go first and leave little text; that is
    searched once for everything the other rules look for. Most pages hold none of it, and of most
    lines the last byte is enough.
    """
    settings = rules.settings
    longest = settings.max_word_chars or len(body)
    least = settings.min_words_per_line
    raw_lines = body.split(b"\n")
    blank = long_words = few_words = 0
    kept: list[str] = []
    for raw_line in _promising(raw_lines, longest):
        line = str(raw_line, "utf-8").strip()
        if not line:
            blank += 1
            continue
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
    no_end_mark = len(raw_lines) - blank - long_words - few_words - len(kept)
    return _finished(kept, joined, (long_words, no_end_mark, few_words, 0, 0), rules)


def _finished(kept: list[str], joined: str, dropped: tuple[int, ...], rules: CleanRules) -> Cleaned:
    """Return the page whose lines `kept` stay, `joined` to one text, if they have sentences."""
    if not _has_sentences(kept, rules):
        return Cleaned("", FEW_SENTENCES, len(kept), dropped)
    return Cleaned(joined.strip(), None, len(kept), dropped)


def _may_hold_rule_text(text: str) -> bool:
    """Return whether a rule that looks for text may find some in `text`, whatever its case.

    The texts are ASCII. Of other letters the Kelvin sign alone becomes one of theirs: a capital I
    with a dot becomes two characters, which none of the texts holds one after the other.
    """
    found = _ANY_RULE_TEXT.find_matches_as_indexes(text.encode("utf-8").lower())
    return bool(found) or KELVIN_SIGN in text


def _promising(lines: list[bytes], longest: int) -> list[bytes]:
    """Return the lines that may end well, or are longer than a word may be."""
    if max(map(len, lines)) > longest:
        return [line for line in lines if line[-1:] in MAY_END_WELL or len(line) > longest]
    return [line for line in lines if line[-1:] in MAY_END_WELL]


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
