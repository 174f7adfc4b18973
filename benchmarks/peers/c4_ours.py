"""C4 of this project in one process: `read`, `clean` (in memory), `chain` (files to files)."""

import argparse
import json
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from t5repro.c4.clean import clean_shard
from t5repro.c4.deduplicate import deduplicate
from t5repro.c4.text.fast_rules import clean_bodies
from t5repro.c4.text.language import detect_languages
from t5repro.c4.text.rules import CleanRules
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet.pages import read_pages
from t5repro.c4.wet.reader import MAX_GROUP_PAGES
from t5repro.c4.write import write_corpus
from t5repro.config.load import load_settings
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.jobs.corpus import CleanJob, CorpusJob, DedupJob

PAGE_COUNTS = ("train_pages", "validation_pages")


def read(arguments: argparse.Namespace) -> dict[str, float]:
    """Decompress, split into records, extract URL, date and text."""
    begin = time.perf_counter()
    pages = sum(1 for _ in read_pages(arguments.wet))
    return {"seconds": time.perf_counter() - begin, "pages": pages}


def clean(arguments: argparse.Namespace) -> dict[str, float]:
    """Apply the rules for lines and pages."""
    settings = stages(arguments.rules)["c4_clean"].c4.clean
    usable = [page for page in read_pages(arguments.wet) if page.fault is None]
    pages = [page for page in usable if not page.is_longer_than(settings.max_page_chars)]
    rules = CleanRules(settings, SentenceSplitter(arguments.punkt))
    begin = time.perf_counter()
    groups = [pages[i : i + MAX_GROUP_PAGES] for i in range(0, len(pages), MAX_GROUP_PAGES)]
    cleaned = [page for group in groups for page in clean_bodies(group, rules)]
    kept_pages = sum(page.reason is None for page in cleaned)
    return {"seconds": time.perf_counter() - begin, "pages": len(pages), "kept": kept_pages}


def chain(arguments: argparse.Namespace) -> dict[str, float]:
    """Run the three rules from a WET file to Parquet files, counters, samples and manifests."""
    # Settings and tables are loaded before the clock starts, as for the peers; both are cached.
    stages(arguments.rules)
    detect_languages(["One sentence is enough for that."])
    SentenceSplitter(arguments.punkt)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin = time.perf_counter()
        cleaned = run_clean(arguments, folder, [arguments.wet])
        run_dedup(arguments, folder, [cleaned])
        manifest = run_corpus(arguments, folder, [cleaned])
        seconds = time.perf_counter() - begin
        counters = json.loads(manifest.read_text())["counters"]
        cleaning = json.loads(cleaned.with_suffix(".json").read_text())["counters"]
    english = counters["languages"]["en"]
    kept_pages = sum(count for name, count in english.items() if name in PAGE_COUNTS)
    return {"seconds": seconds, "pages": cleaning["read"]["read"], "kept": kept_pages}


def run_clean(arguments: argparse.Namespace, folder: Path, wet: list[Path]) -> Path:
    """Run `c4_clean`; return the cleaned file, which has the name of the first WET file."""
    output = folder / f"{wet[0].name.partition('.')[0]}.parquet"
    settings, lists = stages(arguments.rules)["c4_clean"], lists_of(arguments)
    clean_shard(CleanJob(settings, [output], output.with_suffix(".json"), wet=wet, **lists))
    return output


def run_dedup(arguments: argparse.Namespace, folder: Path, cleaned: list[Path]) -> None:
    """Run `c4_dedup`."""
    output, settings = folder / "decisions", stages(arguments.rules)["c4_dedup"]
    deduplicate(DedupJob(settings, cleaned, output, output / "manifest.json"))


def run_corpus(arguments: argparse.Namespace, folder: Path, cleaned: list[Path]) -> Path:
    """Run `c4`; return the manifest of the corpus."""
    manifest, decisions = folder / "c4" / "manifest.json", folder / "decisions"
    settings, lists = stages(arguments.rules)["c4"], lists_of(arguments)
    write_corpus(CorpusJob(settings, cleaned, decisions, manifest.parent, manifest, **lists))
    return manifest


def lists_of(arguments: argparse.Namespace) -> dict[str, dict[str, Path]]:
    """Return the English Punkt parameters and list of bad words."""
    return {"punkt": {"en": arguments.punkt}, "bad_words": {"en": arguments.bad_words}}


@cache
def stages(rules: str) -> dict[str, Any]:
    """Return the settings of the three rules."""
    run = {
        "use": [f"cleaning/{rules}"],
        "c4": {
            "languages": ["en"],
            "crawl": ["wet"],
            "bad_word_lists": {"en": "list"},
            "validation_modulus": 1000,
        },
        "vocab": {"language_parts": {"en": 1}},
    }
    settings = load_settings(run)
    names = ("c4_clean", "c4_dedup", "c4")
    return {name: stage_model(name)(**stage_settings(settings, name)) for name in names}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["read", "clean", "chain"])
    parser.add_argument("wet", type=Path)
    parser.add_argument("punkt", type=Path, help="a folder of punkt_tab, such as english")
    parser.add_argument("bad_words", type=Path, help="the English list")
    parser.add_argument("--rules", default="tfds")
    options = parser.parse_args()
    steps = {"read": read, "clean": clean, "chain": chain}
    print(json.dumps(steps[options.step](options)))
