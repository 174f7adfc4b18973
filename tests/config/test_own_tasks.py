"""What a run file may say of a task of its own, of texts and of mixtures."""

import re

import pytest
import sentencepiece
from checkout import ROOT

from t5repro.config import family_checks
from t5repro.config.experiments import settings_of_experiment
from t5repro.config.known_tasks import known_tasks
from t5repro.config.load import load_settings
from t5repro.config.presets.mixtures import MIXTURES
from t5repro.config.stage_settings import stage_settings
from t5repro.config.task_files import task_files
from t5repro.errors import SettingsError
from t5repro.plan.run_plan import RunPlan
from t5repro.task_table import BY_NAME

MINE = {
    "files": {"train": ["mine/train.tsv"], "validation": ["mine/dev.tsv"]},
    "prefix": "mine",
    "fields": ["text"],
    "target": "label",
    "labels": ["no", "yes"],
    "metrics": ["accuracy"],
}
SOURCES = [
    {
        "origin": "by hand: me",
        "licence": "CC0-1.0",
        "files": {"tasks/mine/train.tsv": "", "tasks/mine/dev.tsv": ""},
    }
]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run_with(**change: object) -> dict[str, object]:
    return {
        "data": {"sources": SOURCES},
        "tasks": {"names": ["mine"], "own": {"mine": MINE | change}},
    }


def test_an_own_task_is_read_from_the_files_it_names() -> None:
    settings = load_settings(run_with())
    assert task_files(settings, "mine") == {
        "train": ["tasks/mine/train.tsv"],
        "validation": ["tasks/mine/dev.tsv"],
    }
    stage = stage_settings(settings, "tasks")
    assert stage["tasks"]["own"]["mine"]["labels"] == ["no", "yes"]
    score = stage_settings(settings, "evaluate_score")
    assert {"tasks": {**score["tasks"], "segments": False}} == stage


@pytest.mark.parametrize(
    ("label", "written"),
    [("good ", "good"), ("m²", "m2"), ("a  b", "a b"), ("ﬁne", "fine"), ("\u00a0no", "no")],
)
def test_a_label_that_sentencepiece_changes_is_refused_without_a_vocabulary(
    label: str, written: str
) -> None:
    message = (
        f"tasks.own.mine.labels contains {label!r}, which the vocabulary turns into {written!r}"
    )
    run = run_with(labels=[label, "kg"])
    with pytest.raises(SettingsError, match=re.escape(message)):
        load_settings(run)
    with pytest.raises(SettingsError, match=re.escape(message)):
        load_settings({**run_with(), "experiments": [{"name": "a", "change": run}]})
    assert load_settings(encoder_run_with(labels=[label, "kg"]))  # answers with indices


def test_labels_are_refused_as_the_trained_vocabulary_changes_them() -> None:
    normalise = sentencepiece.SentencePieceNormalizer(
        rule_name="nmt_nfkc",
        add_dummy_prefix=False,
        escape_whitespaces=False,
        remove_extra_whitespaces=True,
    ).normalize
    refused = [
        label
        for code in [*range(0x20, 0x2500), *range(0xF900, 0xFB50), *range(0xFF00, 0xFFF0)]
        if (label := f"a{chr(code)}b")
        != family_checks._as_sentencepiece_writes(label, is_trained=True)
    ]
    assert len(refused) > 1000
    assert [label for label in refused if normalise(label) == label] == ["a\x85b"]


def test_a_given_vocabulary_may_keep_every_form_of_a_character_and_no_double_space() -> None:
    given = {"vocab": {"model_file": "spiece.model"}}
    assert load_settings(run_with(labels=["m²", "kg"]) | given).tasks.names == ["mine"]
    with pytest.raises(SettingsError, match=r"contains 'a  b', .* into 'a b'"):
        load_settings(run_with(labels=["a  b", "kg"]) | given)


def encoder_run_with(**change: object) -> dict[str, object]:
    run = run_with(**change)
    return {**run, "use": ["systems/bert"], "tasks": {**run["tasks"], "segments": True}}


def test_an_own_task_of_texts_is_refused_for_an_encoder_only() -> None:
    """A network of labels predicts labels and numbers; a run would fail after its pre-training."""
    with pytest.raises(SettingsError, match=r"tasks.names contains \['mine'\], whose answers are"):
        load_settings(encoder_run_with(labels=[], metrics=["squad"]))


@pytest.mark.parametrize("change", [{}, {"labels": [], "metrics": ["pearson_corrcoef"]}])
def test_an_own_task_of_labels_or_numbers_suits_an_encoder_only(change: dict[str, object]) -> None:
    assert load_settings(encoder_run_with(**change)).tasks.names == ["mine"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prefx": "x"}, "unknown setting 'tasks.own.mine.prefx'; nearest: 'tasks.own.mine.prefix"),
        ({"prefix": " x"}, "'tasks.own.mine.prefix' is ' x'; allowed: a line without spaces"),
        ({"fields": []}, r"'tasks.own.mine.fields' is \[\]; List should have at least 1"),
        ({"fields": ["a", "a"]}, r"fields contains \['a'\] more than once"),
        ({"files": {}}, "files names no split"),
        ({"files": {"dev": ["a.tsv"]}}, "'tasks.own.mine.files.dev.*' is 'dev'; Input should be"),
        ({"files": {"train": []}}, "files.train names no file"),
        (
            {"files": {"train": ["a.tsv", "a.tsv"]}},
            r"files.train contains \['a.tsv'\] more than once",
        ),
        ({"files": {"train": ["a.xlsx"]}}, r"names 'a.xlsx'; allowed: names that end in .tsv, .cs"),
        ({"labels": ["yes"]}, r"labels has only \['yes'\]; name two or more, or none"),
        (
            {"label_values": ["1"]},
            "label_values has 1 values and labels 2; give one value for each",
        ),
        ({"metrics": []}, "metrics' is"),
        ({"metrics": ["acuracy"]}, "'acuracy'; Input should be 'accuracy', 'f1'"),
        ({"metrics": ["accuracy", "accuracy"]}, r"metrics contains \['accuracy'\] more than once"),
        ({"metrics": ["bleu"]}, r"metrics contains \['bleu'\], which need answers of a kind other"),
        ({"labels": [], "metrics": ["f1"]}, r"contains \['f1'\], .* 'text'; allowed: \['accuracy'"),
        (
            {"labels": [], "metrics": ["pearson_corrcoef", "bleu"]},
            r"contains \['bleu'\], .* 'number'; allowed: \['pearson",
        ),
        (
            {"labels": ["a", "b", "c"], "metrics": ["f1"]},
            r"\['f1'\], which need two labels, not 3; allowed: accuracy, macro_f1",
        ),
    ],
)
def test_an_impossible_description_is_refused_with_key_value_and_what_is_allowed(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(run_with(**change))


def test_labels_and_metrics_say_what_an_answer_is() -> None:
    def kind(**change: object) -> str:
        return known_tasks(load_settings(run_with(**change)).tasks)["mine"].answer

    assert kind() == "label"
    assert kind(labels=[]) == "text"
    assert kind(labels=[], metrics=["spearman_corrcoef"]) == "number"


def test_a_task_of_the_run_file_is_a_row_after_those_of_the_table() -> None:
    known = known_tasks(load_settings(run_with()).tasks)
    assert list(known) == [*BY_NAME, "mine"]
    assert known["squad"] is BY_NAME["squad"]
    row = known["mine"]
    assert (row.title, row.heading, row.benchmark) == ("mine", "Other tasks", "")
    assert row.files == {split: tuple(names) for split, names in MINE["files"].items()}


def test_an_unknown_task_is_refused_with_the_nearest_name() -> None:
    settings = load_settings(run_with() | {"tasks.names": ["minne"]})
    with pytest.raises(SettingsError, match="tasks.names contains 'minne'; .*nearest: 'mine'"):
        task_files(settings, "minne")


def test_a_task_named_twice_is_refused() -> None:
    values = {"tasks": {"own": {"squad": MINE}}}
    with pytest.raises(
        SettingsError, match=r"tasks.own contains \['squad'\], which is a task of the"
    ):
        load_settings(values)
    with pytest.raises(SettingsError, match=r"tasks.names contains \['squad'\] more than once"):
        load_settings({"tasks.names": ["squad", "dpr", "squad"]})


def test_a_file_that_data_sources_does_not_list_is_refused() -> None:
    values = run_with(files={"train": ["mine/other.tsv"]})
    with pytest.raises(SettingsError, match=r"own.mine.files.train names \['tasks/mine/other.tsv'"):
        task_files(load_settings(values), "mine")


def test_experiments_of_a_run_share_texts_and_own_tasks() -> None:
    experiment = {"name": "a", "change": {"tasks.text.copa_target": "paper"}}
    with pytest.raises(SettingsError, match="experiment 'a' changes tasks.text; all experiments"):
        load_settings({"experiments": [{"name": "baseline"}, experiment]})


def test_a_named_mixture_says_tasks_rates_and_counts() -> None:
    settings = load_settings({"use": ["mixtures/glue_v002_proportional"]})
    assert settings.tasks.names[:2] == ["glue_cola", "glue_sst2"]
    assert {"glue_mnli", "glue_mnli_matched", "glue_mnli_mismatched"} <= set(settings.tasks.names)
    assert settings.finetune.mixture == "proportional"
    assert settings.finetune.mixture_examples == "released"
    equal = load_settings({"use": ["mixtures/large_supervised_equal"]})
    assert equal.tasks.names == ["wmt_en_de", "wmt_en_fr", "cnn_dailymail"]
    assert equal.finetune.mixture == "equal"
    assert load_settings(
        {"use": ["mixtures/supervised_proportional"]}
    ).finetune.mixture_weights == {"glue_rte": 1245.0, "super_glue_rte": 1245.0}


@pytest.mark.parametrize("name", MIXTURES)
def test_rte_counts_half_in_each_benchmark_where_the_released_code_says_so(name: str) -> None:
    """`_dedupe` of t5.data.mixtures; `en_mix` has a remark to use it later."""
    settings = load_settings({"use": [f"mixtures/{name}"]})
    are_drawn = {"glue_rte", "super_glue_rte"} <= set(settings.tasks.names)
    halved = are_drawn and settings.finetune.mixture == "proportional" and name != "en_mix"
    weights = {"glue_rte": 1245.0, "super_glue_rte": 1245.0} if halved else {}
    assert settings.finetune.mixture_weights == weights


def test_experiments_may_draw_from_other_mixtures() -> None:
    experiments = [
        {"name": "baseline"},
        {"name": "without_squad", "change": {"use": ["mixtures/supervised_without_squad"]}},
        {"name": "cola", "change": {"tasks.names": ["glue_cola"]}},
    ]
    settings = load_settings(
        {"use": ["mixtures/supervised_proportional"], "experiments": experiments}
    )
    left_out = settings_of_experiment(settings, "without_squad")
    assert set(settings.tasks.names) - set(left_out.tasks.names) == {"squad"}
    cola = settings_of_experiment(settings, "cola")
    assert (cola.use, cola.finetune.mixture_weights) == ([], {})
    assert RunPlan(settings).node_of("finetune", "without_squad") == "without_squad"
    assert RunPlan(settings).node_of("pretrain", "without_squad") == "baseline"


@pytest.mark.parametrize(
    ("name", "tasks", "kind", "examples", "rate"),
    [
        ("en_mix", 20, "proportional", 1e6, "stated"),
        ("all_mix", 24, "proportional", 1e6, "stated"),
        ("all_proportional", 24, "proportional", 364_868_892, "limited"),
        ("all_equal", 24, "equal", 364_868_892, "limited"),
        ("leave_one_out_glue", 14, "proportional", 364_868_892, "limited"),
    ],
)
def test_a_mixture_with_c4_draws_the_corpus_in_addition_to_its_tasks(
    name: str, tasks: int, kind: str, examples: float, rate: str
) -> None:
    settings = load_settings({"use": [f"mixtures/{name}"]})
    plan = settings.finetune
    assert len(settings.tasks.names) == tasks
    assert (plan.mixture, plan.corpus_examples, plan.corpus_rate) == (kind, examples, rate)
    assert not load_settings({"use": ["mixtures/supervised_equal"]}).finetune.corpus_examples


def test_a_run_may_state_the_corpus_of_a_mixture_itself() -> None:
    settings = load_settings({"use": ["mixtures/all_mix"], "finetune.corpus_examples": 710_000})
    assert (settings.finetune.corpus_examples, settings.finetune.corpus_rate) == (710_000, "stated")


def test_an_experiment_with_tasks_of_its_own_draws_no_corpus_of_the_runs_mixture() -> None:
    experiments = [
        {"name": "multi"},
        {"name": "one", "change": {"tasks.names": ["glue_cola"]}},
        {"name": "supervised", "change": {"use": ["mixtures/supervised_equal"]}},
        {"name": "other", "change": {"use": ["mixtures/leave_one_out_squad"]}},
    ]
    run = load_settings({"use": ["mixtures/all_mix"], "experiments": experiments})
    drawn = {
        experiment["name"]: settings_of_experiment(run, str(experiment["name"])).finetune
        for experiment in experiments
    }
    assert {name: plan.corpus_examples for name, plan in drawn.items()} == {
        "multi": 1e6,
        "one": 0,
        "supervised": 0,
        "other": 364_868_892,
    }
    assert drawn["one"].corpus_rate == drawn["other"].corpus_rate == "limited"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"use": ["mixtures/supervised_equal"], "tasks.names": ["squad"]},
            "use names 'mixtures/supervised_equal', but tasks.names is also set; remove one of",
        ),
        (
            {"tasks.names": ["squad"], "finetune": {"mixture_weights": {"squda": 1}}},
            r"mixture_weights names \['squda'\], which are not in tasks.names; allowed: \['s",
        ),
        (
            {"tasks.names": ["squad"], "finetune": {"mixture_weights": {"squad": 0}}},
            "'finetune.mixture_weights.squad' is 0; Input should be greater than 0",
        ),
    ],
)
def test_an_impossible_mixture_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(values)


def test_the_mixtures_of_the_released_code_are_all_known() -> None:
    released = {
        "glue_v002_proportional",
        "super_glue_v102_proportional",
        "en_mix",
        "all_equal",
        "all_proportional",
        "all_mix",
        "large_supervised_equal",
        "large_supervised_proportional",
    }
    groups = ("glue", "super_glue", "cnn_dailymail", "squad", "wmt_en_de", "wmt_en_fr", "wmt_en_ro")
    assert released | {f"leave_one_out_{group}" for group in groups} <= set(MIXTURES)
    for group in groups:
        without = MIXTURES[f"supervised_without_{group}"]
        assert without.tasks == MIXTURES[f"leave_one_out_{group}"].tasks
