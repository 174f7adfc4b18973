"""Training examples with labels, options, numbers, spans or tags as answers, from their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import read_json_lines
from t5repro.model.labels import TaskAnswer
from t5repro.model.task_rows import SegmentTexts, texts_in
from t5repro.model.windows import Range
from t5repro.task_facts import OUTSIDE

TAGS = "tags"  # key of the tags of a sentence in its answer
SPANS = "spans"  # key of the positions of the answers, see `tasks.segments`
NUMBER = "number"  # key of a number to train on, which the reference of the scores may round
NumberedRow = tuple[int, Mapping[str, Any]]


@dataclass(frozen=True)
class LabelledExamples:
    """The training examples of one task.

    Attributes:
        texts: segments and options of each example.
        targets: index of its label or option, or its number; 0 of a span.
        spans: characters of the answer in the last segment, for a task of spans; an empty range if
            the question has no answer.
        answer: kind of the answers, and the words of labels and options.
        left_out: rows of a task of spans without the answer in the text.
        tags: index of the tag of each word, for a task of tags.
    """

    texts: Sequence[SegmentTexts]
    targets: Sequence[float]
    spans: Sequence[Range]
    answer: TaskAnswer
    left_out: int = 0
    tags: Sequence[Sequence[int]] = ()

    def scaled(self, scale: float) -> "LabelledExamples":
        """Return the examples with numbers divided by a scale, which their answer knows."""
        return replace(
            self,
            targets=[target / scale for target in self.targets],
            answer=self.answer._replace(scale=scale),
        )

    def doubled(self, path: Path) -> "LabelledExamples":
        """Return each example twice, the second time with its two segments in reverse order.

        Args:
            path: file of the examples, for messages.

        Raises:
            ArtifactError: they have spans, tags, options or not two segments.

        Source: ELECTRA ``classification_tasks`` with ``double_unordered``.
        """
        if self.answer.kind not in ("label", "number") or self.answer.segments != 2:
            raise ArtifactError(
                f"{path} has rows that have not two segments with a label or a number, which could "
                "change places; take the task out of finetune.doubled_tasks"
            )
        swapped = [text._replace(segments=text.segments[::-1]) for text in self.texts]
        return replace(self, texts=[*self.texts, *swapped], targets=[*self.targets] * 2)


def read_labelled(path: Path, *, predicts_spans: bool) -> LabelledExamples:
    """Read the training examples of a task.

    Args:
        path: the file.
        predicts_spans: whether the network has heads for spans and tags; else they are free text.

    Raises:
        ArtifactError: the file is missing or has no rows, a row lacks segments or an answer, rows
            differ in the number of their options, an option is never the answer, or the targets
            are free text.
    """
    rows = list(enumerate(read_json_lines(path), start=1))
    if not rows:
        raise ArtifactError(f"{path} has no examples to train on; check the task's training files")
    if predicts_spans and any(row.get(SPANS) for _, row in rows):
        return _span_examples(path, rows)
    if predicts_spans and all(_tags_of(row) is not None for _, row in rows):
        return _tag_examples(path, rows)
    word_by_index: dict[int, str] = {}
    texts = [texts_in(row, path, number) for number, row in rows]
    targets = [_target(row, word_by_index, f"{path} line {number}") for number, row in rows]
    return LabelledExamples(texts, targets, (), _answer_of(path, texts, word_by_index))


def _span_examples(path: Path, rows: Sequence[NumberedRow]) -> LabelledExamples:
    """Return the rows with the answer in the text, or with no answer.

    Source: BERT ``run_squad.read_squad_examples``, which also skips rows whose answer is not there.
    """
    used = [(number, row) for number, row in rows if row.get(SPANS) or row["answer"] == []]
    # The text that the task reads back as no answer; none if every question has one.
    no_answer_texts = tuple(dict.fromkeys(row["targets"] for _, row in used if not row.get(SPANS)))
    return LabelledExamples(
        [texts_in(row, path, number) for number, row in used],
        [0.0] * len(used),
        [_first_span(row) for _, row in used],
        TaskAnswer("span", no_answer_texts, segments=2),
        left_out=len(rows) - len(used),
    )


def _first_span(row: Mapping[str, Any]) -> Range:
    """Return the characters of the first answer; an empty range without one."""
    first, stop = row[SPANS][0] if row.get(SPANS) else (0, 0)
    return first, stop


def _tags_of(row: Mapping[str, Any]) -> Sequence[str] | None:
    """Return the tags of the words of a row; None if its answer has none."""
    answer = row.get("answer")
    tags: Sequence[str] | None = answer.get(TAGS) if isinstance(answer, dict) else None
    return tags


def _tag_examples(path: Path, rows: Sequence[NumberedRow]) -> LabelledExamples:
    """Return the rows with a tag for each word, which single spaces separate.

    Raises:
        ArtifactError: a row has not as many tags as words.
    """
    texts = [texts_in(row, path, number) for number, row in rows]
    tags = [_tags_of(row) or () for _, row in rows]
    for (number, _), example, of_row in zip(rows, texts, tags, strict=True):
        word_count = len(example.segments[0].split(" "))
        if word_count != len(of_row):
            raise ArtifactError(
                f"{path} line {number} has {len(of_row)} tags and {word_count} words; each word "
                "needs one: rerun the rule tasks"
            )
    inside = sorted({tag for of_row in tags for tag in of_row} - {OUTSIDE})
    words_of_tags = (OUTSIDE, *inside)
    index = {tag: number for number, tag in enumerate(words_of_tags)}
    return LabelledExamples(
        texts,
        [0.0] * len(rows),
        (),
        TaskAnswer("tags", words_of_tags, segments=1),
        tags=[[index[tag] for tag in of_row] for of_row in tags],
    )


def _target(row: Mapping[str, Any], word_by_index: dict[int, str], line: str) -> float:
    """Return the label or number of a row, and add the word of the label to `word_by_index`.

    Raises:
        ArtifactError: it is neither.
    """
    answer = row.get(NUMBER, row.get("answer"))
    if isinstance(answer, dict):  # of MultiRC, with the question's id
        answer = answer.get("label")
    if (
        isinstance(answer, int)
        and word_by_index.setdefault(answer, row["targets"]) != row["targets"]
    ):
        answer = None  # targets of one label differ, as those of Winograd schemas
    if not isinstance(answer, int | float):
        raise ArtifactError(
            f"{line} has the target {row.get('targets')!r}, which is neither one of a few labels "
            "nor a number; a network of labels predicts no text, and only an encoder spans with "
            "their place (answer_start in SQuAD's files): take the task out of tasks.names"
        )
    return answer


def _answer_of(
    path: Path, texts: Sequence[SegmentTexts], word_by_index: Mapping[int, str]
) -> TaskAnswer:
    """Return the kind of a task without spans, with its words by index.

    Raises:
        ArtifactError: rows differ in the number of their options, or one is never the answer.
    """
    counts = {len(example.options) for example in texts}
    if len(counts) > 1:
        raise ArtifactError(
            f"{path} has rows with {sorted(counts)} options; all rows of a task need as many"
        )
    segments = _number_of_segments(texts)
    if not word_by_index:
        return TaskAnswer("number", segments=segments)
    options = counts.pop()
    if options and sorted(word_by_index) != list(range(options)):
        raise ArtifactError(
            f"{path} has rows with {options} options, of which the answers are "
            f"{sorted(word_by_index)}; each must be the answer of a row, which names its word: "
            "give it more examples"
        )
    # A label that no training row has is never predicted; its column still has a word.
    label_words = tuple(word_by_index.get(index, "") for index in range(max(word_by_index) + 1))
    return TaskAnswer("choice" if options else "label", label_words, segments)


def _number_of_segments(texts: Sequence[SegmentTexts]) -> int:
    """Return the number of segments of each example, 0 if they differ."""
    counts = {len(example.segments) for example in texts}
    return counts.pop() if len(counts) == 1 else 0
