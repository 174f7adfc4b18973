"""Settings of `configs/base.yaml` that differ from the schema's values: crawl, sources, devices."""

from typing import Any

from t5repro.config.sections.tasks import TasksSettings


def baseline_changes() -> dict[str, Any]:
    """Return the settings of `configs/base.yaml` that differ from the schema's values."""
    return {
        "data": {
            "folder": "data_base",  # not the demo's folder, which data.dvc tracks
            "download": True,
            "sources": [
                {"include": "configs/sources/crawl_2019_18.yaml"},
                {"include": "configs/sources/tasks.yaml", "tasks": TasksSettings().names},
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
            "crawl_paths": "crawl/CC-MAIN-2019-18/wet.paths.gz",
            "crawl_prefix": "https://data.commoncrawl.org/",
            "clean_shards": 1024,
            "output_shards": 1024,
            "bad_word_lists": {
                "en": "lists/badwords.en.txt",
                "de": "lists/badwords.de.txt",
                "fr": "lists/badwords.fr.txt",
            },
        },
    }
