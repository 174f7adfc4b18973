"""TFDS's own C4 functions: `read`, `clean` (pages in memory), `chain` (Beam's DirectRunner).

The chain follows `tensorflow_datasets.text.c4.C4._get_pages_pcollection`, without the download.
NLTK's Punkt is given as the folder it would have downloaded.
"""

import argparse
import collections
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import nltk.tokenize.punkt as punkt
import tensorflow_datasets.text.c4_utils as c4_utils
from nltk.data import FileSystemPathPointer


def tokenizer(folder: str) -> Any:
    """Return NLTK's Punkt with the parameters of a folder."""
    punkt_tokenizer = punkt.PunktSentenceTokenizer()
    punkt_tokenizer._params = punkt.load_punkt_params(FileSystemPathPointer(folder))
    return punkt_tokenizer


def pages_of(path: Path) -> list[Any]:
    """Return the pages that TFDS cleans."""
    return [page for page in c4_utils.split_wet_file(str(path)) if c4_utils.is_valid_length(page)]


def read(arguments: argparse.Namespace) -> dict[str, float]:
    """Split a WET file."""
    begin = time.perf_counter()
    pages = sum(1 for _ in c4_utils.split_wet_file(str(arguments.wet)))
    return {"seconds": time.perf_counter() - begin, "pages": pages}


def clean(arguments: argparse.Namespace) -> dict[str, float]:
    """Apply clean_page."""
    c4_utils._SENTENCE_TOKENIZER = tokenizer(str(arguments.punkt))
    pages = pages_of(arguments.wet)
    function = c4_utils.get_clean_page_fn()
    begin = time.perf_counter()
    kept_pages = sum(1 for page in pages for _ in function(page))
    return {"seconds": time.perf_counter() - begin, "pages": len(pages), "kept": kept_pages}


def chain(arguments: argparse.Namespace) -> dict[str, float]:
    """Run the whole chain on one worker of the DirectRunner, to a text file."""
    import apache_beam as beam
    import langdetect

    langdetect.detect_langs("One sentence, so that profiles are loaded before the clock starts.")
    c4_utils._SENTENCE_TOKENIZER = tokenizer(str(arguments.punkt))
    words = collections.defaultdict(set)
    words["en"].update(line.strip() for line in arguments.bad_words.read_text().splitlines())
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        with beam.Pipeline(options=options(beam)) as pipeline:
            pages = (
                pipeline
                | "paths" >> beam.Create([str(arguments.wet)])
                | "split" >> beam.FlatMap(c4_utils.split_wet_file)
                | "length" >> beam.Filter(c4_utils.is_valid_length)
                | "key" >> beam.Map(lambda page: (page.normalized_url, page))
                | "newest" >> beam.CombinePerKey(c4_utils.select_newest_page)
                | "values" >> beam.Values()
                | "clean" >> beam.FlatMap(c4_utils.get_clean_page_fn())
            )
            pages = c4_utils.remove_duplicate_text(pages)
            pages = (
                pages
                | "english" >> beam.FlatMap(c4_utils.detect_english)
                | "words" >> beam.Filter(c4_utils.get_badwords_filter_fn(words))
            )
            rows = pages | "rows" >> beam.Map(lambda page: json.dumps(vars(page)))
            rows | "write" >> beam.io.WriteToText(os.path.join(folder, "pages"))
        seconds = time.perf_counter() - begin
        kept_pages = sum(len(path.read_text().splitlines()) for path in Path(folder).iterdir())
    read_there = sum(1 for _ in c4_utils.split_wet_file(str(arguments.wet)))
    return {"seconds": seconds, "pages": read_there, "kept": kept_pages}


def options(beam: Any) -> Any:
    """Return the options of one in-memory worker."""
    from apache_beam.options.pipeline_options import PipelineOptions

    return PipelineOptions(["--runner=DirectRunner", "--direct_num_workers=1"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["read", "clean", "chain"])
    parser.add_argument("wet", type=Path)
    parser.add_argument("punkt", type=Path)
    parser.add_argument("bad_words", type=Path)
    arguments = parser.parse_args()
    print(json.dumps({"read": read, "clean": clean, "chain": chain}[arguments.step](arguments)))
