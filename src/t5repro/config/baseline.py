"""Settings of the paper's baseline that are no defaults: its crawl and its task archives.

The generated `configs/base.yaml` is the schema's defaults with these changes. A hash is empty if
none is published; the `data` stage records the hash of the file that it read.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from t5repro.config.sections.tasks import TasksSettings
from t5repro.config.task_layouts import TASK_FILES
from t5repro.errors import SettingsError, nearest

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
    """Return the origins of the original files of tasks, as entries of `data.sources`.

    Args:
        names: tasks of the paper.

    Raises:
        SettingsError: a task is unknown, or the list of sources cannot be read.
    """
    paths: set[str] = set()
    for name in names:
        if name not in TASK_FILES:
            raise SettingsError(
                f"unknown task {name!r}; tasks are {sorted(TASK_FILES)}{nearest(name, TASK_FILES)}"
            )
        paths |= {f"tasks/{file}" for files in TASK_FILES[name].values() for file in files}
    try:
        sources = yaml.safe_load(TASK_SOURCES.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{TASK_SOURCES} cannot be read ({error.strerror})") from error
    return [source for source in sources if paths & set(source["files"])]


def baseline_changes() -> dict[str, Any]:
    """Return the settings of `configs/base.yaml` that differ from the schema's defaults."""
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
