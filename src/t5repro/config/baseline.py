"""Settings of `configs/base.yaml` that differ from the schema's values.

They are the crawl, the sources, the devices, and the fine-tuning of the paper on seven groups of
tasks with the best checkpoint of each task (sections 2.4 and 3.1.3).
"""

from typing import Any

from t5repro.config.groups import tasks_of_groups
from t5repro.task_groups import RELEASED_GROUPS
from t5repro.task_table import SQUAD

MIXTURES = {
    "glue": "mixtures/glue_v002_proportional",
    "super_glue": "mixtures/super_glue_v102_proportional",
}
# The released configurations: `sequence_lengths` of each mixture, where it is not the default.
TARGETS_LENGTHS = {"glue": 84, "super_glue": 62, SQUAD.name: 97}


def _group(name: str) -> dict[str, Any]:
    """Return the settings of the fine-tuning of one group of the paper."""
    tasks = {"use": [MIXTURES[name]]} if name in MIXTURES else {"tasks.names": [name]}
    if name in TARGETS_LENGTHS:
        return tasks | {"finetune.targets_length": TARGETS_LENGTHS[name]}
    return tasks


GROUPS: dict[str, dict[str, Any]] = {name: _group(name) for name in RELEASED_GROUPS}


def baseline_changes() -> dict[str, Any]:
    """Return the settings of `configs/base.yaml` that differ from the schema's values."""
    tasks = tasks_of_groups(GROUPS)
    return {
        "data": {
            "folder": "data_base",  # not the demo's folder, which data.dvc tracks
            "download": True,
            "sources": [
                {"include": "configs/sources/crawl_2019_18.yaml"},
                {"include": "configs/sources/tasks.yaml", "tasks": tasks},
            ],
        },
        "tasks": {"names": tasks},
        "finetune": {"groups": GROUPS, "keep_checkpoints": "all"},
        "evaluate": {"checkpoints": "all"},
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
