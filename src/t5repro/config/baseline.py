"""What the paper's baseline needs beside the schema's values: its crawl and its task archives.

The generated `configs/base.yaml` is the schema's values with these on top. Hashes are empty
where no published one exists; the `data` stage records what it read.
"""

from typing import Any

COMMON_CRAWL = "https://data.commoncrawl.org/"
CRAWL = "CC-MAIN-2019-18"
BAD_WORDS = (
    "https://raw.githubusercontent.com/LDNOOBW/"
    "List-of-Dirty-Naughty-Obscene-and-Otherwise-Bad-Words"
)
GLUE = "https://dl.fbaipublicfiles.com/glue/data"
SUPER_GLUE = "https://dl.fbaipublicfiles.com/glue/superglue/data/v2"


def _source(origin: str, licence: str, *files: str) -> dict[str, Any]:
    return {"origin": origin, "licence": licence, "files": dict.fromkeys(files, "")}


def _glue_source(archive: str, folder: str) -> dict[str, Any]:
    files = [f"tasks/glue/{folder}/{split}.tsv" for split in ("train", "dev", "test")]
    return _source(f"{GLUE}/{archive}.zip", "see gluebenchmark.com", *files)


def _super_glue_source(folder: str) -> dict[str, Any]:
    files = [f"tasks/superglue/{folder}/{split}.jsonl" for split in ("train", "val", "test")]
    return _source(f"{SUPER_GLUE}/{folder}.zip", "see super.gluebenchmark.com", *files)


def _placed_by_hand(origin: str, licence: str, *files: str) -> dict[str, Any]:
    """Return a source whose archive must be unpacked by hand into the layout named."""
    return _source(f"by hand: {origin}", licence, *files)


def baseline_changes() -> dict[str, Any]:
    """Return what `configs/base.yaml` states beyond the schema's values."""
    return {
        "data": {
            "folder": "data_base",  # apart from the demo's, which data.dvc freezes
            "download": True,
            "sources": [
                _source(
                    f"{COMMON_CRAWL}crawl-data/{CRAWL}/wet.paths.gz",
                    "Common Crawl terms of use",
                    f"crawl/{CRAWL}/wet.paths.gz",
                ),
                _source(f"{BAD_WORDS}/25e679f/en", "CC BY 4.0", "lists/badwords.en.txt"),
                _source(f"{BAD_WORDS}/5faf2ba/de", "CC BY 4.0", "lists/badwords.de.txt"),
                _source(f"{BAD_WORDS}/5faf2ba/fr", "CC BY 4.0", "lists/badwords.fr.txt"),
                _glue_source("CoLA", "CoLA"),
                _glue_source("SST-2", "SST-2"),
                _glue_source("STS-B", "STS-B"),
                _glue_source("RTE", "RTE"),
                _placed_by_hand(
                    "https://www.microsoft.com/en-us/download/details.aspx?id=52398",
                    "Microsoft Research data licence",
                    "tasks/glue/MRPC/msr_paraphrase_train.txt",
                    "tasks/glue/MRPC/msr_paraphrase_test.txt",
                ),
                _super_glue_source("BoolQ"),
                _super_glue_source("COPA"),
                _source(
                    "https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v1.1.json",
                    "CC BY-SA 4.0",
                    "tasks/squad/train-v1.1.json",
                ),
                _source(
                    "https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v1.1.json",
                    "CC BY-SA 4.0",
                    "tasks/squad/dev-v1.1.json",
                ),
                _placed_by_hand(
                    "https://github.com/abisee/cnn-dailymail",
                    "see its owners",
                    "tasks/cnn_dailymail/train.csv",
                    "tasks/cnn_dailymail/validation.csv",
                    "tasks/cnn_dailymail/test.csv",
                ),
                *(
                    _placed_by_hand(
                        "https://www.statmt.org/wmt14/translation-task.html",
                        "see statmt.org",
                        *(
                            f"tasks/wmt/en-{target}/{split}.{language}"
                            for split in ("train", "validation", "test")
                            for language in ("en", target)
                        ),
                    )
                    for target in ("de", "fr", "ro")
                ),
            ],
        },
        "devices": {"kind": "tpu", "precision": "bfloat16", "steps_per_execution": 100},
        "c4": {
            "crawl": [],
            "crawl_paths": f"crawl/{CRAWL}/wet.paths.gz",
            "crawl_prefix": COMMON_CRAWL,
            "clean_shards": 1024,
            "output_shards": 1024,
            "bad_word_lists": {
                "en": "lists/badwords.en.txt",
                "de": "lists/badwords.de.txt",
                "fr": "lists/badwords.fr.txt",
            },
        },
    }
