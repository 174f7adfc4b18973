r"""Find bad words in a page (paper section 2.2).

The released code lower-cases a page and drops it if ``(?:\W|^)(word|word ...)(?:\W|$)`` matches.
Listed words are not lower-cased, so one with a capital letter never matches. Japanese, Thai and
Chinese do not separate words, so their words match anywhere. The code of 2019 searched each line
for ``[^a-z](word|word ...)[^a-z]``, which misses a word at the start or the end of a line, and read
listed words as regular expressions. Both versions are reproduced exactly.

All words are searched for at once (Aho-Corasick); then the characters around each match decide.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from t5repro.c4.listed_lines import listed_lines
from t5repro.errors import RawDataError

ANYWHERE_LANGUAGES = frozenset({"ja", "th", "zh"})
ALLOWED_WORDS = {"ja": frozenset({"sm", "グロ", "女の子"}), "zh": frozenset({"性"})}
LINE_LANGUAGE = "en"  # the only language of the code of 2019
LATIN_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
PATTERN_CHARACTERS = frozenset(".^$*+?{}[]\\|()")

Matcher = Callable[[str], bool]


def read_words(path: Path, language: str) -> frozenset[str]:
    """Return the words of a list with one word per line; blank lines are ignored.

    Raises:
        RawDataError: the list cannot be read, is not UTF-8 or contains no word.
    """
    try:
        bad_words = frozenset(listed_lines(path))
    except OSError as error:
        raise RawDataError(
            f"{path}: cannot be read ({error.strerror}); check c4.bad_word_lists.{language}"
        ) from error
    if not bad_words:
        raise RawDataError(
            f"{path}: contains no word; remove {language!r} from c4.bad_word_lists to disable "
            "the rule"
        )
    return bad_words - ALLOWED_WORDS.get(language, frozenset())


def page_matcher(bad_words: Iterable[str], language: str) -> Matcher:
    """Return a function that tests whether a page, lower-cased, contains a listed word.

    Source: released code, ``c4_utils.get_badwords_filter_fn``.
    """
    automaton = _automaton(bad_words)
    if language in ANYWHERE_LANGUAGES:
        return lambda text: bool(automaton.find_matches_as_indexes(text.lower()))

    def matches(text: str) -> bool:
        lowered = text.lower()
        last = len(lowered)
        return any(
            (begin == 0 or _is_non_word(lowered[begin - 1]))
            and (end == last or _is_non_word(lowered[end]))
            for _, begin, end in automaton.find_matches_as_indexes(lowered, overlapping=True)
        )

    return matches


def line_matcher(bad_words: Iterable[str]) -> Matcher:
    """Return a function that tests whether a lower-cased line drops its page, as in 2019.

    Source: the released code of 2019, ``c4_utils.get_clean_page_fn``.
    """
    ordered = sorted(bad_words)
    if any(not PATTERN_CHARACTERS.isdisjoint(word) for word in ordered):
        try:
            pattern = re.compile("[^a-z]({})[^a-z]".format("|".join(ordered)))
        except re.error as error:
            raise RawDataError(
                f"the list of bad words is not a regular expression ({error}), which "
                "c4.clean.bad_words 'line_2019' requires; use 'page', which matches words literally"
            ) from error
        return lambda line: pattern.search(line) is not None
    automaton = _automaton(ordered)

    def matches(line: str) -> bool:
        last = len(line)
        return any(
            begin > 0
            and end < last
            and line[begin - 1] not in LATIN_LETTERS
            and line[end] not in LATIN_LETTERS
            for _, begin, end in automaton.find_matches_as_indexes(line, overlapping=True)
        )

    return matches


def any_line(matches: Matcher) -> Matcher:
    """Return a function that applies `matches` to the lower-cased lines of a text."""
    return lambda text: any(map(matches, text.lower().splitlines()))


def _automaton(bad_words: Iterable[str]) -> AhoCorasick:
    return AhoCorasick(
        sorted(bad_words), matchkind=MatchKind.Standard, implementation=Implementation.DFA
    )


def _is_non_word(character: str) -> bool:
    r"""Return whether ``\W`` matches the character."""
    return not (character.isalnum() or character == "_")
