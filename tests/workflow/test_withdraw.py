"""The text of a withdrawn shard, URL or domain is gone everywhere, and dependents are rebuilt."""

import gzip
import json
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from clones import artifact_hashes, commit, copy_clone, environment, snakemake

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
    folder = copy_clone(finished, tmp_path / "clone")
    commit(folder, "before")
    return folder


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield every tracked file, artifact and cached object with its text, unpacked and decoded."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    paths = [folder / name for name in tracked if name]
    for kind in ("data", "results", ".dvc/cache"):
        paths += [path for path in (folder / kind).rglob("*") if path.is_file()]
    for path in paths:
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


def lines_of(folder: Path, source: str) -> list[str]:
    """Return long lines of the pages of a source that no other page of the crawl contains."""
    withdrawn: set[str] = set()
    remaining: list[str] = []
    for path in sorted((folder / "data/crawl").iterdir()):
        for page in read_pages(path):
            if source in page.url or path.name in source:
                withdrawn.update(page.text.split("\n"))
            else:
                remaining.append(page.text)
    text = "\n".join(remaining)
    return sorted(line for line in withdrawn if len(line) > 60 and line not in text)[:20]


@pytest.mark.parametrize("source", [SHARD, URL, DOMAIN])
def test_the_text_of_a_withdrawn_source_is_gone(copy: Path, source: str) -> None:
    lines = lines_of(copy, source)
    assert lines
    before = "".join(text for _, text in texts(copy))
    assert any(line in before for line in lines)
    process = t5repro(copy, "withdraw", source, "--reason", "ticket 7", "--delete-cache", "--json")
    assert process.returncode == 0, process.stderr
    answer = json.loads(process.stdout)
    assert answer["scores"] == [
        f"results/demo/evaluate_score/{arm}/scores.json" for arm in ("baseline", "no_pretraining")
    ]
    assert not (copy / answer["scores"][0]).exists()
    chain = snakemake(copy, TOKENS)
    assert chain.returncode == 0, chain.stdout[-3000:]
    remaining = [(name, line) for name, text in texts(copy) for line in lines if line in text]
    assert remaining == []
    assert not [line for line in lines if line in decoded(copy)]
    if source != SHARD:
        manifest = json.loads((copy / "results/demo/c4/baseline/manifest.json").read_text())
        first = manifest["counters"]["rules"][0]
        assert first["rule"] == "withdrawn"
        assert first["dropped"]["withdrawn"] > 0


def test_scores_are_rebuilt_and_independent_artifacts_keep_their_bytes(copy: Path) -> None:
    independent = ("c4", "vocab", "tokens", "pretrain", "tasks/squad")
    before = {name: hashes_below(copy, name) for name in independent}
    process = t5repro(copy, "withdraw", "tasks/glue/RTE/train.tsv", "--reason", "x", "--json")
    assert process.returncode == 0, process.stderr
    pruned = json.loads(process.stdout)["pruned"]
    assert SCORES in pruned
    assert not [name for name in pruned if "/c4" in name or "/pretrain/" in name]
    chain = snakemake(copy, SCORES)
    assert chain.returncode == 0, chain.stdout[-3000:]
    scores = json.loads((copy / SCORES).read_text())
    assert "glue_rte" not in scores["tasks"]
    assert len(scores["tasks"]) == 11
    assert {name: hashes_below(copy, name) for name in independent} == before


def hashes_below(folder: Path, name: str) -> dict[str, str]:
    """Return the hashes of a stage's files but manifests, which name the raw files."""
    return {
        path: sha256
        for path, sha256 in artifact_hashes(folder).items()
        if path.startswith(f"results/demo/{name}/") and not path.endswith("manifest.json")
    }


def test_a_dry_run_changes_nothing(copy: Path) -> None:
    process = t5repro(copy, "withdraw", DOMAIN, "--reason", "x", "--dry-run")
    assert process.returncode == 0, process.stderr
    assert "score: results/demo/evaluate_score/baseline/scores.json" in process.stdout
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=copy, check=True, capture_output=True, text=True
    )
    assert changed.stdout == ""
    assert t5repro(copy, "withdraw", DOMAIN, "--reason", " ").returncode == 2
    assert t5repro(copy, "withdraw", "nowhere.example", "--reason", "x").returncode == 2
