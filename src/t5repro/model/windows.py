"""Rows of a question and a part of a text, for a network that predicts spans of the text.

A text that is longer than a row has several windows, which overlap::

    [CLS] question [SEP] pieces 0 to 299 [SEP]
    [CLS] question [SEP] pieces 128 to 427 [SEP]        with a stride of 128

Source: BERT ``run_squad.convert_examples_to_features``.
"""

from collections.abc import Sequence
from typing import NamedTuple

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.tasks import WindowSettings
from t5repro.errors import SettingsError
from t5repro.model.segment_rows import SegmentEncoder, SegmentRow
from t5repro.vocab.vocabulary import Vocabulary

Range = tuple[int, int]  # the first, and the one after the last


class Window(NamedTuple):
    """One row of an example.

    Attributes:
        row: its ids; the text begins at `SegmentRow.first_length`.
        example: number of the example.
        text: the last segment of the example, from which answers are cut.
        pieces: of the text that are in the window.
        ranges: of these pieces, each in the characters of the text.
    """

    row: SegmentRow
    example: int
    text: str
    pieces: Range
    ranges: Sequence[Range]

    def positions_of(self, characters: Range) -> Range:
        """Return the positions in the row of the first and the last piece of some characters.

        Without all of them in the window, both are 0, the position of ``[CLS]``.
        """
        first, stop = characters
        if not self.ranges or first < self.ranges[0][0] or stop > self.ranges[-1][1]:
            return 0, 0
        # Pieces that overlap the characters: an answer may begin or end inside a piece.
        pieces = [
            index for index, (low, high) in enumerate(self.ranges) if low < stop and high > first
        ]
        if not pieces:
            return 0, 0
        return self.row.first_length + pieces[0], self.row.first_length + pieces[-1]

    def answer(self, first: int, last: int) -> str:
        """Return the text between two positions of the row."""
        first_character = self.ranges[first - self.row.first_length][0]
        stop_character = self.ranges[last - self.row.first_length][1]
        return self.text[first_character:stop_character].strip()


class WindowEncoder(SegmentEncoder):
    """Writes questions and texts as rows of ids.

    Args:
        vocabulary: the vocabulary of the run.
        model: shape of the network.
        length: most ids of a row.
        windows: length of a question, and the stride.

    Raises:
        SettingsError: a question can fill a row.
    """

    def __init__(
        self, vocabulary: Vocabulary, *, model: ModelSettings, length: int, windows: WindowSettings
    ) -> None:
        super().__init__(vocabulary, model=model, length=length)
        self._windows = windows
        least = windows.question_length + len(self._start) + len(self._between) + len(self._end)
        if length <= least:
            raise SettingsError(
                f"inputs_length is {length}, of which a question with its special pieces can take "
                f"{least}; raise inputs_length, or lower tasks.windows.question_length"
            )

    def windows(self, rows: Sequence[Sequence[str]]) -> list[Window]:
        """Return all windows of each row, example after example.

        Args:
            rows: question and text each.
        """
        questions = self._vocabulary.encode_batch([row[0] for row in rows])
        # Several questions have the same text.
        texts = {text: self._vocabulary.encode_with_ranges(text) for _, text in rows}
        return [
            window
            for number, ((_, text), question) in enumerate(zip(rows, questions, strict=True))
            for window in self._example_windows(number, question, text, *texts[text])
        ]

    def _example_windows(
        self,
        number: int,
        question: Sequence[int],
        text: str,
        ids: Sequence[int],
        ranges: Sequence[Range],
    ) -> list[Window]:
        longest = self._windows.question_length
        prefix = [*self._start, *question[:longest], *self._between]
        max_pieces = self._length - len(prefix) - len(self._end)
        is_cut = len(question) > longest  # the text itself is never cut, it gets more windows
        return [
            Window(
                SegmentRow([*prefix, *ids[first:stop], *self._end], len(prefix), is_cut),
                number,
                text,
                (first, stop),
                ranges[first:stop],
            )
            for first, stop in window_ranges(len(ids), max_pieces, self._windows)
        ]


def window_ranges(pieces: int, max_pieces: int, windows: WindowSettings) -> list[Range]:
    """Return the pieces of each window of a text; the last one ends with the text.

    Args:
        pieces: of the text.
        max_pieces: most pieces of a window.
        windows: their stride.
    """
    ranges = [(0, min(pieces, max_pieces))]
    while ranges[-1][1] < pieces:
        # A stride above the length of a window would skip pieces.
        first = ranges[-1][0] + min(windows.stride, max_pieces)
        ranges.append((first, min(pieces, first + max_pieces)))
    return ranges


def best_windows(pieces: int, windows: Sequence[Range]) -> list[int]:
    """Return for each piece the window with the most context around it, of equal ones the first.

    Context is the smaller of the numbers of pieces on both sides; longer windows win ties.

    Source: BERT ``run_squad._check_is_max_context``.
    """

    def context(piece: int, window: Range) -> float:
        first, stop = window
        return min(piece - first, stop - 1 - piece) + 0.01 * (stop - first)

    best = []
    for piece in range(pieces):
        # `max` keeps the first of equal windows, as BERT's loop does.
        inside = [number for number, (first, stop) in enumerate(windows) if first <= piece < stop]
        best.append(max(inside, key=lambda number: context(piece, windows[number])))
    return best
