"""Own text through Snakemake: `docs/own_text.md` walked, and the ids of the text through C4."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from clones import ROOT, clone, commit, run_in, shrink, small_run, snakemake
from documented_steps import steps_of

from t5repro.config.schema import Settings
from t5repro.files import read_json, sha256_of

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
IDS = ("train.ids", "train.offsets", "validation.ids", "validation.offsets")
RUN_FILE = "configs/own.yaml"
REFUSED = "t5repro stage corpus "  # the page shows what it says of a broken row


def test_the_walk_does_what_the_page_says(fresh: Path) -> None:
    steps = steps_of((ROOT / "docs/own_text.md").read_text("utf-8"))
    (run_file,) = (step for step in steps if step.path)
    assert len(run_file.text.splitlines()) == 5
    shown = []
    for step in steps:
        if step.path:
            (fresh / step.path).write_text(step.text, "utf-8")
            continue
        ran = run_in(fresh, "bash", "-c", step.command)
        assert (ran.returncode == 0) != step.command.startswith(REFUSED), ran.stdout
        if step.text:  # the page shows what it prints
            assert step.text in ran.stdout, step.command
            shown.append(step.command.split()[0])
    assert shown == ["ls", "t5repro", "t5repro"]  # files of a training, a refusal, a trace
    assert '{"passage": ""}' in (fresh / "my_text/passages.jsonl").read_text().splitlines()
    read = read_json(fresh / "results/my_text/corpus/baseline/manifest.json")["counters"]["read"]
    assert (read["read"], read["withdrawn"]) == (1300, 1)
    gone = run_in(fresh, "t5repro", "trace", "row://passages.jsonl#3")
    assert gone.returncode != 0
    assert "document" in run_in(fresh, "t5repro", "trace", "row://passages.jsonl#4").stdout


def test_own_text_has_the_ids_of_the_same_text_through_c4(tmp_path: Path) -> None:
    folder = small_run(tmp_path / "clone", "stage_tokens")
    corpus = folder / "results/demo/c4/baseline"
    rows = pa.concat_tables(map(pq.read_table, sorted(corpus.glob("*.parquet"))))
    assert len(rows) > 1500
    (folder / "own").mkdir()
    for name, first in (("a", 1), ("b", 0)):  # in another order than the corpus
        pq.write_table(rows.take(list(range(first, len(rows), 2))), folder / f"own/{name}.parquet")
    values = yaml.safe_load((folder / "configs/demo.yaml").read_text(encoding="utf-8"))
    own = {
        "run": {"name": "own"},
        "data": {"folder": "own"},
        "corpus": {"files": ["*.parquet"], "language_column": "language"},
        "c4": {"validation_modulus": values["c4"]["validation_modulus"]},
        # As for the crawl; of own text every language has an equal part.
        "tokens": {"languages": ["en"]},
        "vocab": {"language_parts": Settings().vocab.language_parts, **values["vocab"]},
    }
    (folder / RUN_FILE).write_text(yaml.safe_dump(own), encoding="utf-8")
    words = ("--configfile", RUN_FILE, "--", "stage_tokens")
    ran = snakemake(folder, *words, cores=1)
    assert ran.returncode == 0, ran.stdout[-3000:]
    expected = [sha256_of(folder / f"results/demo/tokens/baseline/{name}") for name in IDS]
    assert [sha256_of(folder / f"results/own/tokens/baseline/{name}") for name in IDS] == expected
    assert "Nothing to be done" in snakemake(folder, *words).stdout

    own_rows = pq.read_table(folder / "own/b.parquet").to_pylist()
    row, url = next((i, row["url"]) for i, row in enumerate(own_rows) if row["language"] == "en")
    traced = run_in(folder, "t5repro", "trace", url).stdout
    assert f"from record {row} of own/b.parquet" in traced
    assert "of results/own/tokens/baseline/train.ids" in traced

    generated = run_in(folder, "t5repro", "dvc", "generate", "--run-file", RUN_FILE)
    assert generated.returncode == 0, generated.stdout
    commit(folder, "own")
    sealed = run_in(folder, "t5repro", "seal")
    assert sealed.returncode == 0, sealed.stdout
    commit(folder, "sealed")
    verified = run_in(folder, "t5repro", "verify").stdout
    assert not [line for line in verified.splitlines() if "results/own" in line], verified

    gone = run_in(folder, "t5repro", "withdraw", "own/b.parquet", "--reason", "x", "--json")
    assert gone.returncode == 0, gone.stdout
    assert not (folder / "own/b.parquet").exists()
    ran = snakemake(folder, *words)
    assert ran.returncode == 0, ran.stdout[-3000:]
    read = read_json(folder / "results/own/corpus/baseline/manifest.json")["counters"]["read"]
    assert read["read"] == len(rows) - len(own_rows)


def test_an_experiment_on_own_text_uses_the_vocabulary_of_another_on_the_crawl(
    tmp_path: Path,
) -> None:
    folder = clone(tmp_path / "clone")
    shrink(folder)
    (folder / "raw/own").mkdir(parents=True)
    rows = [
        {"url": f"https://own.example/{n}", "text": f"Boats of number {n} sail past the pier."}
        for n in range(400)
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "raw/own/text.jsonl").write_text(text, "utf-8")
    values = yaml.safe_load((folder / "configs/demo.yaml").read_text(encoding="utf-8"))
    values["run"]["name"] = "both"
    values["data"]["folder"] = "raw"
    corpus = {"files": ["own/text.jsonl"], "language": "en"}
    change = {"corpus": corpus, "vocab.from_experiment": "baseline"}
    values["experiments"] = [{"name": "baseline"}, {"name": "own", "change": change}]
    (folder / RUN_FILE).write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    generated = run_in(folder, "t5repro", "dvc", "generate", "--run-file", RUN_FILE)
    assert generated.returncode == 0, generated.stdout
    commit(folder, "own text")
    words = ("--configfile", RUN_FILE, "--", "stage_tokens")
    ran = snakemake(folder, *words)
    assert ran.returncode == 0, ran.stdout[-3000:]

    results = folder / "results/both"
    nodes = {path.name: sorted(node.name for node in path.iterdir()) for path in results.iterdir()}
    assert nodes["vocab_sample"] == nodes["vocab"] == nodes["c4_clean"] == ["baseline"]
    assert nodes["corpus"] == ["own"]
    assert nodes["c4"] == nodes["tokens"] == ["baseline", "own"]
    inputs = read_json(results / "tokens/own/manifest.json")["inputs"]
    folders = {Path(entry["path"]).parent.as_posix() for entry in inputs}
    assert folders == {"results/both/c4/own", "results/both/vocab/baseline"}
    assert "Nothing to be done" in snakemake(folder, *words).stdout

    # What the ids come from: the text, and the crawl from which the vocabulary was made.
    traced = run_in(folder, "t5repro", "trace", "results/both/tokens/own/train.ids").stdout
    assert "own/text.jsonl" in traced
    assert "crawl/MINI-2019-18-00000.warc.wet.gz" in traced
    assert (
        "of results/both/tokens/own/train.ids"
        in run_in(folder, "t5repro", "trace", rows[3]["url"]).stdout
    )
    for source, nodes_of_ids in (
        ("crawl/MINI-2019-18-00000.warc.wet.gz", {"baseline", "own"}),
        ("own/text.jsonl", {"own"}),
    ):
        reached = run_in(folder, "t5repro", "impact", f"raw/{source}").stdout
        assert set(re.findall(r"results/both/tokens/(\w+)/train.ids", reached)) == nodes_of_ids
    stages = yaml.safe_load((folder / "dvc.yaml").read_text())["stages"]
    assert "results/both/vocab/baseline" in stages["tokens-own"]["deps"]
    assert "vocab-own" not in stages
    commit(folder, "sealed")
    verified = run_in(folder, "t5repro", "verify").stdout
    assert not [line for line in verified.splitlines() if "results/both" in line], verified
