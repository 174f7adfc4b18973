r"""Find listed words in a page (paper section 2.2).

The released code drops a page in which ``(?:\W|^)(word|word ...)(?:\W|$)`` is found after
lower-casing it. Its words are not lower-cased, so a listed word with a capital letter never
matches; Japanese, Thai and Chinese, which do not set words apart, match anywhere. The code of 2019
looked line by line for ``[^a-z](word|word ...)[^a-z]``, which misses a word at the begin or the
end of a line, and took listed words as regular expressions. Both are kept exactly.

All words are looked for at once (Aho-Corasick); the characters beside each hit then decide.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from t5repro.errors import RawDataError

ANYWHERE_LANGUAGES = frozenset({"ja", "th", "zh"})
ALLOWED_WORDS = {"ja": frozenset({"sm", "グロ", "女の子"}), "zh": frozenset({"性"})}
LINE_LANGUAGE = "en"  # the code of 2019 knew one language
LATIN_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
PATTERN_CHARACTERS = frozenset(".^$*+?{}[]\\|()")

Matcher = Callable[[str], bool]


def read_words(path: Path, language: str) -> frozenset[str]:
    """Return the words of a list with one word a line; blank lines are no words.

    Raises:
        RawDataError: the list cannot be read, is not UTF-8 or holds no word.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise RawDataError(
            f"{path}: cannot be read ({error.strerror}); check c4.bad_word_lists.{language}"
        ) from error
    except UnicodeDecodeError as error:
        raise RawDataError(f"{path}: not UTF-8 at byte {error.start}; fetch it again") from error
    words = frozenset(word for line in lines if (word := line.strip()))
    if not words:
        raise RawDataError(
            f"{path}: holds no word; take {language!r} out of c4.bad_word_lists to look for none"
        )
    return words - ALLOWED_WORDS.get(language, frozenset())


def page_matcher(words: Iterable[str], language: str) -> Matcher:
    """Return a function that tells whether a page holds a listed word; it lower-cases the page.

    Source: released code, ``c4_utils.get_badwords_filter_fn``.
    """
    automaton = _automaton(words)
    if language in ANYWHERE_LANGUAGES:
        return lambda text: bool(automaton.find_matches_as_indexes(text.lower()))

    def matches(text: str) -> bool:
        lowered = text.lower()
        last = len(lowered)
        return any(
            (begin == 0 or _is_no_word_character(lowered[begin - 1]))
            and (end == last or _is_no_word_character(lowered[end]))
            for _, begin, end in automaton.find_matches_as_indexes(lowered, overlapping=True)
        )

    return matches


def line_matcher(words: Iterable[str]) -> Matcher:
    """Return a function that tells whether a lower-cased line drops its page, as in 2019.

    Source: the released code of 2019, ``c4_utils.get_clean_page_fn``.
    """
    chosen = sorted(words)
    if any(not PATTERN_CHARACTERS.isdisjoint(word) for word in chosen):
        try:
            pattern = re.compile("[^a-z]({})[^a-z]".format("|".join(chosen)))
        except re.error as error:
            raise RawDataError(
                f"the list of bad words is no regular expression ({error}), as c4.clean.bad_words "
                "'line_2019' takes it; use 'page', which takes words as they are"
            ) from error
        return lambda line: pattern.search(line) is not None
    automaton = _automaton(chosen)

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
    """Return a function that tells whether `matches` holds for a lower-cased line of a text."""
    return lambda text: any(map(matches, text.lower().splitlines()))


def _automaton(words: Iterable[str]) -> AhoCorasick:
    return AhoCorasick(
        sorted(words), matchkind=MatchKind.Standard, implementation=Implementation.DFA
    )


def _is_no_word_character(character: str) -> bool:
    r"""Return whether ``\W`` matches the character."""
    return not (character.isalnum() or character == "_")
