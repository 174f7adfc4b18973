"""A made crawl of many pages with their texts in every place: raw, cleaned, corpus, cache, remote.

Each page has a word of its own, ``secret<number>x``, by which its text is found.
"""

import gzip
import io
import re
import subprocess
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
from clones import commit
from made_crawl import EARLY, wet_record, write_parquet
from made_graphs import RESULT, keep_folder, lock, manifest, write

from t5repro.lineage.dvc_cache import _configuration

SHARDS, PAGES_OF_SHARD = 8, 500
PAGES = SHARDS * PAGES_OF_SHARD
WORD = re.compile(rb"secret(\d+)x")
REMOTE = "remote"


def url_of(page: int) -> str:
    return f"http://www.h{page}.example/dir/page?n={page}"


def text_of(page: int) -> str:
    return f"The secret{page}x of the page. It has a second sentence. And it has a third."


def bulk_crawl(root: Path) -> Path:
    """Write the run into a new repository of git and DVC with a remote beside it."""
    root.mkdir()
    subprocess.run(["git", "init", "--quiet", root], check=True)
    (root / ".dvc").mkdir()
    write(root, ".dvc/config", f"['remote \"store\"']\n    url = {root.parent / REMOTE}\n")
    write(root, ".gitignore", "/data/\n/results/\n/.dvc/cache/\n/.dvc/tmp/\n/work/\n")
    raw, cleaned, corpus = [], [], []
    for shard in range(SHARDS):
        pages = range(shard * PAGES_OF_SHARD, (shard + 1) * PAGES_OF_SHARD)
        name = f"{shard}.warc.wet.gz"
        text = "".join(wet_record(url_of(page), EARLY, text_of(page)) for page in pages)
        path = root / "data/crawl" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        raw.append(f"data/crawl/{name}")
        rows = [
            {"file": name, "record": record, "url": url_of(page), "timestamp": EARLY}
            | {"reason": None, "text": text_of(page)}
            for record, page in enumerate(pages)
        ]
        cleaned.append(write_parquet(root, f"{RESULT}/c4_clean/a/{shard}.parquet", rows))
        manifest(
            root,
            f"{RESULT}/c4_clean/a/{shard}.manifest.json",
            rule="c4_clean",
            inputs=raw[-1:],
            outputs=cleaned[-1:],
        )
        rows = [{"url": row["url"], "timestamp": EARLY, "text": row["text"]} for row in rows]
        output = f"{RESULT}/c4/a/en-train-{shard:05d}-of-{SHARDS:05d}.parquet"
        corpus.append(write_parquet(root, output, rows))
    data = {"data": {"folder": "data", "source": ""}}
    manifest(root, f"{RESULT}/data/manifest.json", rule="data", outputs=raw, settings=data)
    manifest(root, f"{RESULT}/c4/a/manifest.json", rule="c4", inputs=cleaned, outputs=corpus)
    lock(root, folders=(f"{RESULT}/c4_clean/a", f"{RESULT}/c4/a"), code="code")
    md5 = keep_folder(root, "data")
    write(root, "data.dvc", f"outs:\n- path: data\n  hash: md5\n  md5: {md5}\n")
    store = root.parent / REMOTE / "files/md5"
    for path in (root / ".dvc/cache/files/md5").rglob("*"):
        if path.is_file():
            copy = store / path.parent.name / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    _configuration.cache_clear()
    commit(root, "before")
    return root


def requests(count: int) -> tuple[str, set[int]]:
    """Return a list of so many requests of all kinds, and the pages that it names."""
    lines = ["kind,value,request,reason,date"]
    for page in range(0, 2 * count, 2):
        host = f"www.h{page}.example"
        form = f"{host}/dir/page?n={page}"
        kind, value = {
            0: ("url", f"https://WWW.H{page}.example:443/./dir/p%61ge?n={page}#top"),
            1: ("domain", f"h{page}.example"),
            2: ("host", host),
            3: ("prefix", f"http://{host}/di"),
            4: ("sha256", sha256(form.encode()).hexdigest()),
        }[page // 2 % 5]
        lines.append(f"{kind},{value},ticket {page},asked by the owner,2026-11-02")
    return "\n".join(lines) + "\n", set(range(0, 2 * count, 2))


def found_pages(*folders: Path) -> dict[int, set[str]]:
    """Return page -> files that have its text: whatever their name, compressed or not."""
    found: dict[int, set[str]] = {}
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        if ".git" in path.parts:
            continue
        for word in WORD.findall(_decoded(path.read_bytes())):
            found.setdefault(int(word), set()).add(path.as_posix())
    return found


def _decoded(data: bytes) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"PAR1"):  # its compression hides a text
        return str(pq.read_table(io.BytesIO(data)).to_pylist()).encode()
    return data
