"""Split text into sentences with Punkt, exactly as NLTK does, and only as far as is needed.

The released code counts sentences with NLTK's English Punkt, whatever the language. Here each page
has the parameters of its own language, or all have those of one (`Splitters`). They come from
folders in NLTK's ``punkt_tab`` layout, given or written by `punkt`; without, Punkt runs with none,
which makes nearly every full stop before white space the end of a sentence.

NLTK makes several objects for every word beside a full stop. Here the plain case, a word, a mark
and another word, is decided by the same rules without them; everything else is left to NLTK.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer

from t5repro.c4.text.language import Detected, detect_languages
from t5repro.errors import RawDataError

PARAMETER_FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")

REMEMBERED_CONTEXTS = 1 << 15
REMEMBERED_CHARS = 64

# Flags of a word in Punkt's orthographic contexts (Kiss and Strunk 2006, section 4.1.1).
_UPPER_INSIDE = 1 << 2
_LOWER_ANYWHERE = (1 << 4) | (1 << 5) | (1 << 6)

_OTHER_WHITE_SPACE = "\t\n\r\v\f"  # with the space, what Punkt takes for the begin of a word
_CLOSING = frozenset("\"')]}")  # what may follow an end mark and belongs to its sentence

# A word of letters, an end mark, and either a word of letters with at most a bracket or quote
# before it and a mark after it, or one mark.
_PLAIN_CONTEXT = re.compile(
    r"""([^\W\d_]{2,}) ([.?!]) (?: \s+ (["(]?) ([^\W\d_]+) [,;:]? | ([)";}\]*:@'({[?!]) )""",
    re.VERBOSE,
)


_WORD_AND_FLAGS = re.compile(r"^([^\t\n]*)\t(\d+)$", re.MULTILINE)


class _Flags(dict[str, int]):
    """Orthographic flags by word: 0 for an unknown one, and asking does not add it."""

    def __missing__(self, word: str) -> int:
        return 0


class SentenceSplitter:
    """Punkt with one set of parameters.

    Args:
        folder: parameters in NLTK's ``punkt_tab`` layout; None: Punkt without parameters.

    Raises:
        RawDataError: a file of the folder is missing or has a broken row.
    """

    def __init__(self, folder: Path | None = None) -> None:
        parameters = _parameters(folder, _stamps(folder))
        language = PunktLanguageVars()
        self._parameters = parameters
        self._ends = language.period_context_re()
        self._closing = language.re_boundary_realignment
        self._by_nltk = PunktSentenceTokenizer(parameters).text_contains_sentbreak
        self._remembered = lru_cache(REMEMBERED_CONTEXTS)(self._by_nltk)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each sentence of `text`, as far as they are asked for.

        Source: NLTK, ``PunktSentenceTokenizer.span_tokenize``.
        """
        slices = self._slices(text)
        begin, end = next(slices)
        for next_begin, next_end in slices:
            moved = None
            if text[next_begin] in _CLOSING:
                moved = self._closing.match(text, next_begin, next_end)
            if moved:
                yield begin, next_begin + len(moved.group().rstrip())
                begin = moved.end()
            else:
                if begin < end:
                    yield begin, end
                begin = next_begin
            end = next_end
        if begin < end:
            yield begin, end

    def _slices(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield sentences whose closing quotes and brackets may still be in the next one.

        Source: NLTK, ``_slices_from_text`` and ``_match_potential_end_contexts``: of end marks
        that follow each other without white space only the last counts.
        """
        others = [space for space in _OTHER_WHITE_SPACE if space in text]
        sentence = 0
        word = mark = 0  # begin of the word before the last end mark, and the mark
        last = None
        for match in self._ends.finditer(text):
            at = match.start()
            space = text.rfind(" ", mark, at)
            for other in others:
                space = max(space, text.rfind(other, mark, at))
            begin = space + 1 if space > mark else word
            if last is not None and mark <= begin and self._is_end(text[word : last.end(1)]):
                yield sentence, mark + 1
                sentence = last.start(2) if last.start(2) >= 0 else mark + 1
            last, word, mark = match, begin, at
        if last is not None and self._is_end(text[word : last.end(1)]):
            yield sentence, mark + 1
            sentence = last.start(2) if last.start(2) >= 0 else mark + 1
        yield sentence, len(text.rstrip())

    def _is_end(self, context: str) -> bool:
        """Return whether a sentence ends inside `context`: a word, a mark and what follows.

        Source: NLTK, ``text_contains_sentbreak``; the plain case follows
        ``_first_pass_annotation`` and ``_second_pass_annotation``.
        """
        plain = _PLAIN_CONTEXT.fullmatch(context)
        if plain is None:
            short = len(context) <= REMEMBERED_CHARS
            return bool(self._remembered(context) if short else self._by_nltk(context))
        word, mark, opening, follower, single = plain.groups()
        if mark != ".":
            return True
        known = self._parameters
        word = word.lower()
        follower = opening or follower or single
        follower_type = follower.lower()
        if (word, follower_type) in known.collocations:
            return False
        if word not in known.abbrev_types:
            return True
        if not follower[0].isupper():
            return False
        flags = known.ortho_context[follower_type]
        begins_sentences = flags & _LOWER_ANYWHERE and not flags & _UPPER_INSIDE
        return bool(begins_sentences) or follower_type in known.sent_starters

    def for_text(self, text: str) -> Self:
        """Return itself: it splits every text."""
        return self

    def of(self, language: str | None) -> Self:
        """Return itself, whatever the language."""
        return self

    def languages_of(self, texts: Sequence[str]) -> list[Detected | None]:
        """Return None for each text: its language does not matter."""
        return [None] * len(texts)

    def split(self, text: str) -> list[str]:
        """Return the sentences of `text`."""
        return [text[begin:end] for begin, end in self.spans(text)]

    def has_at_least(self, count: int, text: str) -> bool:
        """Return whether `text` as a whole has `count` sentences or more."""
        return count <= 0 or len(list(islice(self.spans(text), count))) == count

    def lines_have_at_least(self, count: int, lines: list[str]) -> bool:
        """Return whether the lines, each split on its own, have `count` sentences or more.

        A line that is not blank has at least one, so most pages are decided by their lines.
        """
        missing = count - len(lines)
        for line in lines:
            if missing <= 0:
                return True
            missing -= len(list(islice(self.spans(line), missing + 1))) - 1
        return missing <= 0


class Splitters:
    """Punkt with the parameters of several languages; a page is split with those of its own.

    The language of a page is what langdetect finds most probable in its cleaned text, whatever the
    probability. A page in a language without parameters is split by Punkt without any.

    Args:
        folders: language -> its parameters in NLTK's ``punkt_tab`` layout.
        only: the language whose parameters split every page; empty: each page's own.

    Raises:
        RawDataError: a file of a folder is missing or has a broken row.
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
        """Return the splitter of a page in a language that `languages_of` returned."""
        return self._by_language.get(self._only or language or "", self._untrained)

    def for_text(self, text: str) -> SentenceSplitter:
        """Return the splitter of a text."""
        found = self.languages_of([text])[0]
        return self.of(found and found.language)

    def languages_of(self, texts: Sequence[str]) -> list[Detected | None]:
        """Return the most probable language of each text; None where it does not matter."""
        if self._only or not self._by_language:
            return [None] * len(texts)
        return [*detect_languages(texts)]


def _stamps(folder: Path | None) -> tuple[tuple[int, int] | None, ...]:
    """Return size and time of each file of a folder; None for one that is missing."""
    paths = [folder / name for name in PARAMETER_FILES] if folder is not None else []
    found = [path.stat() if path.is_file() else None for path in paths]
    return tuple((stat.st_size, stat.st_mtime_ns) if stat else None for stat in found)


@lru_cache(maxsize=8)
def _parameters(folder: Path | None, stamps: tuple[tuple[int, int] | None, ...]) -> Any:
    """Return the parameters in a folder; None: those of Punkt untrained. `stamps`: its files'."""
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
            raise _broken(folder, "collocations.tab", number, row, "two words")
        parameters.collocations.add((first, second))
    rows = _rows(folder, "ortho_context.tab")
    found = _WORD_AND_FLAGS.findall("\n".join(rows))
    if len(found) != len(rows):
        number = next(at for at, row in enumerate(rows, 1) if not _WORD_AND_FLAGS.fullmatch(row))
        wanted = "a word and a whole number"
        raise _broken(folder, "ortho_context.tab", number, rows[number - 1], wanted)
    parameters.ortho_context.update((word, int(flags)) for word, flags in found)


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


def _broken(folder: Path, name: str, number: int, row: str, wanted: str) -> RawDataError:
    return RawDataError(
        f"{folder / name} line {number} is {row!r}, which is not {wanted} with a tab between; "
        "fetch the Punkt parameters again"
    )
