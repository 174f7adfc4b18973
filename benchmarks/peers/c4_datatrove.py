"""datatrove's C4 filter and sentence deduplication: `clean` (pages in memory), `dedup` (files).

It has the settings of the recipe: 3 sentences, 5 words a line, spans of 3 sentences. Sentences are
split by datatrove's splitter for English, spaCy's sentenciser.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import SentenceDedupFilter, SentenceDedupSignature, SentenceFindDedups
from datatrove.pipeline.dedup.sentence_dedup import SentDedupConfig
from datatrove.pipeline.filters import C4QualityFilter
from datatrove.pipeline.readers import JsonlReader, WarcReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.logging import logger


def quality() -> Any:
    """Return the filter with the rules of the paper."""
    return C4QualityFilter(split_paragraph=True, min_num_sentences=3, min_words_per_line=5)


def documents(path: Path) -> list[Document]:
    """Return the pages of a WET file."""
    reader = WarcReader(str(path.parent), glob_pattern=path.name, compression="gzip")
    return [page for page in reader.run() if len(page.text) < 190_000]


def clean(path: Path) -> dict[str, float]:
    """Apply the C4 quality filter."""
    pages, rules = documents(path), quality()
    rules.filter(Document(text="One sentence. Two more here. And three.", id="warm"))
    begin = time.perf_counter()
    kept_pages = sum(rules.filter(page) is True for page in pages)
    return {"seconds": time.perf_counter() - begin, "pages": len(pages), "kept": kept_pages}


def chain(path: Path) -> dict[str, float]:
    """Read, filter, deduplicate spans of three sentences, write; one task, no language."""
    config = SentDedupConfig(n_sentences=3, min_doc_words=0, min_num_sentences=3)
    with tempfile.TemporaryDirectory() as folder:
        names = {name: f"{folder}/{name}" for name in ("kept", "signatures", "repeats", "final")}
        steps = [
            [
                WarcReader(str(path.parent), glob_pattern=path.name, compression="gzip"),
                quality(),
                JsonlWriter(names["kept"], compression=None),
                SentenceDedupSignature(names["signatures"], config=config),
            ],
            [SentenceFindDedups(names["signatures"], names["repeats"], config=config)],
            [
                JsonlReader(names["kept"]),
                SentenceDedupFilter(names["repeats"], config=config),
                JsonlWriter(names["final"], compression=None),
            ],
        ]
        begin = time.perf_counter()
        for number, step in enumerate(steps):
            LocalPipelineExecutor(step, logging_dir=f"{folder}/logs{number}").run()
        seconds = time.perf_counter() - begin
        kept_pages = sum(
            len(file.read_text().splitlines()) for file in Path(names["final"]).iterdir()
        )
    return {"seconds": seconds, "kept": kept_pages, "pages": len(documents(path))}


if __name__ == "__main__":
    logger.remove()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["clean", "chain"])
    parser.add_argument("wet", type=Path)
    parser.add_argument("unused", nargs="*")
    arguments = parser.parse_args()
    print(json.dumps({"clean": clean, "chain": chain}[arguments.step](arguments.wet)))
