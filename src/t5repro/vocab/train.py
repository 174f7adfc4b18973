"""Trains a SentencePiece vocabulary, or adopts an existing one (paper section 2.2).

Reads the text of `sample`, writes a SentencePiece model and the list of its pieces. Pieces come
from SentencePiece's unigram trainer with only the special ids changed; the sentinels of span
corruption are then appended to the model file, so that every reader of SentencePiece models has
them. Vocabularies of other libraries are read by `adopted`.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import sentencepiece

from t5repro.config.sections.vocab import VocabStage
from t5repro.errors import ArtifactError, SettingsError, VocabularyError
from t5repro.files import write_bytes, write_manifest, write_text
from t5repro.jobs.corpus import VocabJob
from t5repro.progress import announce
from t5repro.vocab.added_tokens import read_added_tokens
from t5repro.vocab.adopted.files import published_vocabulary
from t5repro.vocab.special_ids import EOS_ID, NO_ID, PAD_ID, UNK_ID, add_sentinels
from t5repro.vocab.vocabulary import Vocabulary

TRAINING_THREADS = 16  # SentencePiece's default; the sums of the trainer depend on this number
QUIET = 2  # SentencePiece's log level that prints only errors
TOO_MANY = re.compile(r"Vocabulary size too high \((\d+)\).*<= (\d+)")
TOO_FEW = re.compile(r"smaller than required_chars\. (\d+) vs (\d+)")


def make_vocabulary(job: VocabJob) -> None:
    """Train a vocabulary on the sample, or use the model file.

    Raises:
        SettingsError: the job has both of them, or neither.
        ArtifactError: the file is missing or damaged.
        VocabularyError: the vocabulary does not have the number of ids of the settings.
    """
    if job.sample and not job.model_file:
        train_vocabulary(job, job.sample)
    elif job.model_file and not job.sample:
        adopt_vocabulary(job, job.model_file)
    else:
        raise SettingsError("vocab needs either --sample or --model-file, and not both")


def train_vocabulary(job: VocabJob, sample: Path) -> None:
    """Train the pieces, append the sentinels, write the model and its list of pieces.

    Raises:
        ArtifactError: the sample is missing.
        VocabularyError: the text allows no vocabulary of this size.

    Source: paper section 2.2; released code, vocabulary trained with ``pad_id=0, eos_id=1,
    unk_id=2, bos_id=-1`` and SentencePiece's other defaults.
    """
    if not sample.is_file():
        raise ArtifactError(f"{sample} is missing; run the rule vocab_sample")
    size, extra_ids = job.settings.vocab.vocab_size, job.settings.vocab.extra_ids
    announce(f"vocab: training {size:,} pieces on {sample.stat().st_size:,} bytes of text")
    proto = add_sentinels(train_pieces(job.settings, sample), extra_ids)
    vocabulary = Vocabulary.from_bytes(proto, sample)
    total = vocabulary.total_ids
    if total != size + extra_ids:
        raise VocabularyError(
            f"the trained model has {total} ids, vocab.vocab_size + vocab.extra_ids is "
            f"{size + extra_ids}; the installed sentencepiece does not fit this project's lock file"
        )
    _write_vocabulary(job, vocabulary, sample)


def adopt_vocabulary(job: VocabJob, source: Path) -> None:
    """Write an existing vocabulary, with sentinels appended if it is a T5's and has none.

    Raises:
        ArtifactError: the source is missing, damaged or of no form that can be adopted.
        VocabularyError: it has another number of ids than the settings, or its tokenizer has
            tokens with other ids or options that cannot be used.
    """
    if not source.is_file():
        raise ArtifactError(f"{source} is missing; vocab.model_file names it")
    size, extra_ids = job.settings.vocab.vocab_size, job.settings.vocab.extra_ids
    published = published_vocabulary(source, job.tokenizer)
    vocabulary = Vocabulary.from_bytes(published.data, source)
    if not vocabulary.extra_ids:
        vocabulary = Vocabulary.from_bytes(vocabulary.pieces.with_sentinels(extra_ids), source)
    total = vocabulary.total_ids
    if total != size + extra_ids:
        raise VocabularyError(
            f"{source} has {total} ids with its sentinels, vocab.vocab_size + vocab.extra_ids is "
            f"{size + extra_ids}; set vocab.vocab_size to {total - extra_ids}"
        )
    read_added_tokens(job.tokenizer).check(vocabulary)
    _write_vocabulary(job, vocabulary, source)


def _write_vocabulary(job: VocabJob, vocabulary: Vocabulary, source: Path) -> None:
    size, extra_ids = job.settings.vocab.vocab_size, job.settings.vocab.extra_ids
    pieces = vocabulary.pieces
    write_bytes(job.model, pieces.with_sentinels(0))
    write_text(
        job.pieces,
        "".join(
            f"{pieces.spelling(number)}\t{pieces.score(number):g}\n"
            for number in range(size + extra_ids)
        ),
    )
    announce(f"vocab: {size:,} pieces and {extra_ids} sentinels")
    write_manifest(
        job.manifest,
        rule="vocab",
        settings=job.settings.model_dump(mode="json"),
        inputs=[source, *job.tokenizer],
        outputs=[job.model, job.pieces],
        counters={"pieces": size, "sentinels": extra_ids, "ids": size + extra_ids},
    )


def train_pieces(settings: VocabStage, sample: Path) -> bytes:
    """Return the serialised SentencePiece model without sentinels.

    Raises:
        VocabularyError: the text allows no vocabulary of this size.
    """
    # Text and model pass through memory: the trainer writes the names of its files into the model,
    # and equal runs in two folders would differ.
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_lines(sample),
            model_writer=model,
            model_type="unigram",
            vocab_size=settings.vocab.vocab_size,
            character_coverage=settings.vocab.character_coverage,
            required_chars=settings.vocab.required_characters,
            pad_id=PAD_ID,
            eos_id=EOS_ID,
            unk_id=UNK_ID,
            bos_id=NO_ID,
            num_threads=TRAINING_THREADS,
            minloglevel=QUIET,
        )
    except RuntimeError as error:
        raise _vocabulary_error(str(error), sample) from error
    return model.getvalue()


def _lines(sample: Path) -> Iterator[str]:
    with sample.open(encoding="utf-8", newline="\n") as handle:
        for line in handle:
            yield line.rstrip("\n")


def _vocabulary_error(message: str, sample: Path) -> VocabularyError:
    if numbers := TOO_MANY.search(message):
        size, largest = numbers.groups()
        return VocabularyError(
            f"vocab.vocab_size is {size}, but the text of {sample} allows at most {largest} "
            f"pieces; set vocab.vocab_size to {largest} or less, or give more text "
            f"(vocab.sample_chars, a larger crawl)"
        )
    if numbers := TOO_FEW.search(message):
        size, required = numbers.groups()
        return VocabularyError(
            f"vocab.vocab_size is {size}, but the characters of {sample} alone need {required} "
            f"pieces; set vocab.vocab_size to more than {required} or lower "
            f"vocab.character_coverage"
        )
    return VocabularyError(f"SentencePiece cannot train on {sample}: {message}")
