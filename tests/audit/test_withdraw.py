"""A withdrawal writes a tombstone, removes the text and deletes the dependent artifacts."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from clones import commit
from made_crawl import CORPUS, IDS, OLD, ONE, RUN_FILE
from made_graphs import RESULT, WEIGHTS, keep_folder, lock, manifest, write
from made_wat import envelope, response, wat_record, write_wat
from whole_records import whole_record

from t5repro.audit.withdraw import own_text_of, withdraw
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.pages import read_pages as read_wet
from t5repro.c4.wet.wat import read_wat
from t5repro.config.withdrawn import FILES, PAGES, read_files, read_pages
from t5repro.errors import LineageError
from t5repro.files import sha256_of
from t5repro.lineage.dvc_cache import _configuration
from t5repro.lineage.dvc_lock import Lock
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder
from t5repro.lineage.verify import verify_tree
from t5repro.lineage.verify_withdrawn import check_made_before

SHARD = "data/crawl/1.warc.wet.gz"


def files_of(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): sha256_of(path)
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def test_a_withdrawn_url_loses_its_text_and_its_dependents(crawl: Path) -> None:
    sha256_before = sha256_of(crawl / SHARD)
    write(crawl, RUN_FILE, f"files: {{{SHARD}: {sha256_before}}}\n")
    commit(crawl, "before")
    answer = withdraw(crawl, OLD, reason=" ticket 7 ")
    assert read_pages(crawl / PAGES).urls == {OLD: "ticket 7"}
    text = gzip.decompress((crawl / SHARD).read_bytes()).decode()
    assert "Secret" not in text
    assert text.count(OLD) == 2  # headers stay, so that records keep their numbers
    assert answer.redacted == {SHARD: 2}
    assert answer.rewritten == [RUN_FILE]
    assert sha256_of(crawl / SHARD) in (crawl / RUN_FILE).read_text()
    assert not (crawl / CORPUS).exists()
    assert not (crawl / IDS).exists()
    assert (crawl / RESULT / "c4_clean/a/0.parquet").exists()
    assert answer.by_hand == [f"git's history keeps {SHARD}; git filter-repo removes it"]


def test_the_record_of_a_page_in_its_wat_file_is_redacted_as_well(crawl: Path) -> None:
    name = SHARD.replace(".wet", ".wat")
    pages = {url: envelope(url, response(links=[{"text": f"To {url}"}])) for url in (OLD, ONE)}
    wat = write_wat(crawl / name, *(wat_record(url, values) for url, values in pages.items()))
    cleaned = f"{RESULT}/c4_clean/a/1.manifest.json"
    shard = cleaned.replace("manifest.json", "parquet")
    manifest(crawl, cleaned, rule="c4_clean", inputs=[SHARD, name], outputs=[shard])
    raw = ["data/crawl/0.warc.wet.gz", SHARD, name]
    data = {"data": {"folder": "data", "source": ""}}
    manifest(crawl, f"{RESULT}/data/manifest.json", rule="data", outputs=raw, settings=data)
    hashes = "".join(f"  {path}: {sha256_of(crawl / path)}\n" for path in (SHARD, name))
    write(crawl, RUN_FILE, f"files:\n{hashes}")
    commit(crawl, "before")
    answer = withdraw(crawl, OLD, reason="x")
    assert answer.redacted == {SHARD: 2, name: 1}
    assert answer.rewritten == [RUN_FILE]  # once, though two of its hashes were replaced
    text = gzip.decompress(wat.read_bytes()).decode()
    assert (f"To {OLD}" in text, f"To {ONE}" in text) == (False, True)
    # What is left of the record says nothing: its page would be unknown, and no fault.
    faults: list[Any] = []
    signals_of = read_wat(wat, Limits(), faults.append)
    pages_left = read_wet(crawl / SHARD, signals_of=signals_of)
    assert ({page.signals for page in pages_left}, faults) == ({("unknown",)}, [])


def test_stages_behind_links_to_another_disk_are_withdrawn_as_well(crawl: Path) -> None:
    planned = withdraw(crawl, OLD, reason="x", dry_run=True)
    for name in ("c4", "tokens/a"):
        folder, elsewhere = crawl / RESULT / name, crawl.parent / "elsewhere" / name
        shutil.move(folder, elsewhere)
        folder.symlink_to(elsewhere)
    answer = withdraw(crawl, OLD, reason="x")
    assert answer.touched["jobs"] == planned.touched["jobs"]
    assert answer.pruned == planned.pruned
    assert not [path for path in (crawl.parent / "elsewhere").rglob("*") if path.is_file()]


def test_a_withdrawn_domain_is_named_as_a_domain(crawl: Path) -> None:
    withdraw(crawl, "a.example", reason="x")
    assert read_pages(crawl / PAGES).domains == {"a.example": "x"}
    assert (
        "Secret" not in gzip.decompress((crawl / "data/crawl/0.warc.wet.gz").read_bytes()).decode()
    )


def test_a_withdrawn_file_is_deleted_with_its_bundled_copy(crawl: Path) -> None:
    copy = write(crawl, "bundled/crawl/1.warc.wet.gz", "copy")
    manifest(
        crawl,
        f"{RESULT}/data/manifest.json",
        rule="data",
        outputs=["data/crawl/0.warc.wet.gz", SHARD],
        settings={"data": {"folder": "data", "source": "bundled"}},
    )
    answer = withdraw(crawl, SHARD, reason="x")
    assert answer.deleted == [SHARD, "bundled/crawl/1.warc.wet.gz"]
    assert not copy.exists()
    assert read_files(crawl / FILES).files == {"crawl/1.warc.wet.gz": "x"}


def test_a_source_outside_the_checkout_is_only_named(crawl: Path, tmp_path: Path) -> None:
    outside = write(tmp_path, "outside/crawl/1.warc.wet.gz", "copy")
    source = str(tmp_path / "outside")
    manifest(
        crawl,
        f"{RESULT}/data/manifest.json",
        rule="data",
        outputs=[SHARD],
        settings={"data": {"folder": "data", "source": source}},
    )
    (crawl / "work/downloads").mkdir(parents=True)
    answer = withdraw(crawl, SHARD, reason="x")
    assert outside.exists()
    assert answer.by_hand == [
        f"{source} has a copy of {SHARD}",
        "work/downloads may contain the archive it came in",
    ]


def test_a_dry_run_changes_no_file_and_names_the_scores(run: Path) -> None:
    import subprocess

    subprocess.run(["git", "init", "--quiet", run], check=True)
    before = files_of(run)
    answer = withdraw(run, "tasks/one.tsv", reason="x", dry_run=True)
    assert files_of(run) == before
    assert answer.scores == [f"{RESULT}/evaluate_score/a/scores.json"]
    assert WEIGHTS in [item["path"] for item in answer.touched["outputs"]["weights"]]
    assert answer.pruned == [
        item["path"] for items in answer.touched["outputs"].values() for item in items
    ]
    text = answer.to_text()
    assert text.startswith("dry run, nothing is changed:\n")
    assert f"pruned: {len(answer.pruned)} artifacts" in text
    assert "  score: results/r/evaluate_score/a/scores.json" in text
    assert "cache: 0 objects still contain it (--delete-cache deletes them)" in text
    values = json.loads(json.dumps(answer.to_json()))
    assert values["raw"]["kind"] == "file"
    assert values["tombstone"] == "withdrawn/files.yaml"


def test_a_withdrawal_needs_a_reason(crawl: Path) -> None:
    with pytest.raises(LineageError, match="--reason is empty; say why"):
        withdraw(crawl, ONE, reason="  ")


def test_a_row_that_two_jobs_read_differently_is_withdrawn_for_both(run: Path) -> None:
    name = "data/own.jsonl"
    write(run, name, json.dumps({"url": "u", "key": "k", "text": "Secret", "title": "T"}) + "\n")
    data = {"data": {"folder": "data", "source": ""}}
    manifest(run, f"{RESULT}/data/manifest.json", rule="data", outputs=[name], settings=data)
    for node, corpus in (("a", {}), ("b", {"id": "key", "text": "title"})):
        path = f"{RESULT}/corpus/{node}/manifest.json"
        output = f"{RESULT}/corpus/{node}/pages.parquet"
        write(run, output, "rows")
        settings = {"corpus": {"files": ["own.jsonl"], **corpus}}
        manifest(run, path, rule="corpus", inputs=[name], outputs=[output], settings=settings)
    assert [rows.text for rows in own_text_of(load_graph(Folder(run)), name)] == ["text", "title"]


def test_after_a_withdrawal_verify_never_says_dvc_checkout_and_names_what_is_restored(
    crawl: Path,
) -> None:
    lock(crawl, folders=(f"{RESULT}/c4/a", f"{RESULT}/tokens/a"), code="code")
    commit(crawl, "before")
    tokens = {path: path.read_bytes() for path in (crawl / RESULT / "tokens/a").iterdir()}
    answer = withdraw(crawl, OLD, reason="x")
    assert answer.stages == ["c4-a", "tokens-a"]
    assert not Folder(crawl).lock().stages
    lines = verify_tree(crawl).to_text()
    assert f"{SHARD}: sha256" in lines
    assert "dvc checkout" not in lines
    assert "which is gone" not in lines
    for path, data in tokens.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    findings = {item.path: item.message for item in verify_tree(crawl).findings}
    message = findings[f"{RESULT}/tokens/a/manifest.json"]
    assert f"read {CORPUS}, which is gone; delete it and run snakemake" in message


def test_a_redacted_file_is_not_to_be_restored_from_a_data_dvc_of_before(crawl: Path) -> None:
    raw = f"outs:\n- path: data\n  hash: md5\n  md5: {keep_folder(crawl, 'data')}\n"
    write(crawl, "data.dvc", raw)
    shard = (crawl / SHARD).read_bytes()
    (crawl / SHARD).write_bytes(b"damaged")
    assert "dvc checkout" in verify_tree(crawl).to_text()
    (crawl / SHARD).write_bytes(shard)
    (crawl / "data.dvc").unlink()  # a withdrawal would track what is left
    withdraw(crawl, OLD, reason="x")
    write(crawl, "data.dvc", raw)  # as after a merge, or after a `dvc add` that failed
    lines = verify_tree(crawl).to_text()
    assert f"{SHARD}: " in lines
    assert "repeat the withdrawal, which tracks what is left" in lines
    assert "dvc checkout" not in lines
    (crawl / SHARD).unlink()
    assert "dvc checkout" not in verify_tree(crawl).to_text()


def test_a_job_that_read_another_list_of_withdrawn_pages_is_named(crawl: Path) -> None:
    job = "r/c4_clean/a/0"
    read = {"path": "withdrawn/pages.yaml", "sha256": "0" * 64, "bytes": 1}
    write(
        crawl,
        f"records/{job}.json",
        json.dumps(whole_record(job, end={"inputs": [read], "outputs": []})),
    )
    graph = load_graph(Folder(crawl))
    assert list(check_made_before(crawl, graph, Lock())) == []
    write(crawl, PAGES.as_posix(), "urls:\n  http://a.example/one: x\n")
    (finding,) = check_made_before(crawl, load_graph(Folder(crawl)), Lock())
    assert finding.path == f"{RESULT}/c4_clean/a/0.manifest.json"
    assert "read another withdrawn/pages.yaml than is here" in finding.message


def test_remote_objects_are_counted_only_with_a_remote_and_the_empty_file_never(
    crawl: Path,
) -> None:
    write(crawl, f"{RESULT}/tokens/a/empty.ids", "")
    tokens = f"{RESULT}/tokens/a/manifest.json"
    manifest(
        crawl, tokens, rule="tokens", inputs=[CORPUS], outputs=[IDS, f"{RESULT}/tokens/a/empty.ids"]
    )
    lock(crawl, folders=(f"{RESULT}/tokens/a",))
    commit(crawl, "before")
    assert withdraw(crawl, OLD, reason="x", dry_run=True).remote == []
    write(crawl, ".dvc/config", "['remote \"store\"']\n    url = /store\n")
    _configuration.cache_clear()
    answer = withdraw(crawl, OLD, reason="x", dry_run=True)
    assert len(answer.remote) == len(answer.cache) == 2  # ids and manifest
    assert "remote: 2 objects to delete there" in answer.to_text()
    assert not [path for path in answer.cache if "d4/1d8cd98f00b204" in path]
