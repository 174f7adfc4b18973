"""Remove duplicate lines or spans of three sentences from a page, and count what remains."""

from typing import Any

from numpy.typing import NDArray

from t5repro.c4.tables import POSITION
from t5repro.c4.text.sentences import SentenceSplitter

Positions = NDArray[Any]  # dtype `tables.POSITION`


def remove_lines(text: str, positions: Positions) -> str:
    """Return `text` without the lines at `positions`.

    Source: released code, ``c4_utils._remove_lines_from_text``.
    """
    removed = set(positions["line"].tolist())
    return "\n".join(line for number, line in enumerate(text.split("\n")) if number not in removed)


def remove_spans(text: str, positions: Positions, splitter: SentenceSplitter) -> str:
    """Return `text` without the sentences at `positions`.

    The remaining sentences of a line are joined with spaces. Lines without removals are unchanged;
    lines without remaining sentences are dropped.

    Source: released code of 2019, ``c4_utils._remove_sentences_from_text``.
    """
    removed: dict[int, set[int]] = {}
    for line, start, count in positions.tolist():
        removed.setdefault(line, set()).update(range(start, start + count))
    lines: list[str] = []
    # Lines and sentences are numbered as `spans.span_keys` numbers them: the same `splitlines`,
    # `strip` and splitter.
    for number, line in enumerate(text.splitlines()):
        if number in removed:
            sentences = enumerate(splitter.split(line.strip()))
            line = " ".join(
                sentence for index, sentence in sentences if index not in removed[number]
            )
        if line:
            lines.append(line)
    return "\n".join(lines)


def text_at(text: str, position: Positions, splitter: SentenceSplitter) -> str:
    """Return the unit of `text` at one position."""
    line, start, count = (int(position[name]) for name in POSITION.names or ())
    if not count:
        return text.split("\n")[line]
    sentences = splitter.split(text.splitlines()[line].strip())
    return " ".join(sentences[start : start + count])


def has_enough_sentences(
    text: str, *, count: int, whole_text: bool, splitter: SentenceSplitter
) -> bool:
    """Return whether the remaining text of a page has `count` sentences or more.

    Args:
        text: the remaining text.
        count: the minimum; 0 accepts every page.
        whole_text: True counts in the page as one text, as line removal does, in which Punkt may
            join lines; False counts line by line, as span removal does.
        splitter: splits sentences.

    Source: released code, ``c4_utils._remove_lines_from_text``, and of 2019,
    ``c4_utils._remove_sentences_from_text``.
    """
    if whole_text:
        return splitter.has_at_least(count, text)
    return splitter.lines_have_at_least(count, [line for line in text.splitlines() if line.strip()])
