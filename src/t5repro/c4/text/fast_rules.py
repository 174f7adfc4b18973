"""`rules.clean_page` on the bytes of a page, mostly without decoding them.

Most lines of a crawl are menus: their last byte shows that they have no terminal punctuation. The
few remaining lines are decoded and tested; the rules that search for text search all of them at
once. If one may apply, its order relative to the other rules matters and `clean_page` decides.
"""

from ahocorasick_rs import BytesAhoCorasick

from t5repro.c4.text.rules import (
    CITATION,
    CURLY_BRACKET_TEXT,
    ELLIPSIS,
    JAVASCRIPT_TEXT,
    LOREM_IPSUM_TEXT,
    POLICY_TEXTS,
    TERMINAL_PUNCTUATION,
    Cleaned,
    CleanRules,
    check_sentences,
    clean_page,
    has_long_word,
    has_paragraphs,
)
from t5repro.c4.wet.warc_records import text_of

WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
# Last bytes of a line that may have terminal punctuation: the punctuation itself, a bracket of a
# citation mark behind it, white space that is stripped, or nothing.
CANDIDATE_LAST_BYTES = frozenset(
    (b"", *(text.encode()[-1:] for text in (*TERMINAL_PUNCTUATION, "]", *WHITE_SPACE)))
)
# The rules that search for text change no page without any of these.
RULE_TEXTS = (LOREM_IPSUM_TEXT, JAVASCRIPT_TEXT, CURLY_BRACKET_TEXT, *POLICY_TEXTS)
KELVIN_SIGN = "\u212a"  # its lower case is "k"

_ANY_RULE_TEXT = BytesAhoCorasick([text.encode() for text in RULE_TEXTS])


def clean_body(body: bytes, rules: CleanRules, has_other_newlines: bool) -> Cleaned:
    r"""Return the result of `clean_page` for the text of a page.

    Args:
        body: text of the page in UTF-8, as it was read.
        rules: the rules with their parameters.
        has_other_newlines: whether `body` contains line ends other than ``\n``.
    """
    settings = rules.settings
    fast = settings.enabled and rules.has_bad_word is None and not has_other_newlines
    if fast and settings.min_paragraphs:
        fast = has_paragraphs(text_of(body), settings)
    return (_clean_plain_body(body, rules) if fast else None) or clean_page(text_of(body), rules)


def _clean_plain_body(body: bytes, rules: CleanRules) -> Cleaned | None:
    """Clean a page to which no rule that searches for text applies; return None if one may."""
    settings = rules.settings
    max_chars = settings.max_word_chars or len(body)
    min_words = settings.min_words_per_line
    raw_lines = body.split(b"\n")
    blank = long_words = few_words = 0
    lines: list[str] = []
    for raw_line in _candidate_lines(raw_lines, max_chars):
        line = str(raw_line, "utf-8").strip()
        if not line:
            blank += 1
            continue
        if len(line) > max_chars and has_long_word(line, max_chars):
            long_words += 1
            continue
        if "[" in line:
            line = CITATION.sub("", line)
        if not line.endswith(TERMINAL_PUNCTUATION) or line.endswith(ELLIPSIS):
            continue
        # A limited split stops at the last word that is needed.
        if len(line.split(None, min_words - 1)) < min_words:
            few_words += 1
            continue
        lines.append(line)
    text = "\n".join(lines)
    if _may_contain_rule_text(text):
        return None
    # Lines that were not candidates have no terminal punctuation either, so the rest is theirs.
    unpunctuated = len(raw_lines) - blank - long_words - few_words - len(lines)
    return check_sentences(lines, text, (long_words, unpunctuated, few_words, 0, 0), rules)


def _candidate_lines(lines: list[bytes], max_chars: int) -> list[bytes]:
    """Return the lines that may have terminal punctuation or a word that is too long."""
    # Bytes are at least characters, so a short line has no long word.
    if max(map(len, lines)) > max_chars:
        return [
            line for line in lines if line[-1:] in CANDIDATE_LAST_BYTES or len(line) > max_chars
        ]
    return [line for line in lines if line[-1:] in CANDIDATE_LAST_BYTES]


def _may_contain_rule_text(text: str) -> bool:
    """Return whether a rule that searches for text may apply, in any case of the letters."""
    # `bytes.lower` changes ASCII letters only. Of the other letters whose lower case is ASCII,
    # only the Kelvin sign can complete a rule text: a capital I with dot becomes two characters.
    matches = _ANY_RULE_TEXT.find_matches_as_indexes(text.encode("utf-8").lower())
    return bool(matches) or KELVIN_SIGN in text
