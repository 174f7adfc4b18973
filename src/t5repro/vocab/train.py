"""Draws the text of the vocabulary and trains its pieces (paper section 2.2).

English, German, French and Romanian enter as 10 : 1 : 1 : 1 parts of characters. Pieces come from
SentencePiece's unigram trainer with only the special ids changed; the sentinels of span
corruption are then appended to the model file, so that every reader of SentencePiece models has
them. To train on another language, add it to `c4.languages` and `vocab.language_parts`.
"""

import heapq
import io
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import sentencepiece

from t5repro.config.stages import VocabSampleStage, VocabStage
from t5repro.errors import ArtifactError, CorpusError, SettingsError, VocabularyError
from t5repro.files import atomic_path, write_bytes, write_manifest, write_text
from t5repro.progress import Progress, announce
from t5repro.randomness import seed_pair
from t5repro.vocab.corpus import pages_in, read_pages, shards_of

MAX_LINE_BYTES = 4192  # SentencePiece skips longer lines
TRAINING_THREADS = 16  # SentencePiece's default; the sums of the trainer depend on this number
PAD_ID, EOS_ID, UNK_ID, NO_ID = 0, 1, 2, -1
USER_DEFINED = 4  # SentencePiece.Type in sentencepiece_model.proto
QUIET = 2  # SentencePiece's log level from which errors alone are printed
TOO_MANY = re.compile(r"Vocabulary size too high \((\d+)\).*<= (\d+)")
TOO_FEW = re.compile(r"smaller than required_chars\. (\d+) vs (\d+)")


@dataclass
class Reservoir:
    """The pages with the smallest keys that together hold at least `target_chars` characters.

    Which pages stay depends on the set of pages offered, never on their order.
    """

    target_chars: int
    chars: int = 0
    pages: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)  # heap of negated keys

    def wants(self, key: int) -> bool:
        """Say whether a page with this key would stay."""
        return self.chars < self.target_chars or key < -self.pages[0][0]

    def add(self, key: int, lines: tuple[str, ...]) -> None:
        """Take one page in; drop those that the target no longer needs."""
        heapq.heappush(self.pages, (-key, lines))
        self.chars += characters(lines)
        while self.chars - characters(self.pages[0][1]) >= self.target_chars:
            self.chars -= characters(heapq.heappop(self.pages)[1])

    def drawn(self) -> list[tuple[str, ...]]:
        """Return the lines of each page, by ascending key."""
        return [lines for _, lines in sorted(self.pages, key=lambda page: (-page[0], page[1]))]


def characters(lines: tuple[str, ...]) -> int:
    """Return how many characters the lines hold, without the line ends."""
    return sum(map(len, lines))


def sample_corpus(
    settings: VocabSampleStage, *, corpus: Path, output: Path, manifest: Path
) -> None:
    """Write the text that the vocabulary is trained on, one line a paragraph.

    Each language gives its part of `sample_chars`, whole pages in a seeded order, the last one cut
    after the line that reaches the target. A language with too little text gives all it has; the
    manifest says what was asked of it and what it gave. Memory is that of the sample.

    Args:
        settings: parts per language, characters, seed.
        corpus: the manifest of `c4`.
        output: text file to write.
        manifest: manifest to write.

    Raises:
        CorpusError: a language has no text in the training split.
        SettingsError: a language's part is less than 1.
    """
    parts = settings.vocab.language_parts
    for language, part in parts.items():
        if part < 1:
            raise SettingsError(
                f"vocab.language_parts.{language} is {part}; parts are whole numbers from 1: "
                f"leave the language out to give it none"
            )
    whole = sum(parts.values())
    counters: dict[str, dict[str, int]] = {}
    inputs: list[Path] = [corpus]
    with atomic_path(output) as temporary, temporary.open("w", encoding="utf-8") as handle:
        for language in sorted(parts):
            asked = max(1, settings.vocab.sample_chars * parts[language] // whole)
            shards = shards_of(corpus, language, "train")
            counts = {"asked_chars": asked, "given_chars": 0, "lines": 0, "pages": 0}
            for lines in _draw_pages(settings.vocab.sample_seed, language, shards, asked):
                _write_page(handle, lines, counts)
            if not counts["given_chars"]:
                raise CorpusError(
                    f"{corpus}: the corpus has no {language!r} text to train the vocabulary on; "
                    f"crawl pages in this language or take it out of vocab.language_parts"
                )
            if counts["given_chars"] < asked:
                announce(
                    f"vocab_sample: {language} gives {counts['given_chars']:,} characters, "
                    f"all it has, of {asked:,} asked"
                )
            counters[language] = counts
            inputs += shards
    write_manifest(
        manifest,
        rule="vocab_sample",
        settings=settings.model_dump(mode="json"),
        inputs=inputs,
        outputs=[output],
        counters=counters,
    )


def _draw_pages(
    seed: int, language: str, shards: list[Path], target_chars: int
) -> list[tuple[str, ...]]:
    reservoir = Reservoir(target_chars)
    with Progress(f"vocab_sample {language}", total=pages_in(shards), unit="pages") as progress:
        for shard in shards:
            for pages in read_pages(shard):
                for url, text in pages:
                    key = _page_key(seed, language, url)
                    if reservoir.wants(key):
                        reservoir.add(key, lines_of(text))
                progress.advance(len(pages), chars=reservoir.chars)
    return reservoir.drawn()


def _page_key(seed: int, language: str, url: str) -> int:
    high, low = seed_pair(seed, "vocab_sample", language, url)
    return high << 31 | low


def _write_page(handle: TextIO, lines: tuple[str, ...], counts: dict[str, int]) -> None:
    """Write the lines of a page until the language has given what was asked of it."""
    counts["pages"] += 1
    for line in lines:
        handle.write(line + "\n")
        counts["lines"] += 1
        counts["given_chars"] += len(line)
        if counts["given_chars"] >= counts["asked_chars"]:
            return


def lines_of(text: str) -> tuple[str, ...]:
    """Return a page as the lines that the trainer reads: its paragraphs, long ones cut."""
    return tuple(line for part in text.split("\n") for line in lines_that_fit(part))


def lines_that_fit(paragraph: str, max_bytes: int = MAX_LINE_BYTES) -> Iterator[str]:
    """Yield a paragraph as lines that SentencePiece does not skip, cut between words.

    A single word longer than `max_bytes` is cut between characters; an empty paragraph yields
    nothing, and NUL characters, at which SentencePiece drops a line, become spaces.
    """
    line, line_bytes = "", 0
    for word in paragraph.replace("\0", " ").split():
        for part in _cut_word(word, max_bytes):
            part_bytes = len(part.encode())
            if line and line_bytes + 1 + part_bytes > max_bytes:
                yield line
                line, line_bytes = "", 0
            line, line_bytes = (
                (f"{line} {part}", line_bytes + 1 + part_bytes) if line else (part, part_bytes)
            )
    if line:
        yield line


def _cut_word(word: str, max_bytes: int) -> Iterator[str]:
    widest = max_bytes // 4  # no character takes more than four bytes
    if len(word.encode()) <= max_bytes:
        yield word
    else:
        for start in range(0, len(word), widest):
            yield word[start : start + widest]


def train_vocabulary(
    settings: VocabStage, *, sample: Path, model: Path, pieces: Path, manifest: Path
) -> None:
    """Train the pieces, append the sentinels, write the model and its list of pieces.

    Args:
        settings: number of pieces and of sentinels, which characters get a piece.
        sample: text file of `sample_corpus`.
        model: SentencePiece model to write.
        pieces: list of pieces to write, one ``piece<TAB>score`` a line, by id.
        manifest: manifest to write.

    Raises:
        ArtifactError: the sample is missing.
        VocabularyError: the text allows no vocabulary of this size.

    Source: paper section 2.2; released code, vocabulary trained with ``pad_id=0, eos_id=1,
    unk_id=2, bos_id=-1`` and SentencePiece's other defaults.
    """
    if not sample.is_file():
        raise ArtifactError(f"{sample} is missing; run the rule vocab_sample")
    size, extra_ids = settings.vocab.vocab_size, settings.vocab.extra_ids
    announce(f"vocab: training {size:,} pieces on {sample.stat().st_size:,} bytes of text")
    proto = add_sentinels(train_pieces(settings, sample), extra_ids)
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    total = processor.get_piece_size()
    if total != size + extra_ids:
        raise VocabularyError(
            f"the trained model has {total} ids, vocab.vocab_size + vocab.extra_ids is "
            f"{size + extra_ids}; the installed sentencepiece does not fit this project's lock file"
        )
    _write_vocabulary(settings, processor, proto, sample, model, pieces, manifest)


def adopt_vocabulary(
    settings: VocabStage, *, source: Path, model: Path, pieces: Path, manifest: Path
) -> None:
    """Write a vocabulary that its owner trained, with sentinels if it has none.

    Args:
        settings: pieces and sentinels that it must have.
        source: SentencePiece model.
        model: SentencePiece model to write.
        pieces: list of pieces to write, as `train_vocabulary` does.
        manifest: manifest to write.

    Raises:
        ArtifactError: the source is missing or is no SentencePiece model.
        VocabularyError: it has another number of ids than the settings.
    """
    if not source.is_file():
        raise ArtifactError(f"{source} is missing; vocab.model_file names it")
    size, extra_ids = settings.vocab.vocab_size, settings.vocab.extra_ids
    proto = source.read_bytes()
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    except RuntimeError as error:
        raise ArtifactError(f"{source} is not a SentencePiece model; get it again") from error
    if processor.piece_to_id("\u2581" + sentinel(0)) == UNK_ID:
        proto = add_sentinels(proto, extra_ids)
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    total = processor.get_piece_size()
    if total != size + extra_ids:
        raise VocabularyError(
            f"{source} has {total} ids with its sentinels, vocab.vocab_size + vocab.extra_ids is "
            f"{size + extra_ids}; set vocab.vocab_size to {total - extra_ids}"
        )
    _write_vocabulary(settings, processor, proto, source, model, pieces, manifest)


def _write_vocabulary(
    settings: VocabStage,
    processor: Any,
    proto: bytes,
    source: Path,
    model: Path,
    pieces: Path,
    manifest: Path,
) -> None:
    size, extra_ids = settings.vocab.vocab_size, settings.vocab.extra_ids
    write_bytes(model, proto)
    write_text(
        pieces,
        "".join(
            f"{processor.id_to_piece(number)}\t{processor.get_score(number):g}\n"
            for number in range(size + extra_ids)
        ),
    )
    announce(f"vocab: {size:,} pieces and {extra_ids} sentinels")
    write_manifest(
        manifest,
        rule="vocab",
        settings=settings.model_dump(mode="json"),
        inputs=[source],
        outputs=[model, pieces],
        counters={"pieces": size, "sentinels": extra_ids, "ids": size + extra_ids},
    )


def train_pieces(settings: VocabStage, sample: Path) -> bytes:
    """Return the serialised SentencePiece model without sentinels.

    Text goes in and the model comes out through memory, because the trainer writes the names of
    files into the model.

    Raises:
        VocabularyError: the text allows no vocabulary of this size.
    """
    trained = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_lines(sample),
            model_writer=trained,
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
    return trained.getvalue()


def _lines(sample: Path) -> Iterator[str]:
    with sample.open(encoding="utf-8", newline="\n") as handle:
        for line in handle:
            yield line.rstrip("\n")


def _vocabulary_error(message: str, sample: Path) -> VocabularyError:
    if found := TOO_MANY.search(message):
        return VocabularyError(
            f"vocab.vocab_size is {found[1]}, but the text of {sample} allows at most {found[2]} "
            f"pieces; set vocab.vocab_size to {found[2]} or less, or give more text "
            f"(vocab.sample_chars, a larger crawl)"
        )
    if found := TOO_FEW.search(message):
        return VocabularyError(
            f"vocab.vocab_size is {found[1]}, but the characters of {sample} alone need "
            f"{found[2]} pieces; set vocab.vocab_size to more than {found[2]} or lower "
            f"vocab.character_coverage"
        )
    return VocabularyError(f"SentencePiece cannot train on {sample}: {message}")


def sentinel(number: int) -> str:
    """Return the text of a sentinel, as it stands in a sentence."""
    return f"<extra_id_{number}>"


def add_sentinels(proto: bytes, count: int) -> bytes:
    """Append ``▁<extra_id_{count-1}>`` to ``▁<extra_id_0>`` to a serialised model.

    Their ids run backwards, so that ``<extra_id_k>`` is the last id minus k. Serialised protocol
    buffers merge by concatenation: the new pieces are written behind the model as they are.

    Source: released code, ``SentencePieceVocabulary`` with ``extra_ids``; spec of SentencePiece's
    ``sentencepiece_model.proto`` (field 1 of the model; piece 1, score 2, type 3).
    """
    return proto + b"".join(
        _length_delimited(
            1,
            _length_delimited(1, f"\u2581{sentinel(number)}".encode())
            + bytes([2 << 3 | 5])
            + struct.pack("<f", 0.0)
            + bytes([3 << 3, USER_DEFINED]),
        )
        for number in reversed(range(count))
    )


def _length_delimited(number: int, content: bytes) -> bytes:
    """Encode one field of a protocol buffer; pieces are short, so one byte holds the length."""
    return bytes([number << 3 | 2, len(content)]) + content
