"""Tasks by name."""

import subprocess
import sys

import pytest

from t5repro.errors import SettingsError
from t5repro.tasks.registry import index_by_name, task_named

DEMO = (
    *("glue_cola", "glue_sst2", "glue_mrpc", "glue_stsb", "glue_rte"),
    *("super_glue_boolq", "super_glue_copa", "squad", "cnn_dailymail"),
    *("wmt_en_de", "wmt_en_fr", "wmt_en_ro"),
)


@pytest.mark.parametrize("name", DEMO)
def test_the_demo_tasks_are_there(name):
    assert task_named(name).name == name


def test_an_unknown_task_is_refused_with_the_nearest_name():
    with pytest.raises(SettingsError, match="unknown task 'glue_colla'; nearest: 'glue_cola'"):
        task_named("glue_colla")
    with pytest.raises(SettingsError, match="unknown task '###'; tasks are "):
        task_named("###")


def test_two_tasks_of_one_name_are_refused():
    twice = (task_named("squad"), task_named("dpr"), task_named("squad"))
    with pytest.raises(SettingsError, match="two tasks are named 'squad'; names must differ"):
        index_by_name(twice)


def test_reading_tasks_does_not_load_tensorflow_or_the_scoring_libraries():
    code = (
        "import sys, t5repro.tasks.build, t5repro.tasks.mixing_rates, t5repro.tasks.averages;"
        "heavy = {'tensorflow', 'keras', 'sklearn', 'scipy', 'sacrebleu', 'rouge_score', 'nltk'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
