"""A small corpus in four languages, as the rule `c4` writes it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from t5repro.config.sections.vocab import VocabSampleStage, VocabStage
from t5repro.files import write_manifest
from t5repro.jobs.corpus import VocabJob, VocabSampleJob
from t5repro.vocab.sample import sample_corpus
from t5repro.vocab.train import make_vocabulary

SENTENCES = {
    "en": "The old mill by the river turns slowly while the farmer carries his grain uphill. "
    "Two children watch the wheel and count every drop that falls from its wooden blades.",
    "de": "Die alte Mühle am Fluss dreht sich langsam, während der Bauer sein Korn hinaufträgt. "
    "Zwei Kinder schauen dem Rad zu und zählen jeden Tropfen, der von den Schaufeln fällt.",
    "fr": "Le vieux moulin près de la rivière tourne doucement pendant que le fermier s'éloigne. "
    "Deux enfants regardent la roue et comptent chaque goutte qui tombe de ses pales en bois.",
    "ro": "Moara veche de lângă râu se învârte încet, în timp ce țăranul își duce grâul în sus. "
    "Doi copii privesc roata și numără fiecare picătură care cade de pe paletele de lemn.",
}

WriteCorpus = Callable[..., Path]


def page(language: str, number: int, sentences: int) -> str:
    """Return paragraphs of reordered words: different on every page, of one language."""
    random = np.random.default_rng([number, len(language), ord(language[0])])
    words = SENTENCES[language].split()
    lines = [" ".join(random.permutation(words)) for _ in range(sentences)]
    return "\n".join(lines)


@pytest.fixture
def write_corpus(tmp_path: Path) -> WriteCorpus:
    def write(
        pages: dict[str, list[str]],
        *,
        validation: dict[str, list[str]] | None = None,
        shards: int = 1,
        folder: Path = tmp_path / "c4",
    ) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        outputs = []
        for split, texts in (("train", pages), ("validation", validation or {})):
            for language, rows in texts.items():
                for shard in range(shards):
                    chosen = range(shard, len(rows), shards)
                    path = folder / f"{language}-{split}-{shard:05d}-of-{shards:05d}.parquet"
                    pq.write_table(
                        pa.table(
                            {
                                "url": [f"{language}.example/{number}" for number in chosen],
                                "text": [rows[number] for number in chosen],
                                "timestamp": ["2019-04-18T00:00:00Z" for _ in chosen],
                                "language": [language for _ in chosen],
                            }
                        ),
                        path,
                    )
                    outputs.append(path)
        manifest = folder / "manifest.json"
        write_manifest(manifest, rule="c4", settings={}, inputs=[], outputs=outputs, counters={})
        return manifest

    return write


@pytest.fixture
def four_languages() -> dict[str, list[str]]:
    return {
        language: [page(language, number, 6) for number in range(40 if language == "en" else 20)]
        for language in SENTENCES
    }


@pytest.fixture
def sample(write_corpus: WriteCorpus, four_languages: dict[str, list[str]], tmp_path: Path) -> Path:
    """Text for the training of a vocabulary."""
    sample_corpus(
        VocabSampleJob(
            VocabSampleStage.model_validate(
                {
                    "vocab": {
                        "language_parts": dict.fromkeys(four_languages, 1),
                        "sample_chars": 13_000,
                    }
                }
            ),
            corpus=write_corpus(four_languages),
            sample=tmp_path / "sample.txt",
            manifest=tmp_path / "sample.json",
        )
    )
    return tmp_path / "sample.txt"


@pytest.fixture
def model(sample: Path, tmp_path: Path) -> Path:
    """A SentencePiece model of 150 pieces and 10 sentinels."""
    path = tmp_path / "vocab" / "sentencepiece.model"
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate(
                {"vocab": {"vocab_size": 150, "extra_ids": 10, "character_coverage": 1.0}}
            ),
            sample=sample,
            model=path,
            pieces=tmp_path / "vocab" / "sentencepiece.vocab",
            manifest=tmp_path / "vocab" / "manifest.json",
        )
    )
    return path
