"""A refused setting is named with the file and the line that state it."""

from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config.load import load_run_file, load_settings
from t5repro.config.origins import Origins, read_with_lines
from t5repro.config.task_files import task_files
from t5repro.errors import SettingsError


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


REFUSED = [
    # name, run file, line, part of the message
    (
        "an unknown setting",
        "run: {name: a}\nfinetune:\n  steps: 5\n  learnig_rate: 1\n",
        4,
        "unknown setting 'finetune.learnig_rate'; nearest: 'finetune.learning_rate",
    ),
    (
        "an unknown setting, dotted",
        "seed: 1\n\nfinetune.learnig_rate: 1\n",
        3,
        "unknown setting 'finetune.learnig_rate'",
    ),
    (
        "a name with a space",
        "seed: 1\nrun:\n  name: my run\n",
        3,
        "setting 'run.name' is 'my run'; allowed: small letters, digits and _, such as 'my_run'",
    ),
    (
        "an impossible value",
        "pretrain:\n  batch_size: 4\n  steps: -1\n",
        3,
        "setting 'pretrain.steps' is -1; Input should be greater than or equal to 0",
    ),
    ("a setting without a dot", "run: {name: a}\nseed: x\n", 2, "setting 'seed' is 'x'"),
    (
        "settings of one section that do not fit",
        "model:\n  architecture: shared_encoder_decoder\n  num_decoder_layers: 6\n",
        3,
        "stacks that share weights need as many blocks",
    ),
    (
        "settings of two sections that do not fit",
        "c4: {languages: [en]}\nvocab:\n  language_parts:\n    en: 1\n    it: 1\n",
        3,
        "vocab.language_parts names ['it'], which c4.languages ['en'] does not build",
    ),
    (
        "a task named twice",
        "run: {name: a}\ntasks:\n  names: [glue_cola, glue_sst2, glue_cola]\n",
        3,
        "tasks.names contains ['glue_cola'] more than once; names must differ",
    ),
    (
        "a user's task described twice",
        "tasks:\n  own:\n    mine: {prefix: a}\n    mine: {prefix: b}\n",
        4,
        "'mine' is set twice, first in line 3; keep one of them",
    ),
    (
        "a setting set nested and dotted",
        "pretrain:\n  steps: 5\nseed: 1\npretrain.steps: 6\n",
        4,
        "'pretrain.steps' is set twice, first in line 2",
    ),
    (
        "a weight of zero",
        "tasks.names: [glue_cola]\nfinetune:\n  mixture_weights:\n    glue_cola: 0\n",
        4,
        "'finetune.mixture_weights.glue_cola' is 0; Input should be greater than 0",
    ),
    (
        "a weight of an unknown task",
        "tasks.names: [glue_cola]\nfinetune:\n  steps: 1\n  mixture_weights: {glue_sst2: 1}\n",
        4,
        "mixture_weights names ['glue_sst2'], which are not in tasks.names; allowed: ['glue_cola']",
    ),
    (
        "an unknown mixture",
        "seed: 1\nuse:\n- mixtures/supervised\n",
        2,
        "use names 'mixtures/supervised'; presets of mixtures are",
    ),
    (
        "a mixture and other tasks",
        "tasks.names: [squad]\nuse: [mixtures/supervised_equal]\n",
        2,
        "use names 'mixtures/supervised_equal', but tasks.names is also set",
    ),
    (
        "a user's task without its key",
        "tasks:\n  names: [mine]\n  own:\n    mine:\n      prefix: a\n",
        4,
        "setting 'tasks.own.mine.",
    ),
    (
        "a former setting of a preset",
        "c4:\n  recipe: tfds\n",
        2,
        "c4.recipe is 'tfds', but presets are named in use; write use: [cleaning/tfds]",
    ),
    (
        "an experiment's unknown setting",
        "experiments:\n- name: a\n- name: b\n  change:\n    seed: 1\n    pretrain.stepz: 0\n",
        6,
        "experiment 'b': unknown setting 'pretrain.stepz'; nearest: 'pretrain.steps'",
    ),
    (
        "an experiment's impossible value",
        "experiments:\n- name: a\n- name: b\n  change: {evaluate: {split: all}}\n",
        4,
        "experiment 'b': setting 'evaluate.split' is 'all'",
    ),
    (
        "an experiment's faults in one of its seeds",
        "experiments:\n- name: a\n  seeds: [1, 2]\n  change:\n    use: [cleaning/papr]\n",
        5,
        "use names 'cleaning/papr'",
    ),
    (
        "an experiment that changes what all share",
        "experiments:\n- name: a\n- name: b\n  change:\n    data.folder: x\n",
        5,
        "experiment 'b' changes data",
    ),
    (
        "an experiment that continues a later one",
        "experiments:\n- name: a\n  change:\n    finetune.start_from: b\n- name: b\n",
        4,
        "experiment 'a': finetune.start_from is 'b'; it must be one of the experiments before",
    ),
    (
        "two experiments of one name",
        "seed: 1\nexperiments:\n- name: a\n- name: a\n",
        2,
        "experiments contains ['a'] more than once",
    ),
]


@pytest.mark.parametrize(
    ("text", "line", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_refused_setting_is_named_with_file_and_line(
    text: str, line: int, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_run_file(path)
    assert str(refused.value).startswith(f"{path}:{line}: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(("names", "line"), [("[glue_cola, x]", 2), ("\n  - glue_cola\n  - x", 4)])
def test_an_unknown_task_is_named_with_its_line(names: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(f"tasks:\n  names: {names}\n")
    settings = load_run_file(path)
    with (
        pytest.raises(SettingsError, match=f"^{path}:{line}: tasks.names contains 'x'; tasks are"),
        Origins([path]).located_errors(),
    ):
        task_files(settings, "x")


def test_what_no_file_states_is_named_with_the_files(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("seed: 1\n")
    second.write_text("run: {name: a}\n")
    origins = Origins([first, second])
    assert origins.of(SettingsError("nothing that a file states")) == f"{first}, {second}"
    assert Origins([]).of(SettingsError("pretrain.steps")) == "the run file"


def test_the_last_of_several_run_files_and_the_command_line_win(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("pretrain:\n  steps: 1\nseed: 1\nexperiments:\n- name: a\n- name: b\n")
    second.write_text("\npretrain.steps: -1\nexperiments:\n- name: c\n")
    steps, experiment = SettingsError("", keys=("pretrain", "steps")), SettingsError("")
    experiment.experiment = "b"
    assert Origins([first]).of(steps) == f"{first}:2"
    assert Origins([first]).of(experiment) == f"{first}:6"
    assert Origins([first, second]).of(steps) == f"{second}:2"
    assert Origins([first, second]).of(experiment) == f"{first}, {second}"
    overrides = {"pretrain": {"steps": -1}}
    assert Origins([first, second], overrides).of(steps) == "--config"
    with pytest.raises(SettingsError, match=r"^--config: setting 'pretrain.steps' is -2"):
        load_run_file(first, {"pretrain.steps": -2})


def test_names_that_users_invent_are_not_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("data:\n  sources:\n  - files:\n      a/b.tsv: ''\n      c.d.tsv: ''\n")
    _, lines = read_with_lines(path)
    assert lines["data", "sources", 0, "files", "c.d.tsv"] == 5
    assert ("data", "sources", 0, "files", "c") not in lines


def test_a_file_in_the_checkout_is_named_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/run.yaml").write_text("seed: x\n")
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(SettingsError, match=r"^configs/run.yaml:1: setting 'seed'"),
        Origins([tmp_path / "configs/run.yaml"]).located_errors(),
    ):
        raise SettingsError("setting 'seed' is 'x'", keys=("seed",))


def test_values_read_with_lines_are_those_that_yaml_reads(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("a: &x {b: 1e-3, c: [no, 2]}\nd: *x\n# nothing\ne:\n")
    values, lines = read_with_lines(path)
    assert values == {"a": {"b": "1e-3", "c": [False, 2]}, "d": {"b": "1e-3", "c": [False, 2]}} | {
        "e": None
    }
    assert lines["d", "c", 1] == 1  # where it is written
    assert lines["e",] == 4
    path.write_text("# nothing\n")
    assert read_with_lines(path) == ({}, {})


def test_settings_without_a_file_are_refused_without_a_place() -> None:
    with pytest.raises(SettingsError, match=r"^setting 'seed' is 'x'"):
        load_settings({"seed": "x"})


def test_all_faults_of_a_run_file_are_named_with_their_lines(tmp_path: Path) -> None:
    run_file = tmp_path / "run.yaml"
    run_file.write_text(
        "run: {name: a}\nmodl: {d_model: 8}\npretrain:\n  steps: x\n  batch_size: -1\n"
        "tokens:\n  languages: [english]\n"
    )
    with pytest.raises(SettingsError) as caught:
        load_run_file(run_file)
    assert sorted(line.partition(";")[0] for line in str(caught.value).splitlines()) == [
        f"{run_file}:2: unknown setting 'modl'",
        f"{run_file}:4: setting 'pretrain.steps' is 'x'",
        f"{run_file}:5: setting 'pretrain.batch_size' is -1",
        f"{run_file}:7: setting 'tokens.languages.0' is 'english'",
    ]


def test_a_fault_that_follows_from_another_setting_is_named_once(tmp_path: Path) -> None:
    run_file = tmp_path / "run.yaml"
    run_file.write_text("run: {name: a}\ncorpus:\n  files: [a.txt]\n  language: english\n")
    with pytest.raises(SettingsError, match="language is a code of ISO 639") as caught:
        load_run_file(run_file)  # the languages of c4, vocabulary and tokens are the corpus's
    assert str(caught.value).startswith(f"{run_file}:4: setting 'corpus.language' is 'english'")
    assert len(str(caught.value).splitlines()) == 1
