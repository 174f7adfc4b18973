"""Rows of pre-training before and after the corruption of every objective of a run.

The first documents of the corpus, as far as one segment of the objective, corrupted by the code
that pre-training runs. The noise has a stream of its own (`report`, `noise`), so that the rows of
all objectives and seeds of a run can be compared; a training draws other noise in every step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from t5repro.config.schema import Settings
from t5repro.config.sections.pretrain import Denoiser, PretrainSettings
from t5repro.config.sections.vocab import SPECIAL_PIECES, VocabSettings
from t5repro.inputs.packing import SHORTEST_SEGMENT
from t5repro.objectives.examples import CorruptedSegment, corrupt_segments
from t5repro.objectives.masked_examples import mask_segments
from t5repro.objectives.mode_tokens import mode_token_id
from t5repro.objectives.permuted_examples import order_segments
from t5repro.objectives.row_lengths import segment_length
from t5repro.randomness import seed_pair, single_seed
from t5repro.report.corpus import safe_text
from t5repro.report.experiments import format_value
from t5repro.report.vocabulary import SPACE, is_sentinel
from t5repro.vocab.special_ids import EOS_ID, PAD_ID, UNK_ID, sentinel

ROWS = 3
# Settings that decide the rows; the lengths decide how long a segment is.
OF_OBJECTIVE = (
    "objective",
    "noise_mask",
    "noise_density",
    "mean_noise_span_length",
    "final_sentinel",
    "inputs_length",
    "targets_length",
)
OF_MIXTURE = ("objective", "inputs_length", "targets_length")
OF_MASKED_LM = ("objective", "noise_density", "inputs_length", "targets_length")
OF_PERMUTATION_LM = ("objective", "inputs_length", "targets_length")
# Objectives on rows of sentences: the names of their settings, which have a section of their own.
OF_SENTENCES = {"masked_lm": OF_MASKED_LM, "permutation_lm": OF_PERMUTATION_LM}


@dataclass(frozen=True)
class Part:
    """A part of a row: text, or a sentinel or another special piece."""

    text: str
    is_special: bool


@dataclass(frozen=True)
class Row:
    """A segment of a document, and the inputs and the targets that the objective makes of it.

    Attributes:
        url: address of the page.
        text: the segment.
        inputs: text of the encoder; empty if the objective has no inputs.
        targets: text of the decoder.
        tokens: numbers of tokens of text, inputs and targets.
    """

    url: str
    text: tuple[Part, ...]
    inputs: tuple[Part, ...]
    targets: tuple[Part, ...]
    tokens: tuple[int, int, int]


def objective_settings(settings: Settings) -> dict[str, str]:
    """Return the settings that decide the corrupted rows; none if an arm trains on no corpus."""
    if not settings.pretrain.steps and not settings.finetune.corpus_examples:
        return {}
    pretrain = settings.pretrain
    if (section := pretrain.objective) in OF_SENTENCES:
        values = {name: format_value(getattr(pretrain, name)) for name in OF_SENTENCES[section]}
        options = getattr(pretrain, section).model_dump()
        return values | {f"{section}.{name}": format_value(options[name]) for name in options}
    names = OF_MIXTURE if pretrain.denoisers else OF_OBJECTIVE
    values = {name: format_value(getattr(pretrain, name)) for name in names}
    denoisers = {
        f"denoiser_{number}": _denoiser_text(denoiser, settings.vocab)
        for number, denoiser in enumerate(pretrain.denoisers)
    }
    return {**values, **denoisers}


def _denoiser_text(denoiser: Denoiser, vocab: VocabSettings) -> str:
    """Return a denoiser in words, such as ``[NLU] = <extra_id_99>, replace_spans, ...``."""
    words = [denoiser.objective, f"density {denoiser.noise_density}"]
    if denoiser.objective == "replace_spans":
        words.append(f"mean span {denoiser.mean_noise_span_length}")
    if name := denoiser.mode_token:
        ids = {"total_ids": vocab.total_ids, "extra_ids": vocab.extra_ids}
        number = vocab.total_ids - 1 - mode_token_id(name, **ids)
        words.insert(0, f"[{name}] = {sentinel(number)}")
    return ", ".join([*words, f"weight {denoiser.weight}"])


def corrupted_rows(
    settings: PretrainSettings,
    documents: Mapping[str, Sequence[int]],
    pieces: Sequence[str],
    *,
    seed: int,
) -> list[Row]:
    """Return the first rows of a corpus under an objective.

    Of a mixture of denoisers, each denoiser corrupts the first document once.

    Args:
        settings: of pre-training.
        documents: URL -> ids of the page, in the order of the corpus.
        pieces: pieces of the vocabulary by id.
        seed: seed of the run.
    """
    of_sentences = {"masked_lm": mask_segments, "permutation_lm": order_segments}
    corrupt = of_sentences.get(settings.objective)
    # Both add two special pieces.
    segment_tokens = settings.inputs_length - 2 if corrupt else segment_length(settings)
    segments = {
        url: ids[:segment_tokens] for url, ids in documents.items() if len(ids) >= SHORTEST_SEGMENT
    }
    shown = list(segments.items())[:ROWS]
    if not shown:
        return []
    if settings.denoisers:
        shown = shown[:1] * len(settings.denoisers)
    ids_of_rows = [ids for _, ids in shown]
    if corrupt:
        corrupted = _of_words(corrupt, settings, ids_of_rows, pieces, seed)
    else:
        corrupted = _corrupted(settings, ids_of_rows, pieces, seed)
    pieces = [*pieces, *SPECIAL_PIECES]
    return [
        Row(
            url=safe_text(url),
            text=parts(row.text, pieces),
            inputs=parts(row.inputs, pieces),
            targets=parts(row.targets, pieces),
            tokens=(len(row.text), len(row.inputs), len(row.targets)),
        )
        for (url, _), row in zip(shown, corrupted, strict=True)
    ]


def _corrupted(
    settings: PretrainSettings, segments: Sequence[Sequence[int]], pieces: Sequence[str], seed: int
) -> list[CorruptedSegment]:
    return corrupt_segments(
        settings,
        segments,
        total_ids=len(pieces),
        extra_ids=sum(map(is_sentinel, pieces)),
        seeds=(seed_pair(seed, "report", "noise"), seed_pair(seed, "report", "corruption")),
        denoisers=range(len(segments)) if settings.denoisers else None,
    )


def _of_words(
    corrupt: Callable[..., list[CorruptedSegment]],
    settings: PretrainSettings,
    segments: Sequence[Sequence[int]],
    pieces: Sequence[str],
    seed: int,
) -> list[CorruptedSegment]:
    extra_ids = sum(map(is_sentinel, pieces))
    return corrupt(
        settings,
        segments,
        word_starts=[piece.startswith(SPACE) for piece in pieces],
        vocab=VocabSettings(vocab_size=len(pieces) - extra_ids, extra_ids=extra_ids),
        seed=single_seed(seed, "report", "noise"),
    )


def parts(ids: Sequence[int], pieces: Sequence[str]) -> tuple[Part, ...]:
    """Return ids as text, with sentinels and other special pieces as parts of their own."""
    shown: list[Part] = []
    for special, group in groupby(ids, lambda number: _is_special(pieces[number], number)):
        texts = [pieces[number] for number in group]
        if special:
            shown += [Part(text.removeprefix(SPACE), True) for text in texts]
        else:
            text = "".join(texts).replace(SPACE, " ")
            shown.append(Part(safe_text(text, len(text)), False))
    return tuple(shown)


def _is_special(piece: str, number: int) -> bool:
    is_control = number in (PAD_ID, EOS_ID, UNK_ID) or piece in SPECIAL_PIECES
    return is_control or is_sentinel(piece)
