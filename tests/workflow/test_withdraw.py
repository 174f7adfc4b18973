"""A withdrawn shard, URL or domain is nowhere any more, and what was made of it is made again."""

import gzip
import json
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from clones import artifact_hashes, environment, snakemake

from t5repro.c4.wet.pages import read_pages

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

SHARD = "data/crawl/MINI-2019-18-00000.warc.wet.gz"
URL = "http://www.hill-and-dale.example/en/2016/page-0429.html"
DOMAIN = "hill-and-dale.example"
TOKENS = "results/demo/tokens/baseline/manifest.json"
SCORES = "results/demo/evaluate_score/baseline/scores.json"


def t5repro(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["t5repro", *words],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    shutil.copytree(finished, folder, symlinks=True)
    for words in (["add", "-A"], ["commit", "-qm", "as it is"]):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=folder, check=True
        )
    return folder


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield every tracked file, artifact and cached object with its text, unpacked and decoded."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    found = [folder / name for name in listed if name]
    for kind in ("data", "results", ".dvc/cache"):
        found += [path for path in (folder / kind).rglob("*") if path.is_file()]
    for path in found:
        if not path.is_file():
            continue
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        if data.startswith(b"PAR1"):
            rows = pq.read_table(path).to_pylist()
            data = json.dumps(rows, default=repr, ensure_ascii=False).encode()
        yield path.relative_to(folder).as_posix(), data.decode("utf-8", "replace")


def decoded(folder: Path) -> str:
    """Return the corpus as the ids spell it."""
    from t5repro.vocab.token_files import read_ids, read_offsets
    from t5repro.vocab.vocabulary import Vocabulary

    tokens = folder / "results/demo/tokens/baseline"
    vocab = Vocabulary.load(folder / "results/demo/vocab/baseline/sentencepiece.model")
    ids, offsets = (
        read_ids(tokens / "train.ids", vocab.total_ids),
        read_offsets(tokens / "train.offsets"),
    )
    return "\n".join(
        vocab.decode(np.asarray(ids[low:high]).tolist()) for low, high in pairwise(offsets.tolist())
    )


def sentences_of(folder: Path, wanted: str) -> list[str]:
    """Return lines of withdrawn pages that stand on no other page of the crawl."""
    mine: set[str] = set()
    others: list[str] = []
    for path in sorted((folder / "data/crawl").iterdir()):
        for page in read_pages(path):
            if wanted in page.url or path.name in wanted:
                mine.update(page.text.split("\n"))
            else:
                others.append(page.text)
    rest = "\n".join(others)
    return sorted(line for line in mine if len(line) > 60 and line not in rest)[:20]


@pytest.mark.parametrize("wanted", [SHARD, URL, DOMAIN])
def test_afterwards_its_text_is_nowhere(copy: Path, wanted: str) -> None:
    lines = sentences_of(copy, wanted)
    assert lines
    before = "".join(text for _, text in texts(copy))
    assert any(line in before for line in lines)
    asked = t5repro(copy, "withdraw", wanted, "--reason", "ticket 7", "--delete-cache", "--json")
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    assert answer["scores"] == [
        f"results/demo/evaluate_score/{arm}/scores.json" for arm in ("baseline", "no_pretraining")
    ]
    assert not (copy / answer["scores"][0]).exists()
    ran = snakemake(copy, TOKENS)
    assert ran.returncode == 0, ran.stdout[-3000:]
    held = [(name, line) for name, text in texts(copy) for line in lines if line in text]
    assert held == []
    assert not [line for line in lines if line in decoded(copy)]
    if wanted != SHARD:
        counted = json.loads((copy / "results/demo/c4/baseline/manifest.json").read_text())
        first = counted["counters"]["rules"][0]
        assert first["rule"] == "withdrawn"
        assert first["dropped"]["withdrawn"] > 0


def test_scores_are_rebuilt_and_what_was_not_made_of_it_keeps_its_bytes(copy: Path) -> None:
    kept = ("c4", "vocab", "tokens", "pretrain", "tasks/squad")
    before = {name: hashes_below(copy, name) for name in kept}
    asked = t5repro(copy, "withdraw", "tasks/glue/RTE/train.tsv", "--reason", "x", "--json")
    assert asked.returncode == 0, asked.stderr
    pruned = json.loads(asked.stdout)["pruned"]
    assert SCORES in pruned
    assert not [name for name in pruned if "/c4" in name or "/pretrain/" in name]
    ran = snakemake(copy, SCORES)
    assert ran.returncode == 0, ran.stdout[-3000:]
    scores = json.loads((copy / SCORES).read_text())
    assert "glue_rte" not in scores["tasks"]
    assert len(scores["tasks"]) == 11
    assert {name: hashes_below(copy, name) for name in kept} == before


def hashes_below(folder: Path, name: str) -> dict[str, str]:
    """Return the hashes of a stage's files; manifests tell of the raw files and are left out."""
    return {
        path: sha256
        for path, sha256 in artifact_hashes(folder).items()
        if path.startswith(f"results/demo/{name}/") and not path.endswith("manifest.json")
    }


def test_a_dry_run_changes_nothing(copy: Path) -> None:
    asked = t5repro(copy, "withdraw", DOMAIN, "--reason", "x", "--dry-run")
    assert asked.returncode == 0, asked.stderr
    assert "score: results/demo/evaluate_score/baseline/scores.json" in asked.stdout
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=copy, check=True, capture_output=True, text=True
    )
    assert changed.stdout == ""
    assert t5repro(copy, "withdraw", DOMAIN, "--reason", " ").returncode == 2
    assert t5repro(copy, "withdraw", "nowhere.example", "--reason", "x").returncode == 2
