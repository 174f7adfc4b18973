"""The loss on held-out text, of every experiment."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError
from t5repro.report.experiments import Experiment, group_arms
from t5repro.report.held_out import held_out_rows, operations_of_step, tokens_per_character
from t5repro.report.loss_curves import operations_curve
from t5repro.report.phases import PhaseRow, phase_rows

EXPERIMENTS = [
    Experiment(name="a", arms=("a", "a_seed_1"), seeds=(0, 1)),
    Experiment(name="small", arms=("small",), seeds=(0,), style=1),
    Experiment(name="untrained", arms=("untrained",), seeds=(0,), style=2),
]
LOSSES = {"a": 2.0, "a_seed_1": 2.2, "small": 3.0}
ACCURACIES = {
    "a": {"masked_pieces": 0.25, "pairs": 0.5},
    "a_seed_1": {"masked_pieces": 0.35, "pairs": 0.6},
}


@pytest.fixture
def run() -> Settings:
    changes: list[dict[str, Any]] = [
        {"name": "a", "seeds": [0, 1]},
        {"name": "small", "change": {"use": ["sizes/small"], "pretrain.steps": 100}},
        {"name": "untrained", "change": {"pretrain.steps": 0}},
    ]
    return load_settings({"pretrain.steps": 50, "experiments": changes})


@pytest.fixture
def histories(tmp_path: Path) -> dict[str, Path]:
    paths = {arm: tmp_path / arm / "history.csv" for arm in (*LOSSES, "untrained")}
    for arm, path in paths.items():
        path.parent.mkdir()
        counters = {"final_validation_accuracies": ACCURACIES[arm]} if arm in ACCURACIES else {}
        path.with_name("manifest.json").write_text(json.dumps({"counters": counters}))
        rows = [f"25,4,{LOSSES[arm] + 1}", f"50,4,{LOSSES[arm]}"] if arm in LOSSES else []
        path.write_text("\n".join(["step,loss,validation_loss", *rows]) + "\n", encoding="utf-8")
    return paths


@pytest.fixture
def manifests(tmp_path: Path) -> tuple[Path, Path]:
    """Manifests of `c4` and `tokens`; French is in the corpus, but not among the ids."""
    corpus, tokens = tmp_path / "c4.json", tmp_path / "tokens.json"
    languages = {"en": {"validation_characters": 400}, "fr": {"validation_characters": 999}}
    corpus.write_text(json.dumps({"counters": {"languages": languages}}), encoding="utf-8")
    counted = {"validation": {"languages": {"en": {"tokens": 100}}}}
    tokens.write_text(json.dumps({"counters": counted}), encoding="utf-8")
    return corpus, tokens


def test_the_loss_is_a_mean_over_seeds_per_token_and_per_character(
    run: Settings, histories: dict[str, Path], manifests: tuple[Path, Path]
) -> None:
    corpora, tokens = (dict.fromkeys(histories, path) for path in manifests)
    first, second = held_out_rows(run, EXPERIMENTS, histories, corpora, tokens)
    assert (first.experiment, first.loss) == ("a", "2.100 ± 0.141")
    assert first.perplexity == f"{math.exp(2.1):.1f}"
    # 100 tokens have 400 characters.
    assert (first.per_character, second.per_character) == ("0.525", "0.750")
    assert (second.experiment, second.loss) == ("small", "3.000")
    assert second.objective == "replace_spans iid"
    # The baseline: 6.284e13 operations a step.
    assert first.operations == f"{50 * 6.284e13 / 1e15:,.3g}"


def test_accuracies_of_masked_pieces_and_pairs_are_means_over_seeds(
    run: Settings, histories: dict[str, Path]
) -> None:
    first, second = held_out_rows(run, EXPERIMENTS, histories, {}, {})
    assert first.accuracies == {"masked_pieces": "30.0 ± 7.1", "next_sentence": "55.0 ± 7.1"}
    assert second.accuracies == {}


@pytest.mark.parametrize(
    ("system", "pairs"), [("bert", "next_sentence"), ("albert", "sentence_order")]
)
def test_figures_of_pretraining_have_the_columns_of_the_published_tables(
    system: str, pairs: str, histories: dict[str, Path]
) -> None:
    change = {"use": [f"systems/{system}"], "pretrain.targets_length": 77}
    tasks = {"tasks.names": ["glue_sst2"], "tasks.segments": True}
    run = load_settings(tasks | {"experiments": [{"name": "a", "seeds": [0, 1], "change": change}]})
    (row,) = held_out_rows(run, EXPERIMENTS[:1], histories, {}, {})
    assert row.accuracies == {"masked_pieces": "30.0 ± 7.1", pairs: "55.0 ± 7.1"}
    assert row.figures["masked_pieces.perplexity"] == pytest.approx([math.exp(2), math.exp(2.2)])


def test_operations_of_a_second_phase_count_the_first() -> None:
    change = {"pretrain.from_experiment": "a", "pretrain.steps": 25}
    run = load_settings(
        {"pretrain.steps": 50, "experiments": [{"name": "a"}, {"name": "b", "change": change}]}
    )
    experiments = group_arms(run, ["a", "b"])
    assert phase_rows(run, experiments) == [
        PhaseRow("b", "a", "50", "128 × 512", "fresh", f"{50 * 6.284e13 / 1e15:,.3g}"),
        PhaseRow("b", "b", "25", "128 × 512", "continue", f"{75 * 6.284e13 / 1e15:,.3g}"),
    ]


def test_without_a_corpus_there_is_no_loss_per_character(
    run: Settings, histories: dict[str, Path]
) -> None:
    rows = held_out_rows(run, EXPERIMENTS, histories, {}, {})
    assert [row.per_character for row in rows] == ["–", "–"]


def test_a_manifest_without_counts_is_named(tmp_path: Path, manifests: tuple[Path, Path]) -> None:
    corpus, tokens = manifests
    assert tokens_per_character(corpus, tokens) == 0.25
    tokens.write_text('{"counters": {}}', encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"tokens.json do not count the validation split"):
        tokens_per_character(corpus, tokens)


def test_losses_are_drawn_over_the_operations_of_each_model(
    run: Settings, histories: dict[str, Path]
) -> None:
    lines = {arm: {arm: path} for arm, path in histories.items()}
    operations = [10**15, 10**13, 10**15]
    curve = operations_curve(
        EXPERIMENTS,
        lines,
        objectives=["x"] * 3,
        operations=operations,
        earlier_operations=[10**15, 0, 0],
    )
    assert curve is not None
    assert [(row.name, row.steps) for row in curve.rows] == [
        ("a", "51"),
        ("a_seed_1", "51"),
        ("small", "0.5"),
    ]
    assert "operations of training (10^15 FLOP)" in str(curve.chart)
    # The first experiment had an earlier phase of 10^15 operations. When the small model has
    # finished, the large ones have no measurement yet.
    assert curve.common_step == "0.5"
    assert [row.common for row in curve.rows] == ["–", "–", "3.000"]


def test_the_operations_of_a_step_are_those_of_the_model(run: Settings) -> None:
    assert operations_of_step(run) == pytest.approx(6.284e13, rel=1e-3)
