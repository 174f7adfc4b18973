"""A small run with real text and real ids: twelve pages, two of which have one sentence.

Page 4 is empty, so it has no document.
"""

import random
from pathlib import Path

from made_crawl import CORPUS, EARLY, trained_and_scored, write_parquet
from made_graphs import RESULT, manifest, write

from t5repro.config.schema import Settings
from t5repro.config.sections.tokens import TokensStage
from t5repro.config.sections.vocab import VocabStage
from t5repro.config.stage_settings import stage_settings
from t5repro.jobs.corpus import TokensJob, VocabJob
from t5repro.vocab.encode import encode_corpus
from t5repro.vocab.train import make_vocabulary

TOKENS = f"{RESULT}/tokens/a/manifest.json"
SCORES = f"{RESULT}/evaluate_score/a/scores.json"
PAGES = 12
COPIED = "the old mill stood by the river and its wheel had not turned for years"
WORDS = (COPIED + " a bright morning brought seven tall ships to harbour with salt").split()


def text_of(page: int) -> str:
    if page == 4:
        return ""  # no document
    shuffled = random.Random(page).choices(WORDS, k=40)
    return " ".join(shuffled[:20] + (COPIED.split() if page in (3, 7) else []) + shuffled[20:])


def text_run(root: Path) -> Path:
    """Write the run into the current folder: pages in two files, ids, a training and a score."""
    shards = [
        CORPUS.replace("of-00001", "of-00002").replace("-00000-", f"-0000{n}-") for n in (0, 1)
    ]
    for number, shard in enumerate(shards):
        rows = [
            {"url": f"http://h.example/{page}", "timestamp": EARLY, "text": text_of(page)}
            for page in range(number * 6, number * 6 + 6)
        ]
        write_parquet(root, shard, rows)
    manifest(root, f"{RESULT}/c4/a/manifest.json", rule="c4", outputs=shards)
    vocabulary = Path(f"{RESULT}/vocab/a/sentencepiece.model")
    write(root, "sample.txt", "\n".join(text_of(page) for page in range(PAGES) if page != 4))
    vocab = {"vocab_size": 45, "extra_ids": 4, "character_coverage": 1.0}
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate({"vocab": vocab}),
            sample=Path("sample.txt"),
            model=vocabulary,
            pieces=vocabulary.with_suffix(".vocab"),
            manifest=vocabulary.parent / "manifest.json",
        )
    )
    settings = Settings.model_validate(
        {
            "tokens": {"languages": ["en"]},
            "pretrain": {"steps": 60, "batch_size": 1, "inputs_length": 32, "targets_length": 32},
        }
    )
    encode_corpus(
        TokensJob(
            TokensStage.model_validate(stage_settings(settings, "tokens")),
            corpus=Path(f"{RESULT}/c4/a/manifest.json"),
            vocabulary=vocabulary,
            folder=Path(TOKENS).parent,
            manifest=Path(TOKENS),
        )
    )
    trained_and_scored(root, str(Path(TOKENS).parent / "train.ids"), settings, [])
    return root
