"""The rules for one page: which lines are kept, and whether the page is (paper section 2.2).

`clean_page` is the definition; `fast_rules.clean_bodies` computes the same for many pages at once.

The order of the tests is part of the definition and follows the released code: a line with ``{``
and without terminal punctuation drops itself and not its page. Every dropped line and page has a
reason (`reasons`), and each reason is counted: of lines in `c4.clean`, of pages in
`c4.page_filter`, since only the newest copy of a page counts. Lines after the one that drops a page
are ignored.

To add a rule: add its reason to `reasons`, its test to `clean_line` at the right position, and a
case to ``tests/cases/c4_clean.json``.
"""

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from t5repro.c4.reasons import (
    BAD_WORD_IN_LINE,
    CURLY_BRACKET,
    FEW_PARAGRAPHS,
    FEW_SENTENCES,
    FEW_WORDS,
    JAVASCRIPT,
    LINE_REASONS,
    LONG_WORD,
    LOREM_IPSUM,
    NO_TERMINAL_PUNCTUATION,
    PAGE_REASONS,
    POLICY,
)
from t5repro.c4.text.bad_words import LINE_LANGUAGE, line_matcher, read_words
from t5repro.c4.text.sentences import SentenceSplitter, Splitters
from t5repro.config.sections.c4 import CleanSettings

TERMINAL_PUNCTUATION = (".", "?", "!", '"')
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


class Cleaned(NamedTuple):
    """The result of the rules for a page.

    Attributes:
        text: remaining text; empty if the page is dropped.
        reason: reason for which the page is dropped; None if it is kept.
        kept_lines: number of lines that no rule dropped.
        dropped_lines: number of dropped lines for each of `LINE_REASONS`.
    """

    text: str
    reason: str | None
    kept_lines: int
    dropped_lines: tuple[int, ...]


class CleanRules(NamedTuple):
    """The rules with their parameters.

    Attributes:
        settings: thresholds.
        splitter: counts sentences, with the Punkt parameters of each page's language.
        has_bad_word: returns whether a lower-cased line drops its page; None disables the rule.
    """

    settings: CleanSettings
    splitter: SentenceSplitter | Splitters
    has_bad_word: Callable[[str], bool] | None = None


def load_rules(
    settings: CleanSettings, splitter: Splitters, bad_words: Mapping[str, Path]
) -> CleanRules:
    """Return the rules for one page with their lists.

    Raises:
        RawDataError: a list cannot be read.
    """
    lists = line_lists(settings, bad_words)
    return CleanRules(
        settings, splitter, line_matcher(read_words(lists[0], LINE_LANGUAGE)) if lists else None
    )


def line_lists(settings: CleanSettings, bad_words: Mapping[str, Path]) -> list[Path]:
    """Return the list for the rule of 2019, which applies to single lines, if it is enabled."""
    enabled = settings.enabled and settings.bad_words == "line_2019"
    return [bad_words[LINE_LANGUAGE]] if enabled and LINE_LANGUAGE in bad_words else []


def clean_page(text: str, rules: CleanRules) -> Cleaned:
    """Apply the rules to the text of one page.

    Args:
        text: lines separated by any line end that `str.splitlines` knows.
        rules: the rules with their parameters.

    Source: released code, ``c4_utils.clean_page``; `has_bad_word`: the code of 2019.
    """
    if not has_paragraphs(text, rules.settings):
        return Cleaned("", FEW_PARAGRAPHS, 0, (0,) * len(LINE_REASONS))
    if not rules.settings.enabled:
        return Cleaned(text, None, 0, (0,) * len(LINE_REASONS))
    kept_lines: list[str] = []
    # In the order of `LINE_REASONS`, as `Cleaned.dropped_lines` has it.
    dropped = dict.fromkeys(LINE_REASONS, 0)
    for raw_line in text.splitlines():
        line, reason = clean_line(raw_line, rules)
        if reason is None:
            kept_lines.append(line)
        elif reason in dropped:
            dropped[reason] += 1
        else:
            return Cleaned("", reason, len(kept_lines), tuple(dropped.values()))
    return check_sentences("\n".join(kept_lines), len(kept_lines), tuple(dropped.values()), rules)


def clean_line(line: str, rules: CleanRules) -> tuple[str, str | None]:
    """Return a line without citation marks and the reason to drop it or its page, if any."""
    settings = rules.settings
    line = line.strip()
    max_chars = settings.max_word_chars
    # A word is at most as long as its line, so short lines need no split.
    if max_chars and len(line) > max_chars and has_long_word(line, max_chars):
        return line, LONG_WORD
    if "[" in line:
        line = CITATION.sub("", line)
    if not line.endswith(TERMINAL_PUNCTUATION) or line.endswith(ELLIPSIS):
        return line, NO_TERMINAL_PUNCTUATION
    if len(line.split()) < settings.min_words_per_line:
        return line, FEW_WORDS
    lowered = line.lower()
    # The rules below search for text; some of them drop the whole page.
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


def has_long_word(line: str, max_chars: int) -> bool:
    """Return whether a word of the line has more than `max_chars` characters."""
    return max(map(len, line.split()), default=0) > max_chars


def has_paragraphs(text: str, settings: CleanSettings) -> bool:
    """Return whether a page has enough long lines.

    Source: released code, ``c4_utils.paragraph_filter``: the third-longest line decides.
    """
    if not settings.min_paragraphs:
        return True
    long_lines = (len(line) >= settings.paragraph_chars for line in text.split("\n"))
    return sum(long_lines) >= settings.min_paragraphs


def check_sentences(text: str, lines: int, dropped: tuple[int, ...], rules: CleanRules) -> Cleaned:
    r"""Return the cleaned page, dropped if it has too few sentences.

    Args:
        text: the lines that no rule dropped, joined with ``\n``.
        lines: their number.
        dropped: number of dropped lines for each of `LINE_REASONS`.
        rules: the rules with their parameters.
    """
    if not _has_sentences(text, lines, rules):
        return Cleaned("", FEW_SENTENCES, lines, dropped)
    return Cleaned(text.strip(), None, lines, dropped)


def _has_sentences(text: str, lines: int, rules: CleanRules) -> bool:
    minimum = rules.settings.min_sentences
    # No kept line is blank, so each has a sentence: only pages with few lines need Punkt.
    if lines >= minimum:
        return True
    return rules.splitter.for_text(text.strip()).lines_have_at_least(minimum, text.split("\n"))


def first_dropped_lines(
    text: str, rules: CleanRules, reasons: Collection[str] = (*LINE_REASONS, *PAGE_REASONS)
) -> dict[str, str]:
    """Return, for each of `reasons`, the first line of a page that is dropped for it."""
    lines: dict[str, str] = {}
    for raw_line in text.splitlines() if rules.settings.enabled else ():
        if all(reason in lines for reason in reasons):
            break
        _, reason = clean_line(raw_line, rules)
        if reason is not None:
            lines.setdefault(reason, raw_line)
        if reason in PAGE_REASONS:
            break
    return lines
