"""Each number of docs/desk_study.md follows from a committed study, a run file or the paper."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial

import pytest
import study_pictures
from checkout import ROOT
from desk_page.claims import compute, data, power, set_up, summary, worth
from desk_page.claims_on_tables import (
    architectures,
    methods,
    mixing,
    modeling,
    objectives,
    recipes,
    repeats,
)
from desk_page.costs import cost, cost_table
from desk_page.score_tables import (
    PRETRAINED,
    TARGETS,
    architecture_table,
    method_table,
    mixing_table,
    modeling_table,
    order_table,
    power_table,
    recipe_table,
    repeat_table,
    scaling,
    scaling_table,
    score_table,
)
from desk_page.systems import system_table, systems
from desk_page.text import NAMES, prose, sections, tables
from rate_search import (
    INFIX,
    Stage,
    best_rate,
    finetuning_rate_table,
    losses_of_search,
    pretraining_rate_table,
)
from study_results import (
    ADAPTERS,
    ARCHITECTURES,
    DESK_STUDIES,
    MIXING,
    MODELING,
    OBJECTIVES,
    RECIPES,
    REPEATS,
    SCALING,
    SEARCH,
    SEEDS,
    STUDY,
    SYSTEMS,
    experiment_settings,
    manifest,
    rows_of,
    scores_by_experiment,
)

CLAIMS: Mapping[str, Callable[[], list[str]]] = {
    "": summary,
    "Set-up": set_up,
    "What pre-training is worth": worth,
    "Loss and scores over compute": compute,
    "The objectives of table 4": objectives,
    "The architectures of table 2": architectures,
    "The architectures with language modeling": modeling,
    "The repeats of table 9": repeats,
    "The fine-tuning methods of table 10": methods,
    "The mixtures of table 11": mixing,
    "Later recipes": recipes,
    "Systems before T5": systems,
    "Which tables a desk can tell apart": power,
    "What it cost": cost,
    "The data": data,
}


@pytest.mark.parametrize("heading", CLAIMS)
def test_a_section_has_the_numbers_of_its_study(heading: str) -> None:
    text = prose(heading)
    assert [claim for claim in CLAIMS[heading]() if claim not in text] == []


def test_no_number_of_the_page_is_unchecked() -> None:
    for heading in sections():
        text = prose(heading)
        for claim in CLAIMS[heading]() if heading in CLAIMS else ():
            text = text.replace(claim, "")
        assert re.findall(r"\S*\d\S*", NAMES.sub("", text)) == [], heading


@pytest.mark.parametrize(
    ("heading", "number", "expected"),
    [
        ("Loss and scores over compute", 0, scaling_table),
        ("What pre-training is worth", 0, partial(score_table, STUDY, PRETRAINED, examples=True)),
        ("The objectives of table 4", 0, partial(score_table, OBJECTIVES, TARGETS)),
        ("The objectives of table 4", 1, partial(order_table, OBJECTIVES, 4)),
        ("The architectures of table 2", 0, partial(architecture_table, ARCHITECTURES)),
        ("The architectures of table 2", 1, partial(order_table, ARCHITECTURES, 2)),
        ("The architectures with language modeling", 0, partial(architecture_table, MODELING)),
        ("The architectures with language modeling", 1, partial(order_table, MODELING, 2)),
        ("The architectures with language modeling", 2, modeling_table),
        ("The repeats of table 9", 0, repeat_table),
        ("The repeats of table 9", 1, partial(order_table, REPEATS, 9)),
        ("The fine-tuning methods of table 10", 0, method_table),
        ("The fine-tuning methods of table 10", 1, partial(order_table, ADAPTERS, 10)),
        ("The mixtures of table 11", 0, mixing_table),
        ("The mixtures of table 11", 1, partial(order_table, MIXING, 11)),
        ("Later recipes", 0, recipe_table),
        ("Systems before T5", 0, system_table),
        ("Systems before T5", 1, pretraining_rate_table),
        ("Systems before T5", 2, finetuning_rate_table),
        ("Which tables a desk can tell apart", 0, power_table),
        ("What it cost", 0, cost_table),
    ],
)
def test_a_table_has_the_numbers_of_its_studies(
    heading: str, number: int, expected: Callable[[], list[list[str]]]
) -> None:
    rows = expected()
    _, *shown = tables(heading)[number]
    assert [row[: len(cells)] for row, cells in zip(shown, rows, strict=True)] == rows
    others = [cell for row, cells in zip(shown, rows, strict=True) for cell in row[len(cells) :]]
    assert re.findall(r"\d", NAMES.sub("", " | ".join(others))) == []


@pytest.mark.parametrize("stage", INFIX)
def test_the_systems_have_the_best_rates_of_the_search(stage: Stage) -> None:
    for system, tried in losses_of_search(stage).items():
        settings = getattr(experiment_settings(SYSTEMS, system), stage)
        assert settings.learning_rate.factor == best_rate(tried), system


@pytest.mark.parametrize("study", [name for name in DESK_STUDIES if name not in {RECIPES, SEARCH}])
def test_the_table_of_a_report_has_the_scores_of_the_evidence(study: str) -> None:
    reported = defaultdict(list)
    for row in rows_of(study):
        if row.runs == 1 and row.value is not None:
            reported[row.experiment, f"{row.task}.{row.metric}"].append(row.value)
    assert reported == scores_by_experiment(study)


def test_the_pictures_are_the_charts_of_the_committed_report() -> None:
    found = study_pictures.pictures(SCALING)
    assert len(found) == 1 + len(scaling().gains)
    page = "".join(sections().values())
    for name, picture in (found | study_pictures.pictures(SYSTEMS)).items():
        assert (ROOT / "docs/images" / name).read_bytes() == picture
        assert f"](images/{name})" in page


def test_studies_with_a_pretraining_of_the_study_of_compute_have_its_weights() -> None:
    """Made again by later code, on another day: equal to the byte."""

    def weights(study: str, experiment: str) -> str:
        (sha256,) = (
            str(entry["sha256"])
            for entry in manifest(study, "pretrain", experiment)["outputs"]
            if entry["path"].endswith("weights.safetensors")
        )
        return sha256

    for seed in SEEDS:
        assert weights(ADAPTERS, f"all_parameters{seed}") == weights(SCALING, f"steps_2000{seed}")
        for study in (ARCHITECTURES, REPEATS):
            assert weights(study, f"baseline{seed}") == weights(SCALING, f"steps_1000{seed}")
