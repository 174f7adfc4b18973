"""Small token files, a small vocabulary and small task files."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from t5repro.config.sections.vocab import VocabSettings, VocabStage
from t5repro.jobs.corpus import VocabJob
from t5repro.vocab.train import make_vocabulary

TEXTS = (
    "The old mill by the river turns slowly while the farmer carries his grain uphill.",
    "Die alte Mühle am Fluss dreht sich langsam, während der Bauer sein Korn hinaufträgt.",
    "Le vieux moulin près de la rivière tourne doucement pendant que le fermier s'éloigne.",
    "Moara veche de lângă râu se învârte încet, în timp ce țăranul își duce grâul în sus.",
    "Doi copii privesc roata și numără fiecare picătură care cade de pe paletele de lemn.",
)


@pytest.fixture
def vocab() -> VocabSettings:
    return VocabSettings(vocab_size=900, extra_ids=100)


@pytest.fixture
def write_tokens(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Write documents of the given lengths; token t of the file has the id 3 + t modulo 890."""

    def write(lengths: list[int], folder: Path = tmp_path) -> tuple[Path, Path]:
        ids, offsets = folder / "train.ids", folder / "train.offsets"
        (3 + np.arange(sum(lengths)) % 890).astype("<u2").tofile(ids)
        np.cumsum([0, *lengths]).astype("<i8").tofile(offsets)
        return ids, offsets

    return write


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SentencePiece model of 120 pieces and 20 sentinels over four languages."""
    folder = tmp_path_factory.mktemp("vocabulary")
    random = np.random.default_rng(0)
    sample = folder / "sample.txt"
    lines = [" ".join(random.permutation(text.split())) for text in TEXTS for _ in range(30)]
    sample.write_text("\n".join(lines) + "\n", encoding="utf-8")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate(
                {"vocab": {"vocab_size": 120, "extra_ids": 20, "character_coverage": 1.0}}
            ),
            sample=sample,
            model=folder / "sentencepiece.model",
            pieces=folder / "sentencepiece.vocab",
            manifest=folder / "manifest.json",
        )
    )
    return folder / "sentencepiece.model"


@pytest.fixture
def task_vocab() -> VocabSettings:
    return VocabSettings(vocab_size=120, extra_ids=20)


@pytest.fixture
def write_examples(tmp_path: Path) -> Callable[..., dict[str, Path]]:
    """Write training examples of tasks: task -> (inputs, targets) pairs."""

    def write(tasks: dict[str, list[tuple[str, str]]]) -> dict[str, Path]:
        paths = {}
        for task, rows in tasks.items():
            paths[task] = tmp_path / task / "train.jsonl"
            paths[task].parent.mkdir(exist_ok=True)
            paths[task].write_text(
                "".join(
                    json.dumps({"inputs": text, "targets": target, "idx": n, "answer": target})
                    + "\n"
                    for n, (text, target) in enumerate(rows)
                ),
                encoding="utf-8",
            )
        return paths

    return write


@pytest.fixture
def three_tasks() -> dict[str, list[tuple[str, str]]]:
    """One large, one middling and one small task, with texts of many lengths."""
    random = np.random.default_rng(1)
    words = " ".join(TEXTS).split()

    def rows(prefix: str, count: int, longest: int) -> list[tuple[str, str]]:
        return [
            (
                f"{prefix} {n} " + " ".join(random.choice(words, random.integers(1, longest))),
                " ".join(random.choice(words, random.integers(1, 4))),
            )
            for n in range(count)
        ]

    return {
        "large": rows("large", 300, 8),
        "middle": rows("middle", 100, 4),
        "small": rows("small", 20, 14),
    }
