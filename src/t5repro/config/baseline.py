"""What the paper's baseline needs beside the schema's values: its crawl and its task archives.

The generated `configs/base.yaml` is the schema's values with these on top. Hashes are empty
where no published one exists; the `data` stage records what it read.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from t5repro.config.sections.tasks import TasksSettings
from t5repro.config.task_layouts import TASK_FILES
from t5repro.errors import SettingsError

COMMON_CRAWL = "https://data.commoncrawl.org/"
CRAWL = "CC-MAIN-2019-18"
BAD_WORDS = (
    "https://raw.githubusercontent.com/LDNOOBW/"
    "List-of-Dirty-Naughty-Obscene-and-Otherwise-Bad-Words"
)
TASK_SOURCES = Path("configs/sources/tasks.yaml")


def _source(origin: str, licence: str, *files: str) -> dict[str, Any]:
    return {"origin": origin, "licence": licence, "files": dict.fromkeys(files, "")}


def task_sources(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return where the original files of tasks can be had, as entries of `data.sources`.

    Args:
        names: tasks of the paper.

    Raises:
        SettingsError: a task is unknown, or the list of sources cannot be read.
    """
    wanted: set[str] = set()
    for name in names:
        if name not in TASK_FILES:
            raise SettingsError(f"unknown task {name!r}; tasks are {sorted(TASK_FILES)}")
        wanted |= {f"tasks/{path}" for paths in TASK_FILES[name].values() for path in paths}
    try:
        known = yaml.safe_load(TASK_SOURCES.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{TASK_SOURCES} cannot be read ({error.strerror})") from error
    return [source for source in known if wanted & set(source["files"])]


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
                *task_sources(TasksSettings().names),
            ],
        },
        "devices": {
            "kind": "tpu",
            "precision": "bfloat16",
            "steps_per_execution": 100,
            "slice": "v5e:4x4",
        },
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
