"""Split text into sentences with Punkt, with NLTK's results, and only as far as needed.

The released code counts sentences with NLTK's English Punkt in every language. Here each page is
split with the parameters of its own language, or every page with the parameters of a given language
(`Splitters`). The parameters are folders in NLTK's ``punkt_tab`` layout, provided by the user or
trained by `c4.punkt`. Without parameters Punkt ends a sentence at nearly every full stop before
white space.

NLTK creates several objects for every word next to a full stop. The plain case, a word, a mark and
another word, is decided here by the same rules without them; NLTK decides all other cases.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer

from t5repro.c4.text.language import Detected, detect_languages
from t5repro.config.sections.c4 import PUNKT_FILES
from t5repro.errors import RawDataError

CACHED_CONTEXTS = 1 << 15
MAX_CACHED_CHARS = 64  # longer contexts hardly recur

# Flags of a word in Punkt's orthographic contexts (Kiss and Strunk 2006, section 4.1.1).
_UPPER_INSIDE = 1 << 2
_LOWER_ANYWHERE = (1 << 4) | (1 << 5) | (1 << 6)

_OTHER_WHITE_SPACE = "\t\n\r\v\f"  # with the space, the white space before a word in Punkt
_CLOSING = frozenset("\"')]}")  # may follow terminal punctuation and belong to its sentence

# A word of letters, terminal punctuation, and either a word of letters with at most a bracket or
# quote before it and a mark after it, or one mark.
_PLAIN_CONTEXT = re.compile(
    r"""([^\W\d_]{2,}) ([.?!]) (?: \s+ (["(]?) ([^\W\d_]+) [,;:]? | ([)";}\]*:@'({[?!]) )""",
    re.VERBOSE,
)


_WORD_AND_FLAGS = re.compile(r"^([^\t\n]*)\t(\d+)$", re.MULTILINE)


class _Flags(dict[str, int]):
    """Orthographic flags by word; an unknown word has 0 and is not added by the lookup."""

    def __missing__(self, word: str) -> int:
        return 0


class SentenceSplitter:
    """Punkt with one set of parameters.

    Args:
        folder: parameters in NLTK's ``punkt_tab`` layout; None uses Punkt without parameters.

    Raises:
        RawDataError: a file of the folder is missing or has an invalid row.
    """

    def __init__(self, folder: Path | None = None) -> None:
        parameters = _parameters(folder, _stamps(folder))
        language = PunktLanguageVars()
        self._parameters = parameters
        self._ends = language.period_context_re()
        self._closing = language.re_boundary_realignment
        self._by_nltk = PunktSentenceTokenizer(parameters).text_contains_sentbreak
        self._by_nltk_cached = lru_cache(CACHED_CONTEXTS)(self._by_nltk)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each sentence of `text`, lazily.

        Source: NLTK, ``PunktSentenceTokenizer.span_tokenize``.
        """
        slices = self._slices(text)
        begin, end = next(slices)
        for next_begin, next_end in slices:
            closing = None
            if text[next_begin] in _CLOSING:
                closing = self._closing.match(text, next_begin, next_end)
            if closing:
                # A closing quote or bracket moves from the next sentence to this one.
                yield begin, next_begin + len(closing.group().rstrip())
                begin = closing.end()
            else:
                if begin < end:
                    yield begin, end
                begin = next_begin
            end = next_end
        if begin < end:
            yield begin, end

    def _slices(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield sentences whose closing quotes and brackets may still be in the next one.

        Source: NLTK, ``_slices_from_text`` and ``_match_potential_end_contexts``: of punctuation
        marks that follow each other without white space only the last counts.
        """
        other_spaces = [space for space in _OTHER_WHITE_SPACE if space in text]
        sentence = 0
        word = mark = 0  # start of the word before the last punctuation mark, and the mark
        last = None
        for match in self._ends.finditer(text):
            position = match.start()
            # Only the text since the last mark is searched for the start of the word, which keeps
            # the whole pass linear in the length of the text.
            space = text.rfind(" ", mark, position)
            for other_space in other_spaces:
                space = max(space, text.rfind(other_space, mark, position))
            begin = space + 1 if space > mark else word
            # Without white space since the last mark ("e.g.", "..."), both marks belong to one
            # word, and only the later one can end the sentence.
            if last is not None and mark <= begin and self._is_end(text[word : last.end(1)]):
                yield sentence, mark + 1
                # Group 2 is the next word, if white space separates it from the mark.
                sentence = last.start(2) if last.start(2) >= 0 else mark + 1
            last, word, mark = match, begin, position
        if last is not None and self._is_end(text[word : last.end(1)]):
            yield sentence, mark + 1
            sentence = last.start(2) if last.start(2) >= 0 else mark + 1
        yield sentence, len(text.rstrip())

    def _is_end(self, context: str) -> bool:
        """Return whether a sentence ends inside `context`: a word, a mark, the next word or mark.

        Source: NLTK, ``text_contains_sentbreak``; the plain case follows
        ``_first_pass_annotation`` and ``_second_pass_annotation``.
        """
        plain = _PLAIN_CONTEXT.fullmatch(context)
        if plain is None:
            cached = len(context) <= MAX_CACHED_CHARS
            return bool(self._by_nltk_cached(context) if cached else self._by_nltk(context))
        word, mark, opening, follower, single = plain.groups()
        if mark != ".":
            return True
        parameters = self._parameters
        word = word.lower()
        follower = opening or follower or single
        follower_type = follower.lower()
        if (word, follower_type) in parameters.collocations:
            return False
        if word not in parameters.abbrev_types:
            return True
        # A sentence ends after an abbreviation only if the next word is capitalised and either
        # often starts sentences, or occurs in lower case and never capitalised inside a sentence.
        if not follower[0].isupper():
            return False
        flags = parameters.ortho_context[follower_type]
        starts_sentences = flags & _LOWER_ANYWHERE and not flags & _UPPER_INSIDE
        return bool(starts_sentences) or follower_type in parameters.sent_starters

    def for_text(self, text: str) -> Self:
        """Return this splitter, which splits every text."""
        return self

    def of(self, language: str | None) -> Self:
        """Return this splitter, which is used for every language."""
        return self

    def languages_of(self, texts: Sequence[str]) -> list[Detected | None]:
        """Return None for each text, because its language is not needed."""
        return [None] * len(texts)

    def split(self, text: str) -> list[str]:
        """Return the sentences of `text`."""
        return [text[begin:end] for begin, end in self.spans(text)]

    def has_at_least(self, count: int, text: str) -> bool:
        """Return whether `text` as a whole has `count` sentences or more."""
        return count <= 0 or len(list(islice(self.spans(text), count))) == count

    def lines_have_at_least(self, count: int, lines: list[str]) -> bool:
        """Return whether the lines, each split on its own, have `count` sentences or more.

        Every non-blank line has at least one, so most pages are decided by their number of lines.
        """
        missing = count - len(lines)
        for line in lines:
            # Lines are split only until enough sentences are counted.
            if missing <= 0:
                return True
            missing -= len(list(islice(self.spans(line), missing + 1))) - 1
        return missing <= 0


class Splitters:
    """Punkt with the parameters of several languages; each page is split with its own.

    The language of a page is the most probable language of its cleaned text, whatever the
    probability. A page in a language without parameters is split by Punkt without parameters.

    Args:
        folders: language -> its parameters in NLTK's ``punkt_tab`` layout.
        only: language of the parameters for every page; empty uses each page's own language.

    Raises:
        RawDataError: a file of a folder is missing or has an invalid row.
    """

    def __init__(self, folders: Mapping[str, Path], *, only: str = "") -> None:
        self._only = only
        self._untrained = SentenceSplitter()
        self._by_language = {
            name: SentenceSplitter(folder)
            for name, folder in folders.items()
            if not only or name == only
        }

    def of(self, language: str | None) -> SentenceSplitter:
        """Return the splitter for a language that `languages_of` returned."""
        return self._by_language.get(self._only or language or "", self._untrained)

    def for_text(self, text: str) -> SentenceSplitter:
        """Return the splitter for a text."""
        detected = self.languages_of([text])[0]
        return self.of(detected and detected.language)

    def languages_of(self, texts: Sequence[str]) -> list[Detected | None]:
        """Return the most probable language of each text, or None if it is not needed."""
        if self._only or not self._by_language:
            return [None] * len(texts)
        return [*detect_languages(texts)]


def parameter_files(folders: Mapping[str, Path]) -> list[Path]:
    """Return the files of Punkt parameters, by language; for a manifest."""
    return [folder / name for _, folder in sorted(folders.items()) for name in PUNKT_FILES]


def _stamps(folder: Path | None) -> tuple[tuple[int, int] | None, ...]:
    """Return size and modification time of each file of a folder; None for a missing file."""
    paths = [folder / name for name in PUNKT_FILES] if folder is not None else []
    stats = [path.stat() if path.is_file() else None for path in paths]
    return tuple((stat.st_size, stat.st_mtime_ns) if stat else None for stat in stats)


@lru_cache(maxsize=8)
def _parameters(folder: Path | None, stamps: tuple[tuple[int, int] | None, ...]) -> Any:
    """Return the parameters of a folder, or untrained ones; `stamps` makes edited files miss."""
    parameters = PunktParameters()
    parameters.ortho_context = _Flags()
    if folder is not None:
        _read_parameters(folder, parameters)
    return parameters


def _read_parameters(folder: Path, parameters: Any) -> None:
    """Fill `parameters` from the four files of a ``punkt_tab`` folder."""
    parameters.abbrev_types = set(_rows(folder, "abbrev_types.txt"))
    parameters.sent_starters = set(_rows(folder, "sent_starters.txt"))
    for number, row in enumerate(_rows(folder, "collocations.tab"), start=1):
        first, separator, second = row.partition("\t")
        if not separator or "\t" in second:
            raise _invalid_row(folder, "collocations.tab", number, row, "two words")
        parameters.collocations.add((first, second))
    rows = _rows(folder, "ortho_context.tab")
    # One search over all rows: the English file has 20,000.
    pairs = _WORD_AND_FLAGS.findall("\n".join(rows))
    if len(pairs) != len(rows):
        number, row = next(
            (number, row)
            for number, row in enumerate(rows, start=1)
            if not _WORD_AND_FLAGS.fullmatch(row)
        )
        raise _invalid_row(folder, "ortho_context.tab", number, row, "a word and a whole number")
    parameters.ortho_context.update((word, int(flags)) for word, flags in pairs)


def _rows(folder: Path, name: str) -> list[str]:
    path = folder / name
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RawDataError(
            f"{path}: cannot be read ({error.strerror}); c4.punkt_parameters must name a folder "
            "of one language in NLTK's punkt_tab layout, such as punkt_tab/english"
        ) from error
    except UnicodeDecodeError as error:
        raise RawDataError(f"{path}: not UTF-8 at byte {error.start}; fetch it again") from error
    return text.removesuffix("\n").split("\n") if text else []


def _invalid_row(folder: Path, name: str, number: int, row: str, expected: str) -> RawDataError:
    return RawDataError(
        f"{folder / name} line {number} is {row!r}, which is not {expected} separated by a tab; "
        "fetch the Punkt parameters again"
    )
