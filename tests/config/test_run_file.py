"""Short forms of a run file, and former names of settings and values."""

from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from t5repro.config import setting_names, validation
from t5repro.config.load import load_run_file, load_run_files, load_settings
from t5repro.config.run_file import included_files, read_sources
from t5repro.errors import SettingsError

SOURCE = {"origin": "by hand: me", "licence": "CC0-1.0", "files": {"a.txt": ""}}
FOR_EACH = {
    "name": "t5",
    "row": "T5-Small",
    "change": {"use": ["sizes/small"], "finetune": {"steps": 5, "repeat": 1}},
    "for_each": {
        "cola": {"tasks.names": ["glue_cola"]},
        "sst2": {"tasks.names": ["glue_sst2"], "finetune": {"steps": 7}, "finetune.repeat": 2},
    },
}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def refusal(tmp_path: Path, text: str) -> str:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_run_file(path)
    return str(refused.value).removeprefix(str(path))


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_run_file_changes_the_files_that_it_includes(tmp_path: Path) -> None:
    base = written(
        tmp_path / "base.yaml",
        "run.name: base\npretrain: {steps: 7, batch_size: 4}\n"
        "finetune.groups: {a: {tasks.names: [glue_cola]}}\nexperiments: [{name: x}, {name: y}]\n",
    )
    middle = written(
        tmp_path / "middle.yaml", f"include: [{base}]\nrun: {{name: middle}}\npretrain.steps: 8\n"
    )
    own = written(
        tmp_path / "own.yaml",
        f"include: [{middle}]\npretrain: {{batch_size: 5}}\nfinetune.groups: {{}}\n"
        "experiments: [{name: z}]\n",
    )
    settings = load_run_file(own)
    assert (settings.run.name, settings.pretrain.steps, settings.pretrain.batch_size) == (
        "middle",
        8,
        5,
    )
    assert not settings.finetune.groups
    assert [experiment.name for experiment in settings.experiments] == ["z"]
    # The same as all of them after `--configfile`.
    for path in (middle, own):
        path.write_text(path.read_text().partition("\n")[2])
    assert load_run_files([base, middle, own]) == settings


def test_the_files_that_a_run_file_reads_are_its_included_ones_and_those_of_its_sources(
    tmp_path: Path,
) -> None:
    base = written(
        tmp_path / "base.yaml", "data.sources: [{include: configs/sources/crawl_2019_18.yaml}]\n"
    )
    own = written(tmp_path / "own.yaml", f"include: [{base}]\nseed: 1\n")
    assert included_files(own) == [base, Path("configs/sources/crawl_2019_18.yaml")]
    replaced = written(tmp_path / "replaced.yaml", f"include: [{base}]\ndata.sources: []\n")
    assert included_files(replaced) == [base]
    assert included_files(written(tmp_path / "none.yaml", "seed: 1\n")) == []


def test_a_fault_in_an_included_file_is_named_there(tmp_path: Path) -> None:
    base = written(tmp_path / "base.yaml", "seed: 1\npretrain.steps: -1\n")
    own = written(tmp_path / "own.yaml", f"include: [{base}]\nseed: x\n")
    with pytest.raises(SettingsError) as refused:
        load_run_file(own)
    assert f"{base}:2: setting 'pretrain.steps'" in str(refused.value)
    assert f"{own}:2: setting 'seed'" in str(refused.value)


def test_an_included_file_that_cannot_be_used_is_named_with_the_line_of_the_include(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.yaml"
    assert refusal(tmp_path, "seed: 1\ninclude: configs/demo.yaml\n") == (
        ":2: include is 'configs/demo.yaml'; it must be a list of run files, such as "
        "[configs/base.yaml]"
    )
    assert refusal(tmp_path, "\ninclude: [configs/none.yaml]\n") == (
        ":2: configs/none.yaml is missing; run files are in configs/"
    )
    twice = f":1: {path} is included a second time"
    assert refusal(tmp_path, f"include: [{path}]\n").startswith(twice)
    base = written(tmp_path / "base.yaml", "seed: 1\n")
    other = written(tmp_path / "other.yaml", f"include: [{base}]\n")
    assert refusal(tmp_path, f"include: [{base}, {other}]\n").startswith(
        f":1: {other}:1: {base} is included a second time"
    )
    broken = written(tmp_path / "broken.yaml", "seed: 1\nseed: 2\n")
    assert refusal(tmp_path, f"include: [{broken}]\n").startswith(
        f":1: {broken}:2: 'seed' is set twice"
    )


def test_a_later_budget_replaces_earlier_steps_and_the_other_way_round(tmp_path: Path) -> None:
    steps = written(tmp_path / "steps.yaml", "pretrain.steps: 7\n")
    budget = written(tmp_path / "budget.yaml", "pretrain.flops: 1.0e+17\n")
    assert load_run_files([steps, budget]) == load_run_file(budget)
    assert load_run_files([budget, steps]) == load_run_file(steps)
    none = written(tmp_path / "none.yaml", "pretrain.steps: 0\n")
    assert load_run_files([none, budget]) == load_run_file(budget)
    assert load_run_files([steps, written(tmp_path / "no.yaml", "pretrain.flops: 0\n")]) == (
        load_run_file(steps)
    )
    assert load_run_file(steps, {"pretrain": {"flops": 1.0e17}}) == load_run_file(budget)
    with pytest.raises(SettingsError, match="remove one of the two"):
        load_run_file(written(tmp_path / "both.yaml", "pretrain: {steps: 7, flops: 1.0e+17}\n"))


def test_an_included_file_is_replaced_by_its_entries() -> None:
    path = "configs/sources/crawl_2019_18.yaml"
    values = {"data.sources": [SOURCE, {"include": path}, SOURCE]}
    sources = load_settings(values).model_dump(mode="json")["data"]["sources"]
    assert sources == [SOURCE, *read_sources(Path(path)), SOURCE]


def test_tasks_select_the_entries_with_their_files() -> None:
    entry = {"include": "configs/sources/tasks.yaml", "tasks": ["glue_cola", "dpr"]}
    sources = load_settings({"data": {"sources": [entry]}}).data.sources
    assert [sorted(source.files) for source in sources] == [
        ["tasks/glue/CoLA/dev.tsv", "tasks/glue/CoLA/test.tsv", "tasks/glue/CoLA/train.tsv"],
        ["tasks/dpr/train.c.txt"],
        ["tasks/dpr/test.c.txt"],
    ]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{include: nothing.yaml}", ":3: nothing.yaml cannot be read (No such file"),
        ("{include: configs/demo.yaml}", ":3: configs/demo.yaml contains a dict; it must be a lis"),
        (
            "{include: configs/sources/tasks.yaml, tasks: [glue_colla]}",
            ":3: unknown task 'glue_colla'; tasks are ",
        ),
        ("{include: a.yaml, task: [dpr]}", ":3: unknown setting 'data.sources.0.task'; nearest: "),
        ("{include: 3}", ":3: setting 'data.sources.0.include' is 3; Input should be a valid str"),
    ],
)
def test_a_wrong_include_is_refused_with_its_line(entry: str, message: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, f"data:\n  sources:\n  - {entry}\n").startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {origin: a, files: {}}", "entry 0: setting 'licence' is missing"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_wrong_included_file_is_refused_with_its_name(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "sources.yaml"
    path.write_text(text)
    message_of_run = refusal(tmp_path, f"data:\n  sources:\n  - include: {path}\n")
    assert message_of_run.startswith(f":3: {path}")
    assert message in message_of_run


def test_an_entry_after_an_include_is_named_by_its_own_number(tmp_path: Path) -> None:
    text = "data:\n  sources:\n  - include: configs/sources/crawl_2019_18.yaml\n  - {origin: a}\n"
    assert refusal(tmp_path, text).startswith(":4: setting 'data.sources.1.licence' is missing")


def test_for_each_defines_one_experiment_per_suffix() -> None:
    settings = load_settings({"experiments": [{"name": "baseline"}, FOR_EACH]})
    assert [(entry.name, entry.row, entry.change) for entry in settings.experiments] == [
        ("baseline", "", {}),
        (
            "t5_cola",
            "T5-Small",
            {
                "use": ["sizes/small"],
                "finetune": {"steps": 5, "repeat": 1},
                "tasks.names": ["glue_cola"],
            },
        ),
        (
            "t5_sst2",
            "T5-Small",
            {
                "use": ["sizes/small"],
                "tasks.names": ["glue_sst2"],
                "finetune": {"steps": 7, "repeat": 1},
                "finetune.repeat": 2,
            },
        ),
    ]
    assert load_settings(settings.model_dump(mode="json")) == settings


def test_for_each_and_seeds_multiply() -> None:
    settings = load_settings({"experiments": [FOR_EACH | {"seeds": [3, 4]}]})
    names = [entry.name for entry in settings.experiments]
    assert names == ["t5_cola", "t5_cola_seed_4", "t5_sst2", "t5_sst2_seed_4"]


EXPERIMENTS = "experiments:\n- name: a\n- name: t5\n  change: {seed: 1}\n  for_each:\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EXPERIMENTS + "    b: {}\n    c: {pretrain.stepz: 1}\n", ":7: experiment 't5_c': unknown"),
        (EXPERIMENTS + "    b: {}\n    B: {}\n", ":7: setting 'experiments.1.for_each.B.[key]' is"),
        (EXPERIMENTS + "    b: 3\n", ":6: setting 'experiments.1.for_each.b' is 3; Input should"),
        (EXPERIMENTS.replace("each:", "each: {}"), ":5: setting 'experiments.1.for_each' is {}; "),
        (EXPERIMENTS + "    b: {}\n- name: t5_b\n", "experiments contains ['t5_b'] more than once"),
        (EXPERIMENTS + "    b: {}\n    c: {}\n- row: x\n", ":8: setting 'experiments.2.name' is m"),
        (EXPERIMENTS.replace("seed: 1", "seed: x") + "    b: {}\n", ":4: experiment 't5_b': sett"),
    ],
)
def test_a_wrong_for_each_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    assert message in refusal(tmp_path, text)


def test_a_former_name_is_refused_with_the_present_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(setting_names.RENAMED, "pretrain.batch_lines", "pretrain.batch_size")
    message = "setting 'pretrain.batch_lines' is now called 'pretrain.batch_size'; rename it"
    assert refusal(tmp_path, "pretrain:\n  batch_lines: 3\n") == f":2: {message}"
    text = "experiments:\n- name: a\n  change:\n    pretrain.batch_lines: 3\n"
    assert refusal(tmp_path, text) == f":4: experiment 'a': {message}"
    with pytest.raises(SettingsError, match="--settings of pretrain: setting 'pretrain.batch_line"):
        validation.parse_stage("pretrain", '{"pretrain": {"batch_lines": 3}}')


def test_a_former_value_is_refused_with_the_present_one(tmp_path: Path) -> None:
    message = "setting 'model.target_marker' is 'end_mark', which is now called 'eos'"
    assert refusal(tmp_path, "model.target_marker: end_mark\n") == f":1: {message}"
    text = "experiments:\n- name: a\n  change: {model: {target_marker: end_mark}}\n"
    assert refusal(tmp_path, text) == f":3: experiment 'a': {message}"


def test_present_names_and_values_exist() -> None:
    names: dict[str, Any] = dict(setting_names.leaves())
    assert not set(setting_names.RENAMED) & set(names)
    assert set(setting_names.RENAMED.values()) <= set(names)
    for (name, former), present in setting_names.RENAMED_VALUES.items():
        assert present in names[name].annotation.__args__
        assert former not in names[name].annotation.__args__
