"""This project's C4 in one process: `read`, `clean` (pages in memory), `chain` (files to files)."""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from t5repro.c4 import build
from t5repro.c4.text.language import detect_languages
from t5repro.c4.text.rules import CleanRules, clean_body
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet.pages import read_pages
from t5repro.config.load import load_settings
from t5repro.config.stage_settings import stage_model, stage_settings

KEPT = ("train_pages", "validation_pages")


def read(arguments: argparse.Namespace) -> dict[str, float]:
    """Decompress, split into records, take address, date and text."""
    begin = time.perf_counter()
    pages = sum(1 for _ in read_pages(arguments.wet))
    return {"seconds": time.perf_counter() - begin, "pages": pages}


def clean(arguments: argparse.Namespace) -> dict[str, float]:
    """Apply the rules for lines and pages."""
    settings = stages(arguments)["c4_clean"].c4.clean
    found = [page for page in read_pages(arguments.wet) if page.fault is None]
    pages = [page for page in found if not page.is_longer_than(settings.max_page_chars)]
    rules = CleanRules(settings, SentenceSplitter(arguments.punkt))
    begin = time.perf_counter()
    cleaned = [clean_body(page.body, rules, page.other_ends) for page in pages]
    kept = sum(page.reason is None for page in cleaned)
    return {"seconds": time.perf_counter() - begin, "pages": len(pages), "kept": kept}


def chain(arguments: argparse.Namespace) -> dict[str, float]:
    """From a WET file to Parquet files, with counters, samples and manifests."""
    chosen = stages(arguments)
    # Tables are loaded before the clock starts, as for the peers; Punkt's are remembered.
    detect_languages(["One sentence is enough for that."])
    SentenceSplitter(arguments.punkt)
    lists = {"punkt": {"en": arguments.punkt}, "bad_words": {"en": arguments.bad_words}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cleaned, decisions = folder / "00000.parquet", folder / "decisions.parquet"
        begin = time.perf_counter()
        build.clean_shard(
            chosen["c4_clean"],
            wet=[arguments.wet],
            output=cleaned,
            manifest=folder / "clean.json",
            **lists,
        )
        build.deduplicate(
            chosen["c4_dedup"], cleaned=[cleaned], output=decisions, manifest=folder / "dedup.json"
        )
        manifest = folder / "c4" / "manifest.json"
        build.write_corpus(
            chosen["c4"],
            cleaned=[cleaned],
            decisions=decisions,
            folder=manifest.parent,
            manifest=manifest,
            **lists,
        )
        seconds = time.perf_counter() - begin
        counters = json.loads(manifest.read_text())["counters"]
        read_there = json.loads((folder / "clean.json").read_text())["counters"]["read"]["read"]
    kept = sum(count for name, count in counters["languages"]["en"].items() if name in KEPT)
    return {"seconds": seconds, "pages": read_there, "kept": kept}


def stages(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the three rules."""
    run = {
        "c4": {
            "recipe": arguments.recipe,
            "languages": ["en"],
            "crawl": ["wet"],
            "bad_word_lists": {"en": "list"},
            "validation_modulus": 1000,
        },
        "vocab": {"language_parts": {"en": 1}},
    }
    chosen = load_settings(run)
    names = ("c4_clean", "c4_dedup", "c4")
    return {name: stage_model(name).model_validate(stage_settings(chosen, name)) for name in names}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["read", "clean", "chain"])
    parser.add_argument("wet", type=Path)
    parser.add_argument("punkt", type=Path, help="a folder of punkt_tab, such as english")
    parser.add_argument("bad_words", type=Path, help="the English list")
    parser.add_argument("--recipe", default="tfds")
    given = parser.parse_args()
    print(json.dumps({"read": read, "clean": clean, "chain": chain}[given.step](given)))
